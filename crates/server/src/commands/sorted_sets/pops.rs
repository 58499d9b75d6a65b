//! The lowest and the highest members, taken away.

use super::super::{Answer, Call, Refusal, SYNTAX, containers, is, numbers};
use super::bounds::{self, Bounds, Part};
use super::members::{Scored, remove_all, show};
use crate::turn::Way;
use crate::value::Type;

/// Takes so many members from one end.
fn taken(call: &mut Call<'_, '_>, key: &[u8], way: Way, count: u64) -> Result<Vec<Scored>, Refusal> {
    let Some(header) = call.container(key, Type::SortedSet)? else { return Ok(Vec::new()) };
    let last = count.min(header.count) as i64 - 1;
    if last < 0 {
        return Ok(Vec::new());
    }
    let found = bounds::members(call, &header, &Bounds::Ranks(0, last), &Part { way, ..Part::all() })?;
    remove_all(call, key, header, &found)?;
    Ok(found)
}

/// Both `ZPOPMIN` and `ZPOPMAX`.
pub(in crate::commands) fn zpop(call: &mut Call<'_, '_>) -> Answer {
    let way = if is(call.arguments[0], "ZPOPMIN") { Way::Forward } else { Way::Backward };
    let count = containers::popped(&call.arguments[2..])?;
    let found = taken(call, call.arguments[1], way, count.unwrap_or(1))?;
    match (count, found.first()) {
        (None, Some((member, score))) => {
            call.reply.array(2);
            call.reply.bulk(member);
            call.reply.double(&numbers::shown(*score));
        }
        _ => show(call.reply, &found, true),
    }
    Ok(())
}

pub(in crate::commands) fn zmpop(call: &mut Call<'_, '_>) -> Answer {
    let (keys, words) = containers::counted(call)?;
    let (end, count) = containers::end_and_count(words)?;
    let way = match end {
        end if is(end, "MIN") => Way::Forward,
        end if is(end, "MAX") => Way::Backward,
        _ => return Err(SYNTAX.into()),
    };
    for key in keys {
        let found = taken(call, key, way, count)?;
        if !found.is_empty() {
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(found.len());
            for (member, score) in &found {
                call.reply.array(2);
                call.reply.bulk(member);
                call.reply.double(&numbers::shown(*score));
            }
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}
