//! Texts.

use super::{Answer, Call, Command, NOT_AN_INTEGER, Refusal, SYNTAX, Use, expiry, integer, is};
use crate::value::Type;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "GET", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: get },
    Command { name: "SET", arity: -3, keys: (1, 1, 1), uses: Use::Writes, run: set },
    Command { name: "SETNX", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: setnx },
    Command { name: "SETEX", arity: 4, keys: (1, 1, 1), uses: Use::Writes, run: setex },
    Command { name: "PSETEX", arity: 4, keys: (1, 1, 1), uses: Use::Writes, run: setex },
    Command { name: "GETSET", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: getset },
    Command { name: "GETDEL", arity: 2, keys: (1, 1, 1), uses: Use::Changes, run: getdel },
    Command { name: "GETEX", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: getex },
    Command { name: "MGET", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: mget },
    Command { name: "MSET", arity: -3, keys: (1, -1, 2), uses: Use::Writes, run: mset },
    Command { name: "MSETNX", arity: -3, keys: (1, -1, 2), uses: Use::Changes, run: msetnx },
    Command { name: "STRLEN", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: strlen },
    Command { name: "APPEND", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: append },
    Command { name: "GETRANGE", arity: 4, keys: (1, 1, 1), uses: Use::Reads, run: getrange },
    Command { name: "SUBSTR", arity: 4, keys: (1, 1, 1), uses: Use::Reads, run: getrange },
    Command { name: "SETRANGE", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: setrange },
];

fn get(call: &mut Call<'_, '_>) -> Answer {
    let Call { arguments, client, turn, reply } = call;
    reply.bulk_or_null(super::string(turn, client.database, arguments[1])?);
    Ok(())
}

/// What `SET` is told besides.
#[derive(Default)]
struct SetOptions {
    /// The key must be there, or must not.
    wants: Option<bool>,
    gives_old: bool,
    keeps_expiry: bool,
    expiry: Option<u64>,
}

