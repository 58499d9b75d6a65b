//! Elements at random.

use super::super::{Call, Refusal, SYNTAX, integer, is};
use crate::elements;
use crate::turn::{Element, Way};
use crate::value::{Header, Type};

/// Containers up to this many elements are sampled evenly by a walk over all of them.
const WALKED_MAX: u64 = 1000;
/// So are larger ones, if more than this are asked for.
const SOUGHT_MAX: u64 = 100;
/// Each is drawn so often, on average, before a walk takes over.
const DRAWS_MAX: u64 = 20;

/// One element at random: the first behind a place among the hashes, of a large container.
fn any(call: &mut Call<'_, '_>, header: &Header) -> Result<Element, Refusal> {
    let from = call.turn.shared.random(1 << 32) as u32;
    for from in [from, 0] {
        if let Some(element) = call.walk(elements::names_from(header.id, from), Way::Forward)?.next() {
            return element;
        }
    }
    Err("ERR the container has no elements, though its header says so; run `forebay verify`".into())
}

fn named_of((key, value): Element) -> Element {
    (elements::name_of(&key).1.to_vec(), value)
}

/// Elements at random, each at most once, no more than there are.
pub(in crate::commands) fn distinct(
    call: &mut Call<'_, '_>,
    header: &Header,
    count: u64,
) -> Result<Vec<Element>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    let count = count.min(header.count);
    if header.count > WALKED_MAX && count <= SOUGHT_MAX {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..DRAWS_MAX * count {
            if found.len() as u64 == count {
                return Ok(found);
            }
            let element = any(call, header)?;
            if seen.insert(element.0.clone()) {
                budget.take(element.0.len() + element.1.len())?;
                found.push(named_of(element));
            }
        }
        // Hashes that somebody chose: a walk finds others.
        (budget, found) = (call.budget(), Vec::new());
    }
    let mut left = header.count;
    for element in call.walk(elements::names_from(header.id, 0), Way::Forward)? {
        let (key, value) = element?;
        // Of those that are left each has the same chance.
        if call.turn.shared.random(left.max(1)) < count - found.len() as u64 {
            budget.take(key.len() + value.len())?;
            found.push(named_of((key, value)));
        }
        left = left.saturating_sub(1);
        if found.len() as u64 == count {
            break;
        }
    }
    Ok(found)
}

/// So many elements at random, some of them perhaps several times.
pub(in crate::commands) fn repeated(
    call: &mut Call<'_, '_>,
    header: &Header,
    count: u64,
) -> Result<Vec<Element>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    let all = if header.count <= WALKED_MAX { call.all_named(header)? } else { Vec::new() };
    for _ in 0..count {
        let element = match all.len() {
            0 => named_of(any(call, header)?),
            length => all[call.turn.shared.random(length as u64) as usize].clone(),
        };
        budget.take(element.0.len() + element.1.len())?;
        found.push(element);
    }
    Ok(found)
}

/// What `HRANDFIELD` and its like are asked: elements of a container, and whether with their values.
pub(in crate::commands) fn sample(
    call: &mut Call<'_, '_>,
    kind: Type,
    with: Option<&str>,
) -> Result<Option<(Vec<Element>, bool)>, Refusal> {
    let number = call.arguments.get(2).map(|count| integer(count)).transpose()?;
    let with = match (call.arguments.get(3..).unwrap_or_default(), with) {
        ([], _) => false,
        ([word], Some(with)) if is(word, with) => true,
        _ => return Err(SYNTAX.into()),
    };
    let Some(number) = number else {
        let header = call.container(call.arguments[1], kind)?;
        return Ok(match header {
            Some(header) => Some((distinct(call, &header, 1)?, false)),
            None => None,
        });
    };
    if number == i64::MIN || with && number.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err("ERR value is out of range".into());
    }
    let found = match call.container(call.arguments[1], kind)? {
        None => Vec::new(),
        Some(header) if number >= 0 => distinct(call, &header, number as u64)?,
        Some(header) => repeated(call, &header, number.unsigned_abs())?,
    };
    Ok(Some((found, with)))
}
