//! Several sorted sets, or sets: what they have in common, together, or one without the others.

use std::collections::BTreeMap;

use super::super::{Answer, Call, Refusal, SYNTAX, WRONG_TYPE, containers, integer, is, numbers};
use super::members::{Scored, decode, show, store};
use crate::elements;
use crate::turn::{Element, Way};
use crate::value::{Header, Type};

/// Members that are looked for in the others at once.
const MEMBERS_AT_A_TIME: usize = 256;

/// What becomes of a member's scores.
#[derive(Clone, Copy)]
enum Folds {
    Sum,
    Least,
    Most,
}

impl Folds {
    fn fold(self, one: f64, other: f64) -> f64 {
        match self {
            // Of what is infinite both ways nothing is left.
            Self::Sum => Some(one + other).filter(|sum| !sum.is_nan()).unwrap_or(0.0),
            Self::Least => one.min(other),
            Self::Most => one.max(other),
        }
    }
}

/// A set, and what its scores are multiplied with.
#[derive(Clone, Copy)]
struct Source {
    header: Option<Header>,
    weight: f64,
}

impl Source {
    fn count(&self) -> u64 {
        self.header.map_or(0, |header| header.count)
    }

    /// What a member's value says of its score. Those of a set have one.
    fn score(&self, value: &[u8]) -> f64 {
        let is_scored = self.header.is_some_and(|header| header.kind == Type::SortedSet);
        let score = self.weight * if is_scored { decode(value) } else { 1.0 };
        if score.is_nan() { 0.0 } else { score }
    }
}

struct Asked {
    sources: Vec<Source>,
    folds: Folds,
    with_scores: bool,
}

/// A container that has members.
fn source(call: &mut Call<'_, '_>, key: &[u8]) -> Result<Option<Header>, Refusal> {
    let Some(stored) = call.stored(key)? else { return Ok(None) };
    let header = Header::of(&stored.bytes);
    let header = header.filter(|header| [Type::Set, Type::SortedSet].contains(&header.kind));
    header.map(Some).ok_or(WRONG_TYPE.into())
}

