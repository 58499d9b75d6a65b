//! From one list to another, and from the first of several that has something.

use super::super::{Answer, Call, SYNTAX, containers};
use super::ends::{End, put, take};
use crate::elements;
use crate::value::Type;

/// Refuses words that are no ends of lists, before anything is looked at.
pub(in crate::commands) fn check_ends(arguments: &[&[u8]]) -> Answer {
    arguments[3..].iter().try_for_each(|word| End::of(word).map(drop))
}

pub(in crate::commands) fn lmove(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (End::of(call.arguments[3])?, End::of(call.arguments[4])?);
    moved(call, from, to)
}

pub(in crate::commands) fn rpoplpush(call: &mut Call<'_, '_>) -> Answer {
    moved(call, End::Right, End::Left)
}

fn moved(call: &mut Call<'_, '_>, from: End, to: End) -> Answer {
    let (source, target) = (call.arguments[1], call.arguments[2]);
    let Some(header) = call.container(source, Type::List)? else {
        call.reply.null();
        return Ok(());
    };
    // Before anything is taken.
    call.container_or_new(target, Type::List)?;
    if source == target && header.count == 1 {
        // It turns about itself.
        let value = call.element(elements::placed(header.id, header.first))?.map(<[u8]>::to_vec);
        call.touch(source);
        call.reply.bulk_or_null(value.as_deref());
        return Ok(());
    }
    let Some(value) = take(call, source, header, from, 1)?.pop() else {
        return Err(
            "ERR the list has no such element, though its header says so; run `forebay verify`".into()
        );
    };
    let mut header = call.container_or_new(target, Type::List)?;
    put(call, &mut header, to, &value);
    call.keep(target, &header)?;
    call.reply.bulk(&value);
    Ok(())
}

pub(in crate::commands) fn lmpop(call: &mut Call<'_, '_>) -> Answer {
    let (keys, words) = containers::counted(call)?;
    let (end, count) = containers::end_and_count(words)?;
    let end = End::of(end).map_err(|_| SYNTAX)?;
    for key in keys {
        if let Some(header) = call.container(key, Type::List)? {
            let found = take(call, key, header, end, count)?;
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(found.len());
            found.iter().for_each(|value| call.reply.bulk(value));
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}
