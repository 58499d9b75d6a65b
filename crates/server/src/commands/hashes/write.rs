//! What changes hashes.

use super::super::{Answer, Call, Refusal, counters, integer, is, wrong_arity};
use crate::elements;
use crate::value::{Header, Type};

/// Sets a field. Returns whether it is new.
fn set(call: &mut Call<'_, '_>, header: &mut Header, field: &[u8], value: &[u8]) -> Result<bool, Refusal> {
    let is_new = call.named(header, field)?.is_none();
    header.count += u64::from(is_new);
    call.put(elements::named(header.id, field), value);
    Ok(is_new)
}

/// Keeps a hash of which a field was set.
fn keep(call: &mut Call<'_, '_>, key: &[u8], header: &Header, has_grown: bool) -> Answer {
    match has_grown {
        true => call.keep(key, header)?,
        false => call.touch(key),
    }
    Ok(())
}

pub(super) fn hset(call: &mut Call<'_, '_>) -> Answer {
    let (key, is_old) = (call.arguments[1], is(call.arguments[0], "HMSET"));
    let pairs = call.arguments[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(wrong_arity(if is_old { "hmset" } else { "hset" }));
    }
    let mut header = call.container_or_new(key, Type::Hash)?;
    pairs.clone().try_for_each(|pair| call.checked_name(pair[0]))?;
    let mut added = 0;
    for pair in pairs {
        added += i64::from(set(call, &mut header, pair[0], pair[1])?);
    }
    keep(call, key, &header, added > 0)?;
    match is_old {
        true => call.reply.ok(),
        false => call.reply.int(added),
    }
    Ok(())
}

pub(super) fn hsetnx(call: &mut Call<'_, '_>) -> Answer {
    let (key, field) = (call.arguments[1], call.arguments[2]);
    let mut header = call.container_or_new(key, Type::Hash)?;
    call.checked_name(field)?;
    let is_new = call.named(&header, field)?.is_none();
    if is_new {
        set(call, &mut header, field, call.arguments[3])?;
        call.keep(key, &header)?;
    }
    call.reply.int(i64::from(is_new));
    Ok(())
}

pub(super) fn hdel(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let Some(mut header) = call.container(key, Type::Hash)? else {
        call.reply.int(0);
        return Ok(());
    };
    let before = header.count;
    for field in &call.arguments[2..] {
        if call.named(&header, field)?.is_some() {
            call.remove(elements::named(header.id, field));
            header.count = header.count.saturating_sub(1);
        }
    }
    if header.count < before {
        call.keep(key, &header)?;
    }
    call.reply.int((before - header.count) as i64);
    Ok(())
}

pub(super) fn hincrby(call: &mut Call<'_, '_>) -> Answer {
    let (key, field, more) = (call.arguments[1], call.arguments[2], integer(call.arguments[3])?);
    let mut header = call.container_or_new(key, Type::Hash)?;
    call.checked_name(field)?;
    let old = match call.named(&header, field)? {
        None => 0,
        Some(text) => integer(text).map_err(|_| Refusal::from("ERR hash value is not an integer"))?,
    };
    let sum = old.checked_add(more).ok_or("ERR increment or decrement would overflow")?;
    let is_new = set(call, &mut header, field, sum.to_string().as_bytes())?;
    keep(call, key, &header, is_new)?;
    call.reply.int(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(call: &mut Call<'_, '_>) -> Answer {
    let (key, field, more) = (call.arguments[1], call.arguments[2], counters::float(call.arguments[3])?);
    if !more.is_finite() {
        return Err("ERR value is NaN or Infinity".into());
    }
    let mut header = call.container_or_new(key, Type::Hash)?;
    call.checked_name(field)?;
    let old = match call.named(&header, field)? {
        None => 0.0,
        Some(text) => counters::float(text).map_err(|_| Refusal::from("ERR hash value is not a float"))?,
    };
    let sum = old + more;
    if !sum.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let text = counters::shown(sum);
    let is_new = set(call, &mut header, field, text.as_bytes())?;
    keep(call, key, &header, is_new)?;
    call.reply.bulk(text.as_bytes());
    Ok(())
}
