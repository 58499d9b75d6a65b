//! What is put into the middle of a list, or taken from there: the elements on the nearer side move.

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use super::ends::{End, cut};
use super::ends::{places, put};
use crate::elements;
use crate::turn::Way;
use crate::value::{Header, Type};

/// Elements of some places, as far as there is room for them.
fn some(
    call: &Call<'_, '_>,
    header: &Header,
    asked: std::ops::Range<i64>,
    way: Way,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    for element in call.walk(elements::places(header.id, asked), way)? {
        let (_, value) = element?;
        budget.take(value.len())?;
        found.push(value);
    }
    Ok(found)
}

/// Places of elements that are equal to one, at most so many, as they come.
fn equal(
    call: &Call<'_, '_>,
    header: &Header,
    wanted: &[u8],
    way: Way,
    most: u64,
) -> Result<Vec<i64>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    let all = places(header);
    for (step, element) in call.walk(elements::places(header.id, all.clone()), way)?.enumerate() {
        if element?.1 == wanted {
            budget.take(0)?;
            found.push(if way == Way::Forward { all.start + step as i64 } else { all.end - 1 - step as i64 });
            if found.len() as u64 == most {
                break;
            }
        }
    }
    Ok(found)
}

pub(super) fn lrem(call: &mut Call<'_, '_>) -> Answer {
    let (key, count) = (call.arguments[1], integer(call.arguments[2])?);
    let mut gone = Vec::new();
    if let Some(mut header) = call.container(key, Type::List)? {
        let way = if count < 0 { Way::Backward } else { Way::Forward };
        let most = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        gone = equal(call, &header, call.arguments[3], way, most)?;
        gone.sort_unstable();
        if let (Some(&first), Some(&last)) = (gone.first(), gone.last()) {
            close(call, &mut header, &gone, (first, last))?;
            call.keep(key, &header)?;
        }
    }
    call.reply.int(gone.len() as i64);
    Ok(())
}

/// Takes the elements of some places away, which ascend from `first` to `last`.
fn close(call: &mut Call<'_, '_>, header: &mut Header, gone: &[i64], (first, last): (i64, i64)) -> Answer {
    let all = places(header);
    let count = gone.len() as u64;
    if count == header.count {
        header.count = 0;
        return Ok(());
    }
    let is_gone = |place: i64| gone.binary_search(&place).is_ok();
    if all.end - first <= last + 1 - all.start {
        let moved = some(call, header, first..all.end, Way::Forward)?;
        let kept = (first..all.end).zip(moved).filter(|(place, _)| !is_gone(*place));
        let kept: Vec<_> = kept.map(|(_, value)| value).collect();
        for (place, value) in (first..).zip(kept) {
            call.put(elements::placed(header.id, place), &value);
        }
        cut(call, header, 0, count);
    } else {
        let moved = some(call, header, all.start..last + 1, Way::Backward)?;
        let kept = (all.start..last + 1).rev().zip(moved).filter(|(place, _)| !is_gone(*place));
        let kept: Vec<_> = kept.map(|(_, value)| value).collect();
        for (place, value) in (all.start..last + 1).rev().zip(kept) {
            call.put(elements::placed(header.id, place), &value);
        }
        cut(call, header, count, 0);
    }
    Ok(())
}

pub(super) fn linsert(call: &mut Call<'_, '_>) -> Answer {
    let [key, word, pivot, value] = [1, 2, 3, 4].map(|at| call.arguments[at]);
    let behind = match word {
        word if is(word, "BEFORE") => 0,
        word if is(word, "AFTER") => 1,
        _ => return Err(SYNTAX.into()),
    };
    let Some(mut header) = call.container(key, Type::List)? else {
        call.reply.int(0);
        return Ok(());
    };
    let found = equal(call, &header, pivot, Way::Forward, 1)?;
    let Some(place) = found.first().map(|place| place + behind) else {
        call.reply.int(-1);
        return Ok(());
    };
    open(call, &mut header, place, value)?;
    call.keep(key, &header)?;
    call.reply.int(header.count as i64);
    Ok(())
}

/// Puts an element before the one at a place.
fn open(call: &mut Call<'_, '_>, header: &mut Header, place: i64, value: &[u8]) -> Answer {
    let all = places(header);
    if place - all.start < all.end - place {
        let moved = some(call, header, all.start..place, Way::Forward)?;
        put(call, header, End::Left, value);
        for (at, value) in (all.start - 1..).zip(&moved) {
            call.put(elements::placed(header.id, at), value);
        }
        call.put(elements::placed(header.id, place - 1), value);
    } else {
        let moved = some(call, header, place..all.end, Way::Forward)?;
        put(call, header, End::Right, value);
        for (at, value) in (place + 1..).zip(&moved) {
            call.put(elements::placed(header.id, at), value);
        }
        call.put(elements::placed(header.id, place), value);
    }
    Ok(())
}
