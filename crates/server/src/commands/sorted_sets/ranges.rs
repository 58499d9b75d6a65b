//! Ranges of members: shown, stored, counted, removed.

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use super::bounds::{self, Bounds, By, Part, bounds};
use super::members::{remove_all, show, store};
use super::walks::{self, Steps};
use crate::turn::Way;
use crate::value::Type;

/// What is asked for.
struct Asked<'a> {
    bounds: Bounds<'a>,
    part: Part,
    with_scores: bool,
}

/// By what a command chooses, and from which end, if its name says so.
fn named(name: &[u8]) -> (Option<By>, Option<Way>) {
    match name.to_ascii_uppercase().as_slice() {
        b"ZREVRANGE" => (Some(By::Rank), Some(Way::Backward)),
        b"ZRANGEBYSCORE" => (Some(By::Score), Some(Way::Forward)),
        b"ZREVRANGEBYSCORE" => (Some(By::Score), Some(Way::Backward)),
        b"ZRANGEBYLEX" => (Some(By::Name), Some(Way::Forward)),
        b"ZREVRANGEBYLEX" => (Some(By::Name), Some(Way::Backward)),
        _ => (None, None),
    }
}

/// Of the arguments from the first bound on.
fn asked<'a>(name: &[u8], arguments: &'a [&'a [u8]], stores: bool) -> Result<Asked<'a>, Refusal> {
    let (mut by, mut way) = named(name);
    let (mut with_scores, mut limit, mut rest) = (false, None, &arguments[2..]);
    loop {
        rest = match rest {
            [] => break,
            [word, behind @ ..] if is(word, "WITHSCORES") && !stores => {
                with_scores = true;
                behind
            }
            [word, skipped, most, behind @ ..] if is(word, "LIMIT") => {
                limit = Some((integer(skipped)?, integer(most)?));
                behind
            }
            [word, behind @ ..] if is(word, "REV") && way.is_none() => {
                way = Some(Way::Backward);
                behind
            }
            [word, behind @ ..] if is(word, "BYSCORE") && by.is_none() => {
                by = Some(By::Score);
                behind
            }
            [word, behind @ ..] if is(word, "BYLEX") && by.is_none() => {
                by = Some(By::Name);
                behind
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    let (by, way) = (by.unwrap_or(By::Rank), way.unwrap_or(Way::Forward));
    if limit.is_some_and(|(_, most)| most != -1) && by == By::Rank {
        return Err(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX".into()
        );
    }
    if with_scores && by == By::Name {
        return Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX".into());
    }
    // Ranks are counted from the end that comes first; scores and names are told the other way round.
    let (low, high) = match (by, way) {
        (By::Score | By::Name, Way::Backward) => (arguments[1], arguments[0]),
        _ => (arguments[0], arguments[1]),
    };
    let (skipped, most) = limit.unwrap_or((0, -1));
    Ok(Asked { bounds: bounds(by, low, high)?, part: Part { way, skipped, most }, with_scores })
}

/// All that show members by ranges.
pub(super) fn zrange(call: &mut Call<'_, '_>) -> Answer {
    let Asked { bounds, part, with_scores } = asked(call.arguments[0], &call.arguments[2..], false)?;
    let Some(header) = call.container(call.arguments[1], Type::SortedSet)? else {
        show(call.reply, &[], with_scores);
        return Ok(());
    };
    let course = bounds::course(call, &header, &bounds, &part)?;
    if walks::is_long(call, course.skipped) {
        let (budget, range) = (call.budget(), course.range.clone());
        return walks::later(call, &range, move |scan, reply, slot| {
            show(reply, &course.members_of(scan, slot, budget)?, with_scores);
            Ok(())
        });
    }
    let found = bounds::members(call, &header, &bounds, &part)?;
    show(call.reply, &found, with_scores);
    Ok(())
}

pub(super) fn zrangestore(call: &mut Call<'_, '_>) -> Answer {
    let Asked { bounds, part, .. } = asked(call.arguments[0], &call.arguments[3..], true)?;
    let found = match call.container(call.arguments[2], Type::SortedSet)? {
        Some(header) => bounds::members(call, &header, &bounds, &part)?,
        None => Vec::new(),
    };
    store(call, call.arguments[1], &found)?;
    call.reply.int(found.len() as i64);
    Ok(())
}

/// Also `ZLEXCOUNT`.
pub(super) fn zcount(call: &mut Call<'_, '_>) -> Answer {
    let by = if is(call.arguments[0], "ZCOUNT") { By::Score } else { By::Name };
    let bounds = bounds(by, call.arguments[2], call.arguments[3])?;
    let Some(header) = call.container(call.arguments[1], Type::SortedSet)? else {
        call.reply.int(0);
        return Ok(());
    };
    let range = bounds::range(call, &header, &bounds)?;
    let count = walks::count(call.walk(range.clone(), Way::Forward)?, &walks::steps(call))?;
    if let Some(count) = count {
        call.reply.int(count as i64);
        return Ok(());
    }
    walks::note(call);
    walks::later(call, &range, |scan, reply, slot| {
        let count = walks::count(scan, &Steps::WhileAwaited(slot))?;
        reply.int(count.unwrap_or(0) as i64);
        Ok(())
    })
}

/// By ranks, scores and names.
pub(super) fn zremrange(call: &mut Call<'_, '_>) -> Answer {
    let (key, name) = (call.arguments[1], call.arguments[0]);
    let by = match name {
        name if is(name, "ZREMRANGEBYRANK") => By::Rank,
        name if is(name, "ZREMRANGEBYSCORE") => By::Score,
        _ => By::Name,
    };
    let bounds = bounds(by, call.arguments[2], call.arguments[3])?;
    let mut removed = 0;
    if let Some(header) = call.container(key, Type::SortedSet)? {
        let found = bounds::members(call, &header, &bounds, &Part::all())?;
        remove_all(call, key, header, &found)?;
        removed = found.len();
    }
    call.reply.int(removed as i64);
    Ok(())
}
