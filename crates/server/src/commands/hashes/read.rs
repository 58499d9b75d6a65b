//! What reads hashes.

use super::super::{Answer, Call, Refusal, containers, is};
use crate::value::Type;

fn value_of(call: &mut Call<'_, '_>, field: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(header) = call.container(call.arguments[1], Type::Hash)? else { return Ok(None) };
    Ok(call.named(&header, field)?.map(<[u8]>::to_vec))
}

pub(super) fn hget(call: &mut Call<'_, '_>) -> Answer {
    let found = value_of(call, call.arguments[2])?;
    call.reply.bulk_or_null(found.as_deref());
    Ok(())
}

pub(super) fn hmget(call: &mut Call<'_, '_>) -> Answer {
    let (mut budget, mut found) = (call.budget(), Vec::with_capacity(call.arguments.len() - 2));
    for field in &call.arguments[2..] {
        let value = value_of(call, field)?;
        budget.take(value.as_ref().map_or(0, Vec::len))?;
        found.push(value);
    }
    call.reply.array(found.len());
    found.iter().for_each(|value| call.reply.bulk_or_null(value.as_deref()));
    Ok(())
}

pub(super) fn hexists(call: &mut Call<'_, '_>) -> Answer {
    let is_there = value_of(call, call.arguments[2])?.is_some();
    call.reply.int(i64::from(is_there));
    Ok(())
}

pub(super) fn hstrlen(call: &mut Call<'_, '_>) -> Answer {
    let length = value_of(call, call.arguments[2])?.map_or(0, |value| value.len());
    call.reply.int(length as i64);
    Ok(())
}

pub(super) fn hlen(call: &mut Call<'_, '_>) -> Answer {
    let header = call.container(call.arguments[1], Type::Hash)?;
    call.reply.int(header.map_or(0, |header| header.count as i64));
    Ok(())
}

/// Also `HKEYS` and `HVALS`.
pub(super) fn hgetall(call: &mut Call<'_, '_>) -> Answer {
    let all = match call.container(call.arguments[1], Type::Hash)? {
        Some(header) => call.all_named(&header)?,
        None => Vec::new(),
    };
    let name = call.arguments[0];
    match is(name, "HGETALL") {
        true => call.reply.map(all.len()),
        false => call.reply.array(all.len()),
    }
    for (field, value) in &all {
        if !is(name, "HVALS") {
            call.reply.bulk(field);
        }
        if !is(name, "HKEYS") {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

pub(super) fn hrandfield(call: &mut Call<'_, '_>) -> Answer {
    let found = containers::sample(call, Type::Hash, Some("WITHVALUES"))?;
    if call.arguments.len() == 2 {
        let field = found.as_ref().and_then(|(found, _)| found.first());
        call.reply.bulk_or_null(field.map(|(field, _)| field.as_slice()));
        return Ok(());
    }
    let (found, with_values) = found.unwrap_or_default();
    let is_paired = with_values && call.reply.version == 3;
    call.reply.array(if with_values && !is_paired { 2 * found.len() } else { found.len() });
    for (field, value) in &found {
        if is_paired {
            call.reply.array(2);
        }
        call.reply.bulk(field);
        if with_values {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

pub(super) fn hscan(call: &mut Call<'_, '_>) -> Answer {
    containers::scan(call, Type::Hash, |value| Some(value.to_vec()))
}
