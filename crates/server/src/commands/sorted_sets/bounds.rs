//! Which members of a sorted set are asked for.

use std::ops::Range;

use forebay::Scan;

use super::super::containers::Budget;
use super::super::{Call, Refusal, integer, numbers};
use super::members::Scored;
use crate::elements;
use crate::jobs::Slot;
use crate::turn::{Element, Way};
use crate::value::Header;

/// By what members are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Name,
}

/// The lowest and the highest that are asked for.
pub(super) enum Bounds<'a> {
    Ranks(i64, i64),
    Scores((f64, Ends), (f64, Ends)),
    Names(Name<'a>, Name<'a>),
}

/// Whether a bound is part of what it bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Within,
    Without,
}

/// A bound among names.
pub(super) enum Name<'a> {
    Lowest,
    Highest,
    Of(&'a [u8], Ends),
}

fn score(text: &[u8]) -> Result<(f64, Ends), Refusal> {
    let (ends, number) = match text {
        [b'(', number @ ..] => (Ends::Without, number),
        number => (Ends::Within, number),
    };
    let number = numbers::score(number).ok_or("ERR min or max is not a float")?;
    Ok((number, ends))
}

fn name(text: &[u8]) -> Result<Name<'_>, Refusal> {
    match text {
        b"-" => Ok(Name::Lowest),
        b"+" => Ok(Name::Highest),
        [b'[', name @ ..] => Ok(Name::Of(name, Ends::Within)),
        [b'(', name @ ..] => Ok(Name::Of(name, Ends::Without)),
        _ => Err("ERR min or max not valid string range item".into()),
    }
}

/// Of two arguments, of which the lower is the first.
pub(super) fn bounds<'a>(by: By, low: &'a [u8], high: &'a [u8]) -> Result<Bounds<'a>, Refusal> {
    Ok(match by {
        By::Rank => Bounds::Ranks(integer(low)?, integer(high)?),
        By::Score => Bounds::Scores(score(low)?, score(high)?),
        By::Name => Bounds::Names(name(low)?, name(high)?),
    })
}

/// Which part of a range is asked for, and from which end.
pub(super) struct Part {
    pub(super) way: Way,
    pub(super) skipped: i64,
    /// All of it where it is negative.
    pub(super) most: i64,
}

impl Part {
    pub(super) fn all() -> Self {
        Self { way: Way::Forward, skipped: 0, most: -1 }
    }
}

/// The key of a name's bound, among the members of one score.
fn key_of(header: &Header, score: f64, bound: &Name<'_>, is_low: bool) -> Vec<u8> {
    match bound {
        Name::Lowest => elements::scores(header.id).start,
        Name::Highest => elements::scores(header.id).end,
        Name::Of(name, ends) => {
            let mut key = elements::scored(header.id, score, name);
            // Right behind a key is the same with a zero.
            if is_low == (*ends == Ends::Without) {
                key.push(0);
            }
            key
        }
    }
}

/// The keys of scores, or of names, that are asked for. Names are in order where all scores are equal.
fn keys_of(call: &Call<'_, '_>, header: &Header, bounds: &Bounds<'_>) -> Result<Range<Vec<u8>>, Refusal> {
    Ok(match bounds {
        Bounds::Ranks(..) => elements::scores(header.id),
        Bounds::Scores((low, low_ends), (high, high_ends)) => {
            let start = match low_ends {
                Ends::Within => elements::scored(header.id, *low, &[]),
                Ends::Without => elements::behind_score(header.id, *low),
            };
            let end = match high_ends {
                Ends::Within => elements::behind_score(header.id, *high),
                Ends::Without => elements::scored(header.id, *high, &[]),
            };
            start..end
        }
        Bounds::Names(low, high) => {
            let first = call.walk(elements::scores(header.id), Way::Forward)?.next().transpose()?;
            let score = first.map_or(0.0, |(key, _)| elements::score_of(&key).0);
            key_of(header, score, low, true)..key_of(header, score, high, false)
        }
    })
}

/// From which rank on, and how many, counted from the end that comes first.
fn ranks(from: i64, to: i64, count: u64) -> (usize, usize) {
    let count = count as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(count) } else { at };
    let (from, to) = (place(from).max(0), place(to).min(count - 1));
    if from > to { (0, 0) } else { (from as usize, (to - from + 1) as usize) }
}

/// How a range is walked.
pub(super) struct Course {
    pub(super) range: Range<Vec<u8>>,
    way: Way,
    pub(super) skipped: usize,
    most: usize,
    /// It is shown the other way round.
    is_turned: bool,
}

pub(super) fn course(
    call: &Call<'_, '_>,
    header: &Header,
    bounds: &Bounds<'_>,
    part: &Part,
) -> Result<Course, Refusal> {
    let (mut way, mut is_turned) = (part.way, false);
    let (skipped, most) = match bounds {
        Bounds::Ranks(from, to) => {
            let (skipped, most) = ranks(*from, *to, header.count);
            let behind = (header.count as usize).saturating_sub(skipped + most);
            // From the nearer end.
            is_turned = behind < skipped;
            if is_turned {
                way = if way == Way::Forward { Way::Backward } else { Way::Forward };
            }
            (skipped.min(behind), most)
        }
        _ => match usize::try_from(part.skipped) {
            Ok(skipped) => (skipped, usize::try_from(part.most).unwrap_or(usize::MAX)),
            Err(_) => (0, 0),
        },
    };
    Ok(Course { range: range(call, header, bounds)?, way, skipped, most, is_turned })
}

impl Course {
    /// The members on it, as far as there is room for them.
    fn members<E>(
        &self,
        walk: impl Iterator<Item = Result<Element, E>>,
        mut budget: Budget,
    ) -> Result<Vec<Scored>, Refusal>
    where
        Refusal: From<E>,
    {
        let mut found = Vec::new();
        for (at, element) in walk.enumerate().take(self.skipped.saturating_add(self.most)) {
            let (key, _) = element?;
            if at >= self.skipped {
                let (score, member) = elements::score_of(&key);
                budget.take(member.len())?;
                found.push((member.to_vec(), score));
            }
        }
        if self.is_turned {
            found.reverse();
        }
        Ok(found)
    }

    /// The same of the table as it was at a moment.
    pub(super) fn members_of(&self, scan: Scan, slot: &Slot, budget: Budget) -> Result<Vec<Scored>, Refusal> {
        let awaited = |(at, element): (usize, forebay::Result<Element>)| {
            if at.is_multiple_of(1024) {
                slot.check()?;
            }
            Ok::<_, Refusal>(element?)
        };
        match self.way {
            Way::Forward => self.members(scan.enumerate().map(awaited), budget),
            Way::Backward => self.members(scan.rev().enumerate().map(awaited), budget),
        }
    }
}

/// The members that are asked for, in the order in which they are, as far as there is room for them.
pub(super) fn members(
    call: &Call<'_, '_>,
    header: &Header,
    bounds: &Bounds<'_>,
    part: &Part,
) -> Result<Vec<Scored>, Refusal> {
    let course = course(call, header, bounds, part)?;
    course.members(call.walk(course.range.clone(), course.way)?, call.budget())
}

/// Where the members stand that are asked for.
pub(super) fn range(
    call: &Call<'_, '_>,
    header: &Header,
    bounds: &Bounds<'_>,
) -> Result<Range<Vec<u8>>, Refusal> {
    let range = keys_of(call, header, bounds)?;
    // A tree refuses a range that is the wrong way round.
    Ok(if range.start < range.end { range } else { range.start.clone()..range.start })
}
