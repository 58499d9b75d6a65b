//! `SORT`: elements of a list, a set or a sorted set in another order. What other keys say, `BY` and `GET` patterns, is
//! refused, as in a cluster: those keys are not known before the elements are.

use super::{Answer, Call, Command, Refusal, STORED, SYNTAX, Use, WRONG_TYPE, integer, is, numbers, strings};
use crate::elements;
use crate::turn::Way;
use crate::value::{Header, Type};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "SORT", arity: -2, keys: (1, STORED, 1), uses: Use::Changes, run: sort },
    Command { name: "SORT_RO", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: sort },
];

struct Options<'a> {
    is_kept: bool,
    is_turned: bool,
    is_of_texts: bool,
    limit: Option<(i64, i64)>,
    /// How often the element itself is shown.
    shown: usize,
    target: Option<&'a [u8]>,
}

const NO_PATTERNS: &str =
    "ERR BY and GET of other keys are not there: those keys are not known before the elements are";

fn options<'a>(mut words: &'a [&'a [u8]], stores: bool) -> Result<Options<'a>, Refusal> {
    let mut options =
        Options { is_kept: false, is_turned: false, is_of_texts: false, limit: None, shown: 0, target: None };
    loop {
        words = match words {
            [] => break,
            [word, rest @ ..] if is(word, "ASC") || is(word, "DESC") => {
                options.is_turned = is(word, "DESC");
                rest
            }
            [word, rest @ ..] if is(word, "ALPHA") => {
                options.is_of_texts = true;
                rest
            }
            [word, skipped, most, rest @ ..] if is(word, "LIMIT") => {
                options.limit = Some((integer(skipped)?, integer(most)?));
                rest
            }
            [word, pattern, rest @ ..] if is(word, "BY") => {
                if pattern.contains(&b'*') {
                    return Err(NO_PATTERNS.into());
                }
                options.is_kept = true;
                rest
            }
            [word, pattern, rest @ ..] if is(word, "GET") => {
                if *pattern != b"#" {
                    return Err(NO_PATTERNS.into());
                }
                options.shown += 1;
                rest
            }
            [word, target, rest @ ..] if is(word, "STORE") && stores => {
                options.target = Some(target);
                rest
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    options.shown = options.shown.max(1);
    Ok(options)
}

/// All elements, in the order in which they are kept.
fn elements_of(call: &mut Call<'_, '_>, key: &[u8], way: Way) -> Result<Vec<Vec<u8>>, Refusal> {
    let Some(stored) = call.stored(key)? else { return Ok(Vec::new()) };
    let header = Header::of(&stored.bytes).ok_or(WRONG_TYPE)?;
    let range = match header.kind {
        Type::List => elements::places(header.id, header.first..header.first + header.count as i64),
        Type::Set => elements::names_from(header.id, 0),
        Type::SortedSet => elements::scores(header.id),
        _ => return Err(WRONG_TYPE.into()),
    };
    let (mut budget, mut all) = (call.budget(), Vec::new());
    // Only what has an order of its own has it turned.
    let way = if header.kind == Type::Set { Way::Forward } else { way };
    for element in call.walk(range, way)? {
        let (key, value) = element?;
        let one = match header.kind {
            Type::List => value,
            Type::Set => elements::name_of(&key).1.to_vec(),
            _ => elements::score_of(&key).1.to_vec(),
        };
        budget.take(one.len() + size_of::<(f64, Vec<u8>)>())?;
        all.push(one);
    }
    Ok(all)
}

fn sorted(all: Vec<Vec<u8>>, options: &Options<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut all = all;
    if options.is_kept {
        // They are in order already.
    } else if options.is_of_texts {
        all.sort_unstable();
        if options.is_turned {
            all.reverse();
        }
    } else {
        let number = |one: Vec<u8>| {
            // Redis reads until the first zero, and nothing as 0.
            let text = one.split(|byte| *byte == 0).next().unwrap_or_default();
            let number = if text.is_empty() { Some(0.0) } else { numbers::score(text) };
            let number = number.ok_or("ERR One or more scores can't be converted into double")?;
            Ok((number, one))
        };
        let mut numbers = all.into_iter().map(number).collect::<Result<Vec<_>, Refusal>>()?;
        // Of equal numbers the texts decide.
        numbers.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        if options.is_turned {
            numbers.reverse();
        }
        all = numbers.into_iter().map(|(_, one)| one).collect();
    }
    let (skipped, most) = options.limit.unwrap_or((0, -1));
    let skipped = usize::try_from(skipped).unwrap_or(0);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Ok(all.into_iter().skip(skipped).take(most).collect())
}

fn sort(call: &mut Call<'_, '_>) -> Answer {
    let options = options(&call.arguments[2..], is(call.arguments[0], "SORT"))?;
    let way = if options.is_turned && options.is_kept { Way::Backward } else { Way::Forward };
    let all = elements_of(call, call.arguments[1], way)?;
    call.turn.worked(all.iter().map(Vec::len).sum::<usize>().saturating_mul(2));
    let all = sorted(all, &options)?;
    let all: Vec<Vec<u8>> = match options.shown {
        1 => all,
        times => {
            let mut budget = call.budget();
            let bytes = all.iter().map(|one| one.len() + size_of::<Vec<u8>>()).sum::<usize>();
            budget.take(bytes.saturating_mul(times))?;
            all.into_iter().flat_map(|one| std::iter::repeat_n(one, times)).collect()
        }
    };
    let Some(target) = options.target else {
        call.reply.array(all.len());
        all.iter().for_each(|one| call.reply.bulk(one));
        return Ok(());
    };
    strings::checked_key(call, target)?;
    let mut header = call.new_container(Type::List);
    header.count = all.len() as u64;
    for (place, one) in all.iter().enumerate() {
        call.put(elements::placed(header.id, place as i64), one);
    }
    call.replace(target, &header)?;
    call.reply.int(header.count.cast_signed());
    Ok(())
}
