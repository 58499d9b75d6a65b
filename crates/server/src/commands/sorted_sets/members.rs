//! Members by their names.

use super::super::{Answer, Call, Refusal, SYNTAX, containers, is, numbers};
use crate::elements;
use crate::resp::Reply;
use crate::value::{Header, Type};

/// A member and its score.
pub(super) type Scored = (Vec<u8>, f64);

/// The score that stands with a member's name.
pub(super) fn decode(value: &[u8]) -> f64 {
    value.first_chunk().map_or(0.0, |bits| f64::from_le_bytes(*bits))
}

pub(super) fn score(call: &mut Call<'_, '_>, header: &Header, member: &[u8]) -> Result<Option<f64>, Refusal> {
    Ok(call.named(header, member)?.map(decode))
}

/// Gives a member a score.
pub(super) fn put(
    call: &mut Call<'_, '_>,
    header: &mut Header,
    (member, new): (&[u8], f64),
    old: Option<f64>,
) {
    match old {
        Some(old) => call.remove(elements::scored(header.id, old, member)),
        None => header.count += 1,
    }
    call.put(elements::named(header.id, member), &new.to_le_bytes());
    call.put(elements::scored(header.id, new, member), &[]);
}

/// Removes a member that has this score.
pub(super) fn remove(call: &mut Call<'_, '_>, header: &mut Header, member: &[u8], score: f64) {
    call.remove(elements::named(header.id, member));
    call.remove(elements::scored(header.id, score, member));
    header.count = header.count.saturating_sub(1);
}

/// Removes members that were found, and keeps the rest. All of them go as a whole.
pub(super) fn remove_all(
    call: &mut Call<'_, '_>,
    key: &[u8],
    mut header: Header,
    members: &[Scored],
) -> Answer {
    if members.is_empty() {
        return Ok(());
    }
    if members.len() as u64 == header.count {
        header.count = 0;
    } else {
        members.iter().for_each(|(member, score)| remove(call, &mut header, member, *score));
    }
    call.keep(key, &header)
}

/// Has a key hold these members, or nothing where there are none.
pub(super) fn store(call: &mut Call<'_, '_>, key: &[u8], members: &[Scored]) -> Answer {
    super::super::strings::checked_key(call, key)?;
    let mut header = call.new_container(Type::SortedSet);
    members.iter().for_each(|(member, score)| put(call, &mut header, (member, *score), None));
    call.replace(key, &header)
}

/// How members are shown: with their scores, or without.
pub(super) fn show(reply: &mut Reply, members: &[Scored], with_scores: bool) {
    let is_paired = with_scores && reply.version == 3;
    reply.array(if with_scores && !is_paired { 2 * members.len() } else { members.len() });
    for (member, score) in members {
        if is_paired {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(&numbers::shown(*score));
        }
    }
}

/// What `ZADD` is told besides.
#[derive(Default)]
struct AddOptions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    counts_changes: bool,
    adds: bool,
}

fn add_options<'a>(call: &Call<'a, '_>) -> Result<(AddOptions, &'a [&'a [u8]]), Refusal> {
    let (mut options, mut rest) = (AddOptions::default(), &call.arguments[2..]);
    while let [word, behind @ ..] = rest {
        match word {
            word if is(word, "NX") => options.nx = true,
            word if is(word, "XX") => options.xx = true,
            word if is(word, "GT") => options.gt = true,
            word if is(word, "LT") => options.lt = true,
            word if is(word, "CH") => options.counts_changes = true,
            word if is(word, "INCR") => options.adds = true,
            _ => break,
        }
        rest = behind;
    }
    let AddOptions { nx, xx, gt, lt, adds, .. } = options;
    if rest.is_empty() || !rest.len().is_multiple_of(2) {
        return Err(SYNTAX.into());
    }
    if nx && xx {
        return Err("ERR XX and NX options at the same time are not compatible".into());
    }
    if nx && (gt || lt) || gt && lt {
        return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
    }
    if adds && rest.len() > 2 {
        return Err("ERR INCR option supports a single increment-element pair".into());
    }
    Ok((options, rest))
}

/// What became of a member.
enum Added {
    Nothing,
    New(f64),
    Changed(f64),
    Same(f64),
}

