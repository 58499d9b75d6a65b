//! Scans of containers in pieces, by a cursor that holds whatever is written meanwhile.

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use crate::turn::Way;
use crate::value::{Header, Type};
use crate::{elements, glob};

/// The most that one call looks at.
const COUNT_MAX: i64 = 100_000;
/// What it looks at is about this at most.
const LOOKED_BYTES_MAX: usize = 4 << 20;

/// What a scan of a container is asked.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
}

fn scan_of<'a>(words: &[&'a [u8]]) -> Result<Scan<'a>, Refusal> {
    let mut scan = Scan { pattern: None, count: 10 };
    for pair in words.chunks(2) {
        match pair {
            [word, asked] if is(word, "MATCH") => scan.pattern = Some(glob::checked(asked)?),
            [word, asked] if is(word, "COUNT") => match integer(asked)? {
                count if count >= 1 => scan.count = count.min(COUNT_MAX) as usize,
                _ => return Err(SYNTAX.into()),
            },
            _ => return Err(SYNTAX.into()),
        }
    }
    Ok(scan)
}

/// Answers with names from a cursor on, and what `shown` makes of their values.
pub(in crate::commands) fn scan(
    call: &mut Call<'_, '_>,
    kind: Type,
    shown: fn(&[u8]) -> Option<Vec<u8>>,
) -> Answer {
    let cursor = std::str::from_utf8(call.arguments[2]).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let (next, found) = match call.container(call.arguments[1], kind)? {
        Some(header) => {
            let asked = scan_of(&call.arguments[3..])?;
            names_from(call, &header, cursor, &asked, shown)?
        }
        None => (0, Vec::new()),
    };
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|text| call.reply.bulk(text));
    Ok(())
}

/// Some names, and the next cursor. Names of one hash come together, so that each which stays comes exactly once.
fn names_from(
    call: &Call<'_, '_>,
    header: &Header,
    cursor: u64,
    asked: &Scan<'_>,
    shown: fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<(u64, Vec<Vec<u8>>), Refusal> {
    let Ok(from) = u32::try_from(cursor) else { return Ok((0, Vec::new())) };
    let (mut budget, mut found, mut seen, mut last, mut looked) = (call.budget(), Vec::new(), 0, from, 0);
    for element in call.walk(elements::names_from(header.id, from), Way::Forward)? {
        let (key, value) = element?;
        let (hash, name) = elements::name_of(&key);
        if (seen >= asked.count || looked > LOOKED_BYTES_MAX) && hash != last {
            return Ok((u64::from(hash), found));
        }
        (seen, last, looked) = (seen + 1, hash, looked + name.len() + value.len());
        if asked.pattern.is_none_or(|pattern| glob::matches(pattern, name)) {
            budget.take(name.len() + value.len())?;
            found.push(name.to_vec());
            found.extend(shown(&value));
        }
    }
    Ok((0, found))
}
