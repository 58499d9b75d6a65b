//! When keys expire.

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is, shown};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "EXPIRE", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: expire },
    Command { name: "PEXPIRE", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: expire },
    Command { name: "EXPIREAT", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: expire },
    Command { name: "PEXPIREAT", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: expire },
    Command { name: "TTL", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: ttl },
    Command { name: "PTTL", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: ttl },
    Command { name: "EXPIRETIME", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: ttl },
    Command { name: "PEXPIRETIME", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: ttl },
    Command { name: "PERSIST", arity: 2, keys: (1, 1, 1), uses: Use::Changes, run: persist },
];

/// A time in some unit, from now on or since 1970, as milliseconds since 1970.
fn time(call: &Call<'_, '_>, unit: &[u8], number: &[u8], name: &str) -> Result<i64, Refusal> {
    let number = integer(number)?;
    let invalid = || Refusal::from(format!("ERR invalid expire time in '{name}' command"));
    let (is_seconds, is_relative) = match unit {
        unit if is(unit, "EX") => (true, true),
        unit if is(unit, "PX") => (false, true),
        unit if is(unit, "EXAT") => (true, false),
        unit if is(unit, "PXAT") => (false, false),
        _ => return Err(SYNTAX.into()),
    };
    let milliseconds = if is_seconds { number.checked_mul(1000).ok_or_else(invalid)? } else { number };
    let begin = if is_relative { call.turn.now as i64 } else { 0 };
    milliseconds.checked_add(begin).ok_or_else(invalid)
}

/// The same where it must be a number above zero.
pub(super) fn positive(call: &Call<'_, '_>, unit: &[u8], number: &[u8], name: &str) -> Result<u64, Refusal> {
    let at = time(call, unit, number, name)?;
    match integer(number)? > 0 {
        true => Ok(at as u64),
        false => Err(format!("ERR invalid expire time in '{name}' command").into()),
    }
}

/// A time as replies give it: what the library has written may be later.
fn milliseconds(expiry: u64) -> i64 {
    i64::try_from(expiry).unwrap_or(i64::MAX)
}

/// Whether a new time takes the place of an old one.
fn may_replace(call: &Call<'_, '_>, old: Option<u64>, new: i64) -> Result<bool, Refusal> {
    let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
    for word in &call.arguments[3..] {
        match word {
            word if is(word, "NX") => nx = true,
            word if is(word, "XX") => xx = true,
            word if is(word, "GT") => gt = true,
            word if is(word, "LT") => lt = true,
            word => {
                let word = shown(word);
                return Err(format!("ERR Unsupported option {word}").into());
            }
        }
    }
    if nx && (xx || gt || lt) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if gt && lt {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    // What never expires does so later than all.
    let is_later = old.is_some_and(|old| new > milliseconds(old));
    let is_sooner = old.is_none_or(|old| new < milliseconds(old));
    Ok(!(nx && old.is_some() || xx && old.is_none() || gt && !is_later || lt && !is_sooner))
}

fn expire(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let (unit, name) = match call.arguments[0].to_ascii_lowercase().as_slice() {
        b"expire" => (&b"EX"[..], "expire"),
        b"pexpire" => (&b"PX"[..], "pexpire"),
        b"expireat" => (&b"EXAT"[..], "expireat"),
        _ => (&b"PXAT"[..], "pexpireat"),
    };
    let at = time(call, unit, call.arguments[2], name)?;
    let found = call.stored(key)?.cloned();
    let may = may_replace(call, found.as_ref().and_then(|stored| stored.expiry), at)?;
    let Some(mut stored) = found.filter(|_| may) else {
        call.reply.int(0);
        return Ok(());
    };
    let database = call.client.database;
    if at <= call.turn.now as i64 {
        call.delete(key);
    } else {
        stored.expiry = Some(at as u64);
        call.turn.set(database, key, Some(stored));
    }
    call.reply.int(1);
    Ok(())
}

fn ttl(call: &mut Call<'_, '_>) -> Answer {
    let now = call.turn.now;
    let number = match call.stored(call.arguments[1])? {
        None => -2,
        Some(stored) => stored.expiry.map_or(-1, milliseconds),
    };
    let left = number - now as i64;
    call.reply.int(match call.arguments[0].to_ascii_lowercase().as_slice() {
        _ if number < 0 => number,
        b"ttl" => left.saturating_add(500) / 1000,
        b"pttl" => left,
        b"expiretime" => number.saturating_add(500) / 1000,
        _ => number,
    });
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Answer {
    let (database, key) = (call.client.database, call.arguments[1]);
    let found = call.stored(key)?.filter(|stored| stored.expiry.is_some()).cloned();
    call.reply.int(i64::from(found.is_some()));
    if let Some(mut stored) = found {
        stored.expiry = None;
        call.turn.set(database, key, Some(stored));
    }
    Ok(())
}