fn add(
    call: &mut Call<'_, '_>,
    header: &mut Header,
    options: &AddOptions,
    (member, given): (&[u8], f64),
) -> Result<Added, Refusal> {
    let Some(old) = score(call, header, member)? else {
        if options.xx {
            return Ok(Added::Nothing);
        }
        put(call, header, (member, given), None);
        return Ok(Added::New(given));
    };
    if options.nx {
        return Ok(Added::Nothing);
    }
    let new = if options.adds { old + given } else { given } + 0.0;
    if new.is_nan() {
        return Err("ERR resulting score is not a number (NaN)".into());
    }
    if options.lt && new >= old || options.gt && new <= old {
        return Ok(Added::Nothing);
    }
    if new == old {
        return Ok(Added::Same(new));
    }
    put(call, header, (member, new), Some(old));
    Ok(Added::Changed(new))
}

pub(super) fn zadd(call: &mut Call<'_, '_>) -> Answer {
    let (options, pairs) = add_options(call)?;
    add_pairs(call, &options, pairs)
}

pub(super) fn zincrby(call: &mut Call<'_, '_>) -> Answer {
    let options = AddOptions { adds: true, ..AddOptions::default() };
    add_pairs(call, &options, &call.arguments[2..])
}

fn add_pairs(call: &mut Call<'_, '_>, options: &AddOptions, pairs: &[&[u8]]) -> Answer {
    let (key, database) = (call.arguments[1], call.client.database);
    let mut members = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        members.push((pair[1], numbers::score(pair[0]).ok_or("ERR value is not a valid float")?));
    }
    let mut header = call.container_or_new(key, Type::SortedSet)?;
    members.iter().try_for_each(|(member, _)| call.checked_name(member))?;
    if header.count > 0 {
        let keys = members.iter().map(|(member, _)| elements::named(header.id, member)).collect();
        call.turn.look_up(database, keys)?;
    }
    let (mut added, mut changed, mut last) = (0, 0, None);
    for member in members {
        last = match add(call, &mut header, options, member)? {
            Added::Nothing => None,
            Added::Same(score) => Some(score),
            Added::New(score) => {
                added += 1;
                Some(score)
            }
            Added::Changed(score) => {
                changed += 1;
                Some(score)
            }
        };
    }
    match (added, changed) {
        (0, 0) => {}
        (0, _) => call.touch(key),
        _ => call.keep(key, &header)?,
    }
    match (options.adds, last) {
        (true, Some(score)) => call.reply.double(&numbers::shown(score)),
        (true, None) => call.reply.null(),
        (false, _) => call.reply.int(added + if options.counts_changes { changed } else { 0 }),
    }
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_, '_>) -> Answer {
    let (key, mut removed) = (call.arguments[1], 0);
    if let Some(mut header) = call.container(key, Type::SortedSet)? {
        for member in &call.arguments[2..] {
            if let Some(score) = score(call, &header, member)? {
                remove(call, &mut header, member, score);
                removed += 1;
            }
        }
        if removed > 0 {
            call.keep(key, &header)?;
        }
    }
    call.reply.int(removed);
    Ok(())
}

fn show_scores(call: &mut Call<'_, '_>, members: &[&[u8]], is_one: bool) -> Answer {
    let header = call.container(call.arguments[1], Type::SortedSet)?;
    let mut found = Vec::with_capacity(members.len());
    for member in members {
        found.push(match &header {
            Some(header) => score(call, header, member)?,
            None => None,
        });
    }
    if !is_one {
        call.reply.array(found.len());
    }
    for score in found {
        match score {
            Some(score) => call.reply.double(&numbers::shown(score)),
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_, '_>) -> Answer {
    show_scores(call, &call.arguments[2..], true)
}

pub(super) fn zmscore(call: &mut Call<'_, '_>) -> Answer {
    show_scores(call, &call.arguments[2..], false)
}

pub(super) fn zcard(call: &mut Call<'_, '_>) -> Answer {
    let header = call.container(call.arguments[1], Type::SortedSet)?;
    call.reply.int(header.map_or(0, |header| header.count as i64));
    Ok(())
}

pub(super) fn zrandmember(call: &mut Call<'_, '_>) -> Answer {
    let found = containers::sample(call, Type::SortedSet, Some("WITHSCORES"))?;
    if call.arguments.len() == 2 {
        let member = found.as_ref().and_then(|(found, _)| found.first());
        call.reply.bulk_or_null(member.map(|(member, _)| member.as_slice()));
        return Ok(());
    }
    let (found, with_scores) = found.unwrap_or_default();
    let found: Vec<Scored> = found.into_iter().map(|(member, value)| (member, decode(&value))).collect();
    show(call.reply, &found, with_scores);
    Ok(())
}

pub(super) fn zscan(call: &mut Call<'_, '_>) -> Answer {
    containers::scan(call, Type::SortedSet, |value| Some(numbers::shown(decode(value)).into_bytes()))
}