fn set_options(call: &Call<'_, '_>) -> Result<SetOptions, Refusal> {
    let (mut options, mut rest) = (SetOptions::default(), &call.arguments[3..]);
    loop {
        rest = match rest {
            [] => break,
            [word, behind @ ..] if is(word, "NX") && options.wants.is_none() => {
                options.wants = Some(false);
                behind
            }
            [word, behind @ ..] if is(word, "XX") && options.wants.is_none() => {
                options.wants = Some(true);
                behind
            }
            [word, behind @ ..] if is(word, "GET") => {
                options.gives_old = true;
                behind
            }
            [word, behind @ ..] if is(word, "KEEPTTL") && options.expiry.is_none() => {
                options.keeps_expiry = true;
                behind
            }
            [word, time, behind @ ..] if options.expiry.is_none() && !options.keeps_expiry => {
                options.expiry = Some(expiry::positive(call, word, time, "set")?);
                behind
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    Ok(options)
}

fn set(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    let options = set_options(call)?;
    let old = if options.gives_old { call.string(key)?.map(<[u8]>::to_vec) } else { None };
    let is_set = match options.wants {
        Some(wanted) => wanted == call.stored(key)?.is_some(),
        None => true,
    };
    if is_set {
        let expiry = if options.keeps_expiry { call.expiry(key)? } else { options.expiry };
        write(call, key, value, expiry)?;
    }
    match (options.gives_old, is_set) {
        (true, _) => call.reply.bulk_or_null(old.as_deref()),
        (false, true) => call.reply.ok(),
        (false, false) => call.reply.null(),
    }
    Ok(())
}

/// Sets a text, unless key or text are longer than a database takes. One that is over by then is deleted.
pub(super) fn write(call: &mut Call<'_, '_>, key: &[u8], text: &[u8], expiry: Option<u64>) -> Answer {
    checked_key(call, key)?;
    let table = call.turn.shared.table(call.client.database)?;
    if text.len() >= table.value_bytes_max() {
        return Err("ERR string exceeds maximum allowed size (proto-max-bulk-len)".into());
    }
    match expiry.is_some_and(|expiry| expiry <= call.turn.now) {
        true => call.delete(key),
        false => call.set(key, text, expiry),
    }
    Ok(())
}

pub(super) fn checked_key(call: &Call<'_, '_>, key: &[u8]) -> Answer {
    let most = call.turn.shared.table(call.client.database)?.key_bytes_max();
    match key.len() > most {
        true => Err(format!("ERR a key has {} bytes, and at most {most} are allowed", key.len()).into()),
        false => Ok(()),
    }
}

fn setnx(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    let is_set = call.stored(key)?.is_none();
    if is_set {
        write(call, key, value, None)?;
    }
    call.reply.int(i64::from(is_set));
    Ok(())
}

fn setex(call: &mut Call<'_, '_>) -> Answer {
    let (key, time, value) = (call.arguments[1], call.arguments[2], call.arguments[3]);
    let (unit, name) =
        if is(call.arguments[0], "SETEX") { (&b"EX"[..], "setex") } else { (&b"PX"[..], "psetex") };
    let expiry = expiry::positive(call, unit, time, name)?;
    write(call, key, value, Some(expiry))?;
    call.reply.ok();
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    let old = call.string(key)?.map(<[u8]>::to_vec);
    write(call, key, value, None)?;
    call.reply.bulk_or_null(old.as_deref());
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let old = call.string(key)?.map(<[u8]>::to_vec);
    if old.is_some() {
        call.delete(key);
    }
    call.reply.bulk_or_null(old.as_deref());
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let words = &call.arguments[2..];
    let is_time = |word: &[u8]| ["EX", "PX", "EXAT", "PXAT"].iter().any(|unit| is(word, unit));
    match words {
        [] => {}
        [word] if is(word, "PERSIST") => {}
        [word, _] if is_time(word) => {}
        _ => return Err(SYNTAX.into()),
    }
    let Some(text) = call.string(key)?.map(<[u8]>::to_vec) else {
        call.reply.null();
        return Ok(());
    };
    match words {
        [word, time] => {
            let expiry = expiry::positive(call, word, time, "getex")?;
            write(call, key, &text, Some(expiry))?;
        }
        [_] if call.expiry(key)?.is_some() => write(call, key, &text, None)?,
        _ => {}
    }
    call.reply.bulk(&text);
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Answer {
    let bytes_max = super::reply_bytes_max(call);
    let Call { arguments, client, turn, reply } = call;
    let begin = reply.bytes.len();
    reply.array(arguments.len() - 1);
    for key in &arguments[1..] {
        // What is no text is not there.
        let text = match turn.get(client.database, key) {
            Ok(stored) => stored.filter(|stored| Type::of(&stored.bytes) == Some(Type::String)),
            Err(error) => {
                reply.bytes.truncate(begin);
                return Err(error.into());
            }
        };
        if reply.bytes.len() - begin + text.map_or(0, |text| text.bytes.len()) > bytes_max {
            reply.bytes.truncate(begin);
            return Err(format!("ERR the reply is longer than {bytes_max} bytes; ask for fewer keys").into());
        }
        reply.bulk_or_null(text.map(|text| &text.bytes[1..]));
    }
    Ok(())
}

/// A key and a value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Keys and values in turn.
fn pairs<'a>(call: &Call<'a, '_>, name: &str) -> Result<Vec<Pair<'a>>, Refusal> {
    if call.arguments.len().is_multiple_of(2) {
        return Err(format!("ERR wrong number of arguments for '{name}' command").into());
    }
    let pairs: Vec<_> = call.arguments[1..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.iter().try_for_each(|(key, _)| checked_key(call, key))?;
    Ok(pairs)
}

fn mset(call: &mut Call<'_, '_>) -> Answer {
    for (key, value) in pairs(call, "mset")? {
        write(call, key, value, None)?;
    }
    call.reply.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> Answer {
    let pairs = pairs(call, "msetnx")?;
    for (key, _) in &pairs {
        if call.stored(key)?.is_some() {
            call.reply.int(0);
            return Ok(());
        }
    }
    for (key, value) in pairs {
        write(call, key, value, None)?;
    }
    call.reply.int(1);
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Answer {
    let length = call.string(call.arguments[1])?.map_or(0, <[u8]>::len);
    call.reply.int(length as i64);
    Ok(())
}

fn append(call: &mut Call<'_, '_>) -> Answer {
    let (key, more) = (call.arguments[1], call.arguments[2]);
    let old = call.string(key)?.unwrap_or_default();
    let mut text = Vec::with_capacity(old.len() + more.len());
    text.extend_from_slice(old);
    text.extend_from_slice(more);
    if text.len() > call.turn.shared.config.argument_bytes_max {
        return Err("ERR string exceeds maximum allowed size (proto-max-bulk-len)".into());
    }
    let expiry = call.expiry(key)?;
    write(call, key, &text, expiry)?;
    call.reply.int(text.len() as i64);
    Ok(())
}

/// The bytes from one place to another, both counted from the end where they are negative.
pub(super) fn span(from: i64, to: i64, length: usize) -> std::ops::Range<usize> {
    let length = length as i64;
    let place = |at: i64| if at < 0 { (length + at).max(0) } else { at };
    // Both before the beginning, and the wrong way round: nothing, as Redis has it.
    let (start, end) = (place(from), place(to).min(length - 1) + 1);
    if (from < 0 && to < 0 && from > to) || start >= end { 0..0 } else { start as usize..end as usize }
}

fn getrange(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    let Call { arguments, client, turn, reply } = call;
    let text = super::string(turn, client.database, arguments[1])?.unwrap_or_default();
    reply.bulk(&text[span(from, to, text.len())]);
    Ok(())
}

fn setrange(call: &mut Call<'_, '_>) -> Answer {
    let (key, offset, more) = (call.arguments[1], integer(call.arguments[2])?, call.arguments[3]);
    let offset = usize::try_from(offset).map_err(|_| Refusal::from("ERR offset is out of range"))?;
    let mut text = call.string(key)?.unwrap_or_default().to_vec();
    if !more.is_empty() {
        let end =
            offset.checked_add(more.len()).filter(|end| *end <= call.turn.shared.config.argument_bytes_max);
        let end = end.ok_or("ERR string exceeds maximum allowed size (proto-max-bulk-len)")?;
        let expiry = call.expiry(key)?;
        if text.len() < end {
            text.resize(end, 0);
        }
        text[offset..end].copy_from_slice(more);
        write(call, key, &text, expiry)?;
    }
    call.reply.int(text.len() as i64);
    Ok(())
}

/// A number as text, of a key that has one.
pub(super) fn number_of(call: &mut Call<'_, '_>, key: &[u8]) -> Result<i64, Refusal> {
    match call.string(key)? {
        None => Ok(0),
        Some(text) => integer(text).map_err(|_| NOT_AN_INTEGER.into()),
    }
}
