//! Elements by their place, and what is found of them.

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use super::ends::{cut, places};
use crate::elements;
use crate::turn::Way;
use crate::value::{Header, Type};

/// The elements of a list between two indexes, which count from the end where they are negative.
fn indexes(header: &Header, from: i64, to: i64) -> std::ops::Range<i64> {
    let count = header.count as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(count) } else { at };
    let (from, to) = (place(from).max(0), place(to).min(count - 1) + 1);
    if from < to { from..to } else { 0..0 }
}

pub(super) fn lrange(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    let (mut budget, mut found) = (call.budget(), Vec::new());
    if let Some(header) = call.container(call.arguments[1], Type::List)? {
        let asked = indexes(&header, from, to);
        let asked = header.first + asked.start..header.first + asked.end;
        for element in call.walk(elements::places(header.id, asked), Way::Forward)? {
            let (_, value) = element?;
            budget.take(value.len())?;
            found.push(value);
        }
    }
    call.reply.array(found.len());
    found.iter().for_each(|value| call.reply.bulk(value));
    Ok(())
}

/// The key of the element at an index.
fn at(header: &Header, index: i64) -> Option<Vec<u8>> {
    let place =
        if index < 0 { places(header).end.checked_add(index) } else { header.first.checked_add(index) };
    place.filter(|place| places(header).contains(place)).map(|place| elements::placed(header.id, place))
}

pub(super) fn lindex(call: &mut Call<'_, '_>) -> Answer {
    let mut found = None;
    if let Some(header) = call.container(call.arguments[1], Type::List)?
        && let Some(key) = at(&header, integer(call.arguments[2])?)
    {
        found = call.element(key)?.map(<[u8]>::to_vec);
    }
    call.reply.bulk_or_null(found.as_deref());
    Ok(())
}

pub(super) fn lset(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let header = call.container(key, Type::List)?.ok_or("ERR no such key")?;
    let element = at(&header, integer(call.arguments[2])?).ok_or("ERR index out of range")?;
    call.put(element, call.arguments[3]);
    call.touch(key);
    call.reply.ok();
    Ok(())
}

pub(super) fn ltrim(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    let key = call.arguments[1];
    if let Some(mut header) = call.container(key, Type::List)? {
        let kept = indexes(&header, from, to);
        let right = header.count - kept.end as u64;
        cut(call, &mut header, kept.start as u64, right);
        call.keep(key, &header)?;
    }
    call.reply.ok();
    Ok(())
}

/// What `LPOS` is told besides.
struct Sought {
    /// From the end where it is negative, never 0.
    rank: i64,
    count: Option<usize>,
    most: usize,
}

fn sought(call: &Call<'_, '_>) -> Result<Sought, Refusal> {
    let mut sought = Sought { rank: 1, count: None, most: usize::MAX };
    let natural = |text: &[u8]| {
        let number = integer(text).ok().and_then(|number| usize::try_from(number).ok());
        number.map(|number| if number == 0 { usize::MAX } else { number })
    };
    for pair in call.arguments[3..].chunks(2) {
        match pair {
            [word, rank] if is(word, "RANK") => {
                sought.rank = integer(rank)?;
                if sought.rank == 0 || sought.rank == i64::MIN {
                    return Err(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ..."
                            .into(),
                    );
                }
            }
            [word, count] if is(word, "COUNT") => {
                sought.count = Some(natural(count).ok_or("ERR COUNT can't be negative")?);
            }
            [word, most] if is(word, "MAXLEN") => {
                sought.most = natural(most).ok_or("ERR MAXLEN can't be negative")?;
            }
            _ => return Err(SYNTAX.into()),
        }
    }
    Ok(sought)
}

pub(super) fn lpos(call: &mut Call<'_, '_>) -> Answer {
    let Sought { rank, count, most } = sought(call)?;
    let wanted = call.arguments[2];
    let (mut budget, mut found) = (call.budget(), Vec::new());
    if let Some(header) = call.container(call.arguments[1], Type::List)? {
        let way = if rank > 0 { Way::Forward } else { Way::Backward };
        let mut skipped = rank.unsigned_abs() - 1;
        let walk = call.walk(elements::places(header.id, places(&header)), way)?;
        for (step, element) in walk.take(most).enumerate() {
            if element?.1 != wanted {
                continue;
            }
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            budget.take(0)?;
            let step = step as i64;
            found.push(if rank > 0 { step } else { header.count as i64 - 1 - step });
            if found.len() >= count.unwrap_or(1) {
                break;
            }
        }
    }
    match (count, found.first()) {
        (Some(_), _) => {
            call.reply.array(found.len());
            found.into_iter().for_each(|index| call.reply.int(index));
        }
        (None, Some(index)) => call.reply.int(*index),
        (None, None) => call.reply.null(),
    }
    Ok(())
}
