//! Both ends of a list.

use std::ops::Range;

use super::super::{Answer, Call, Refusal, SYNTAX, containers, is};
use crate::elements;
use crate::turn::Way;
use crate::value::{Header, Type};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Left,
    Right,
}

impl End {
    /// As a word says it.
    pub(super) fn of(word: &[u8]) -> Result<Self, Refusal> {
        match word {
            word if is(word, "LEFT") => Ok(Self::Left),
            word if is(word, "RIGHT") => Ok(Self::Right),
            _ => Err(SYNTAX.into()),
        }
    }

    /// As the first letter of a command says it.
    fn of_name(name: &[u8]) -> Self {
        if name[0].eq_ignore_ascii_case(&b'L') { Self::Left } else { Self::Right }
    }
}

/// The places of a list's elements.
pub(super) fn places(header: &Header) -> Range<i64> {
    header.first..header.first + header.count as i64
}

/// Puts an element at an end.
pub(super) fn put(call: &mut Call<'_, '_>, header: &mut Header, end: End, value: &[u8]) {
    let place = match end {
        End::Left => {
            header.first -= 1;
            header.first
        }
        End::Right => places(header).end,
    };
    header.count += 1;
    call.put(elements::placed(header.id, place), value);
}

/// Elements from an end on, as far as there is room for them.
fn some(call: &Call<'_, '_>, header: &Header, end: End, count: u64) -> Result<Vec<Vec<u8>>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    let Range { start, end: behind } = places(header);
    let count = count.min(header.count) as i64;
    let (taken, way) = match end {
        End::Left => (start..start + count, Way::Forward),
        End::Right => (behind - count..behind, Way::Backward),
    };
    for element in call.walk(elements::places(header.id, taken), way)? {
        let (_, value) = element?;
        budget.take(value.len())?;
        found.push(value);
    }
    Ok(found)
}

/// Takes elements from an end, and keeps the rest.
pub(super) fn take(
    call: &mut Call<'_, '_>,
    key: &[u8],
    mut header: Header,
    end: End,
    count: u64,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let found = if count == 1 {
        // One is looked up: that costs less than a walk.
        let place = if end == End::Left { header.first } else { places(&header).end - 1 };
        call.element(elements::placed(header.id, place))?.map(<[u8]>::to_vec).into_iter().collect()
    } else {
        some(call, &header, end, count)?
    };
    let gone = count.min(header.count);
    match end {
        End::Left => cut(call, &mut header, gone, 0),
        End::Right => cut(call, &mut header, 0, gone),
    }
    if gone > 0 {
        call.keep(key, &header)?;
    }
    Ok(found)
}

/// From so many on they are deleted as a range.
const RANGE_ELEMENTS_MIN: u64 = 1000;

/// Takes elements away at both ends. Of a list of which nothing stays, nothing is done to elements: it goes as a whole.
pub(super) fn cut(call: &mut Call<'_, '_>, header: &mut Header, left: u64, right: u64) {
    let Range { start, end } = places(header);
    header.count = header.count.saturating_sub(left + right);
    header.first += left as i64;
    if header.count == 0 {
        return;
    }
    for gone in [start..start + left as i64, end - right as i64..end] {
        if (gone.end - gone.start) as u64 >= RANGE_ELEMENTS_MIN {
            call.turn.clear_elements(call.client.database, elements::places(header.id, gone));
        } else {
            gone.for_each(|place| call.remove(elements::placed(header.id, place)));
        }
    }
}

/// At either end, and where there is a list already.
pub(super) fn push(call: &mut Call<'_, '_>) -> Answer {
    let [name, key] = [0, 1].map(|at| call.arguments[at]);
    let (end, is_careful) =
        (End::of_name(name), name.last().is_some_and(|last| last.eq_ignore_ascii_case(&b'X')));
    let header = match is_careful {
        true => call.container(key, Type::List)?,
        false => Some(call.container_or_new(key, Type::List)?),
    };
    let Some(mut header) = header else {
        call.reply.int(0);
        return Ok(());
    };
    call.arguments[2..].iter().for_each(|value| put(call, &mut header, end, value));
    call.keep(key, &header)?;
    call.reply.int(header.count as i64);
    Ok(())
}

/// At either end.
pub(in crate::commands) fn pop(call: &mut Call<'_, '_>) -> Answer {
    let (name, key) = (call.arguments[0], call.arguments[1]);
    if call.arguments.len() > 3 {
        return Err(super::super::wrong_arity(&String::from_utf8_lossy(name).to_ascii_lowercase()));
    }
    let count = containers::popped(&call.arguments[2..])?;
    let Some(header) = call.container(key, Type::List)? else {
        match count {
            Some(_) => call.reply.null_array(),
            None => call.reply.null(),
        }
        return Ok(());
    };
    let found = take(call, key, header, End::of_name(name), count.unwrap_or(1))?;
    match count {
        None => call.reply.bulk_or_null(found.first().map(Vec::as_slice)),
        Some(_) => {
            call.reply.array(found.len());
            found.iter().for_each(|value| call.reply.bulk(value));
        }
    }
    Ok(())
}

pub(super) fn llen(call: &mut Call<'_, '_>) -> Answer {
    let header = call.container(call.arguments[1], Type::List)?;
    call.reply.int(header.map_or(0, |header| header.count as i64));
    Ok(())
}