/// Of the arguments from the number of keys on.
fn asked(call: &mut Call<'_, '_>, arguments: &[&[u8]], takes: Takes) -> Result<Asked, Refusal> {
    let count = integer(arguments[0])?;
    if count < 1 {
        return Err("ERR at least 1 input key is needed for this command".into());
    }
    let rest = &arguments[1..];
    let count = usize::try_from(count).ok().filter(|count| *count <= rest.len()).ok_or(SYNTAX)?;
    let (keys, mut rest) = rest.split_at(count);
    let mut headers = Vec::with_capacity(count);
    for key in keys {
        headers.push(source(call, key)?);
    }
    let (mut weights, mut folds, mut with_scores) = (vec![1.0; count], Folds::Sum, false);
    loop {
        rest = match rest {
            [] => break,
            [word, behind @ ..] if is(word, "WEIGHTS") && takes.folds && behind.len() >= count => {
                for (weight, text) in weights.iter_mut().zip(behind) {
                    *weight = numbers::score(text).ok_or("ERR weight value is not a float")?;
                }
                &behind[count..]
            }
            [word, name, behind @ ..] if is(word, "AGGREGATE") && takes.folds => {
                folds = match name {
                    name if is(name, "SUM") => Folds::Sum,
                    name if is(name, "MIN") => Folds::Least,
                    name if is(name, "MAX") => Folds::Most,
                    _ => return Err(SYNTAX.into()),
                };
                behind
            }
            [word, behind @ ..] if is(word, "WITHSCORES") && takes.scores => {
                with_scores = true;
                behind
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    let sources =
        headers.into_iter().zip(weights).map(|(header, weight)| Source { header, weight }).collect();
    Ok(Asked { sources, folds, with_scores })
}

/// Which words a command knows.
#[derive(Clone, Copy)]
struct Takes {
    folds: bool,
    scores: bool,
}

fn walk(
    call: &Call<'_, '_>,
    source: &Source,
    mut each: impl FnMut(Vec<Element>) -> Result<bool, Refusal>,
) -> Answer {
    let Some(header) = source.header else { return Ok(()) };
    let mut walk = call.walk(elements::names_from(header.id, 0), Way::Forward)?;
    loop {
        let mut some = Vec::with_capacity(MEMBERS_AT_A_TIME);
        for element in walk.by_ref().take(MEMBERS_AT_A_TIME) {
            let (key, value) = element?;
            some.push((elements::name_of(&key).1.to_vec(), value));
        }
        if some.is_empty() || !each(some)? {
            return Ok(());
        }
    }
}

fn union(call: &Call<'_, '_>, asked: &Asked) -> Result<Vec<Scored>, Refusal> {
    let (mut budget, mut all) = (call.budget(), BTreeMap::<Vec<u8>, f64>::new());
    for source in &asked.sources {
        walk(call, source, |some| {
            for (member, value) in some {
                let score = source.score(&value);
                match all.get_mut(&member) {
                    Some(folded) => *folded = asked.folds.fold(*folded, score),
                    None => {
                        budget.take(member.len())?;
                        all.insert(member, score);
                    }
                }
            }
            Ok(true)
        })?;
    }
    Ok(all.into_iter().collect())
}

/// Shows `each` what all have, some at a time, until it has enough. The first is walked, which is the smallest.
fn sift(
    call: &Call<'_, '_>,
    asked: &Asked,
    mut each: impl FnMut(Vec<Scored>) -> Result<bool, Refusal>,
) -> Answer {
    let (first, others) = (&asked.sources[0], &asked.sources[1..]);
    if asked.sources.iter().any(|source| source.header.is_none()) {
        return Ok(());
    }
    walk(call, first, |some| {
        let mut scores: Vec<_> = some.iter().map(|(_, value)| Some(first.score(value))).collect();
        for other in others {
            let Some(header) = other.header else { continue };
            for (folded, value) in scores.iter_mut().zip(call.have(&header, &some)?) {
                *folded = folded.zip(value).map(|(one, value)| asked.folds.fold(one, other.score(&value)));
            }
        }
        let scored = some.into_iter().zip(scores);
        each(scored.filter_map(|((member, _), score)| Some((member, score?))).collect())
    })
}

/// All of it, as far as there is room.
fn common(call: &Call<'_, '_>, asked: &Asked) -> Result<Vec<Scored>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    sift(call, asked, |some| {
        for (member, score) in some {
            budget.take(member.len())?;
            found.push((member, score));
        }
        Ok(true)
    })?;
    Ok(found)
}

/// What the first has and no other.
fn difference(call: &Call<'_, '_>, asked: &Asked) -> Result<Vec<Scored>, Refusal> {
    let (first, others) = (&asked.sources[0], &asked.sources[1..]);
    let (mut budget, mut found) = (call.budget(), Vec::new());
    walk(call, first, |mut some| {
        for header in others.iter().filter_map(|other| other.header) {
            let mut has = call.have(&header, &some)?.into_iter();
            some.retain(|_| has.next().flatten().is_none());
        }
        for (member, value) in some {
            budget.take(member.len())?;
            found.push((member, first.score(&value)));
        }
        Ok(true)
    })?;
    Ok(found)
}

/// In the order of scores.
fn combined(call: &Call<'_, '_>, asked: &mut Asked) -> Result<Vec<Scored>, Refusal> {
    let name = call.arguments[0].to_ascii_uppercase();
    let mut found = if name.starts_with(b"ZDIFF") {
        difference(call, asked)?
    } else {
        asked.sources.sort_by_key(Source::count);
        if name.starts_with(b"ZUNION") { union(call, asked)? } else { common(call, asked)? }
    };
    found.iter_mut().for_each(|(_, score)| *score += 0.0);
    found.sort_by(|one, other| one.1.total_cmp(&other.1).then_with(|| one.0.cmp(&other.0)));
    Ok(found)
}

/// Also `ZUNION` and `ZDIFF`.
pub(super) fn zinter(call: &mut Call<'_, '_>) -> Answer {
    let folds = !is(call.arguments[0], "ZDIFF");
    let mut asked = asked(call, &call.arguments[1..], Takes { folds, scores: true })?;
    let found = combined(call, &mut asked)?;
    show(call.reply, &found, asked.with_scores);
    Ok(())
}

pub(super) fn zstore(call: &mut Call<'_, '_>) -> Answer {
    let folds = !is(call.arguments[0], "ZDIFFSTORE");
    let mut asked = asked(call, &call.arguments[2..], Takes { folds, scores: false })?;
    let found = combined(call, &mut asked)?;
    store(call, call.arguments[1], &found)?;
    call.reply.int(found.len() as i64);
    Ok(())
}

pub(super) fn zintercard(call: &mut Call<'_, '_>) -> Answer {
    let (keys, words) = containers::counted(call)?;
    let mut sources = Vec::with_capacity(keys.len());
    for key in keys {
        sources.push(Source { header: source(call, key)?, weight: 1.0 });
    }
    let most = containers::limit(words)?;
    sources.sort_by_key(Source::count);
    let asked = Asked { sources, folds: Folds::Sum, with_scores: false };
    let mut count = 0;
    sift(call, &asked, |some| {
        count += some.len();
        Ok(count < most)
    })?;
    call.reply.int(count.min(most) as i64);
    Ok(())
}
