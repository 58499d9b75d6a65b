//! Members of one set.

use super::super::{Answer, Call, Refusal, containers};
use crate::elements;
use crate::value::{Header, Type};

/// Adds a member. Returns whether it is new.
fn add(call: &mut Call<'_, '_>, header: &mut Header, member: &[u8]) -> Result<bool, Refusal> {
    let is_new = call.named(header, member)?.is_none();
    if is_new {
        call.put(elements::named(header.id, member), &[]);
        header.count += 1;
    }
    Ok(is_new)
}

/// Removes a member. Returns whether it was there.
fn remove(call: &mut Call<'_, '_>, header: &mut Header, member: &[u8]) -> Result<bool, Refusal> {
    let was_there = call.named(header, member)?.is_some();
    if was_there {
        call.remove(elements::named(header.id, member));
        header.count = header.count.saturating_sub(1);
    }
    Ok(was_there)
}

pub(super) fn sadd(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let mut header = call.container_or_new(key, Type::Set)?;
    call.arguments[2..].iter().try_for_each(|member| call.checked_name(member))?;
    let mut added = 0;
    for member in &call.arguments[2..] {
        added += i64::from(add(call, &mut header, member)?);
    }
    if added > 0 {
        call.keep(key, &header)?;
    }
    call.reply.int(added);
    Ok(())
}

pub(super) fn srem(call: &mut Call<'_, '_>) -> Answer {
    let (key, mut removed) = (call.arguments[1], 0);
    if let Some(mut header) = call.container(key, Type::Set)? {
        for member in &call.arguments[2..] {
            removed += i64::from(remove(call, &mut header, member)?);
        }
        if removed > 0 {
            call.keep(key, &header)?;
        }
    }
    call.reply.int(removed);
    Ok(())
}

fn has(call: &mut Call<'_, '_>, member: &[u8]) -> Result<i64, Refusal> {
    let Some(header) = call.container(call.arguments[1], Type::Set)? else { return Ok(0) };
    Ok(i64::from(call.named(&header, member)?.is_some()))
}

pub(super) fn sismember(call: &mut Call<'_, '_>) -> Answer {
    let has = has(call, call.arguments[2])?;
    call.reply.int(has);
    Ok(())
}

pub(super) fn smismember(call: &mut Call<'_, '_>) -> Answer {
    let mut found = Vec::with_capacity(call.arguments.len() - 2);
    for member in &call.arguments[2..] {
        found.push(has(call, member)?);
    }
    call.reply.array(found.len());
    found.into_iter().for_each(|has| call.reply.int(has));
    Ok(())
}

pub(super) fn smembers(call: &mut Call<'_, '_>) -> Answer {
    let all = match call.container(call.arguments[1], Type::Set)? {
        Some(header) => call.all_named(&header)?,
        None => Vec::new(),
    };
    call.reply.set(all.len());
    all.iter().for_each(|(member, _)| call.reply.bulk(member));
    Ok(())
}

pub(super) fn scard(call: &mut Call<'_, '_>) -> Answer {
    let header = call.container(call.arguments[1], Type::Set)?;
    call.reply.int(header.map_or(0, |header| header.count as i64));
    Ok(())
}

pub(super) fn spop(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let count = containers::popped(&call.arguments[2..])?;
    let mut taken = Vec::new();
    if let Some(mut header) = call.container(key, Type::Set)? {
        taken = containers::distinct(call, &header, count.unwrap_or(1))?;
        if taken.len() as u64 == header.count {
            // All of them: they go as a whole.
            header.count = 0;
        } else {
            for (member, _) in &taken {
                remove(call, &mut header, member)?;
            }
        }
        if !taken.is_empty() {
            call.keep(key, &header)?;
        }
    }
    match count {
        Some(_) => {
            call.reply.set(taken.len());
            taken.iter().for_each(|(member, _)| call.reply.bulk(member));
        }
        None => call.reply.bulk_or_null(taken.first().map(|(member, _)| member.as_slice())),
    }
    Ok(())
}

pub(super) fn srandmember(call: &mut Call<'_, '_>) -> Answer {
    let found = containers::sample(call, Type::Set, None)?.map(|(found, _)| found);
    if call.arguments.len() == 2 {
        let member = found.as_ref().and_then(|found| found.first());
        call.reply.bulk_or_null(member.map(|(member, _)| member.as_slice()));
        return Ok(());
    }
    let found = found.unwrap_or_default();
    call.reply.array(found.len());
    found.iter().for_each(|(member, _)| call.reply.bulk(member));
    Ok(())
}

pub(super) fn smove(call: &mut Call<'_, '_>) -> Answer {
    let [from, to, member] = [1, 2, 3].map(|at| call.arguments[at]);
    let Some(mut source) = call.container(from, Type::Set)? else {
        call.reply.int(0);
        return Ok(());
    };
    let mut target = call.container_or_new(to, Type::Set)?;
    call.checked_name(member)?;
    let was_there = call.named(&source, member)?.is_some();
    if was_there && from != to {
        remove(call, &mut source, member)?;
        call.keep(from, &source)?;
        if add(call, &mut target, member)? {
            call.keep(to, &target)?;
        }
    }
    call.reply.int(i64::from(was_there));
    Ok(())
}

pub(super) fn sscan(call: &mut Call<'_, '_>) -> Answer {
    containers::scan(call, Type::Set, |_| None)
}
