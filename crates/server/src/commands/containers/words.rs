//! Arguments that commands on several containers have in common.

use super::super::{Call, Refusal, SYNTAX, integer, is};

type Arguments<'a> = &'a [&'a [u8]];

/// The keys of a command that says before them how many there are, and what stands behind.
pub(in crate::commands) fn counted<'a>(
    call: &Call<'a, '_>,
) -> Result<(Arguments<'a>, Arguments<'a>), Refusal> {
    counted_of(call.arguments)
}

/// The same of arguments of which the second says how many.
pub(in crate::commands) fn counted_of(
    arguments: Arguments<'_>,
) -> Result<(Arguments<'_>, Arguments<'_>), Refusal> {
    let count = integer(arguments[1]).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or("ERR numkeys should be greater than 0")?;
    arguments[2..].split_at_checked(count).ok_or(SYNTAX.into())
}

/// The most that `LIMIT` asks for.
pub(in crate::commands) fn limit(words: &[&[u8]]) -> Result<usize, Refusal> {
    match words {
        [] => Ok(usize::MAX),
        [word, limit] if is(word, "LIMIT") => match integer(limit) {
            Ok(0) => Ok(usize::MAX),
            Ok(limit) if limit > 0 => Ok(limit as usize),
            _ => Err("ERR LIMIT can't be negative".into()),
        },
        _ => Err(SYNTAX.into()),
    }
}

/// How many a pop takes: one, shown by itself, where nothing is said.
pub(in crate::commands) fn popped(words: &[&[u8]]) -> Result<Option<u64>, Refusal> {
    match words {
        [] => Ok(None),
        [count] => match integer(count) {
            Ok(count) if count >= 0 => Ok(Some(count as u64)),
            _ => Err("ERR value is out of range, must be positive".into()),
        },
        _ => Err(SYNTAX.into()),
    }
}

/// From which end `LMPOP` and `ZMPOP` take, and how many.
pub(in crate::commands) fn end_and_count<'a>(words: &[&'a [u8]]) -> Result<(&'a [u8], u64), Refusal> {
    match words {
        [end] => Ok((end, 1)),
        [end, word, count] if is(word, "COUNT") => match integer(count) {
            Ok(count) if count > 0 => Ok((end, count as u64)),
            _ => Err("ERR count should be greater than 0".into()),
        },
        _ => Err(SYNTAX.into()),
    }
}
