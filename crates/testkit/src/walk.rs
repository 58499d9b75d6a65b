//! Walks with cursors: drawn from a seed, and held step by step against the model, which knows where a cursor stands.

use std::ops::Bound;

use forebay::{Nearest, Result, Snapshot};
use forebay_env::Rng;

use crate::{Contents, Tables};

/// A step of a walk.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "they are the calls of a cursor")]
pub enum Step {
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    SeekToFirst,
    SeekToLast,
    Next,
    Prev,
    /// Beside the walk, what is nearest to a key.
    Nearest(Vec<u8>, Nearest),
    /// Beside the walk, what is first and last.
    Ends,
}

/// Where a cursor stands.
enum Place {
    BeforeFirst,
    On(Vec<u8>),
    BehindLast,
}

/// Seeks, and stretches of steps either way behind each.
pub(crate) fn draw(rng: &mut Rng, key: impl Fn(&mut Rng) -> Vec<u8>) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..rng.range(1..8) {
        match rng.below(12) {
            0..3 => steps.push(Step::Seek(key(rng))),
            3..6 => steps.push(Step::SeekForPrev(key(rng))),
            6 => steps.push(Step::SeekToFirst),
            7 => steps.push(Step::SeekToLast),
            8..10 => {
                let nearest = [Nearest::Below, Nearest::AtOrBelow, Nearest::AtOrAbove, Nearest::Above];
                steps.push(Step::Nearest(key(rng), nearest[rng.index(4)]));
            }
            10 => steps.push(Step::Ends),
            // A new cursor can be walked at once.
            _ => {}
        }
        let turns = [5, 30, 100][rng.index(3)];
        let mut forward = rng.chance(60);
        for _ in 0..rng.below(30) {
            forward ^= rng.chance(turns);
            steps.push(if forward { Step::Next } else { Step::Prev });
        }
    }
    steps
}

/// Does the steps on a table, or on a snapshot of it, and compares.
pub(crate) fn check(
    tables: &Tables,
    table: usize,
    snapshot: Option<&Snapshot>,
    contents: &Contents,
    steps: &[Step],
) -> Result<()> {
    let Some(mut cursor) = tables.cursor(table, snapshot)? else { return Ok(()) };
    // An aggregator has none of what stands beside the walk.
    let ordered = tables.ordered(table);
    let mut place = Place::BeforeFirst;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Seek(key) => cursor.seek(key)?,
            Step::SeekForPrev(key) => cursor.seek_for_prev(key)?,
            Step::SeekToFirst => cursor.seek_to_first()?,
            Step::SeekToLast => cursor.seek_to_last()?,
            Step::Next => cursor.next()?,
            Step::Prev => cursor.prev()?,
            Step::Nearest(key, which) => {
                let Some(table) = ordered else { continue };
                let found = match snapshot {
                    Some(snapshot) => snapshot.nearest(table, key, *which)?,
                    None => table.nearest(key, *which)?,
                };
                assert_eq!(found, nearest(contents, key, *which), "step {number}, {step:?}");
            }
            Step::Ends => {
                let Some(table) = ordered else { continue };
                let found = match snapshot {
                    Some(snapshot) => (snapshot.first(table)?, snapshot.last(table)?),
                    None => (table.first()?, table.last()?),
                };
                let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
                let ends = (contents.first_key_value().map(own), contents.last_key_value().map(own));
                assert_eq!(found, ends, "step {number}");
            }
        }
        place = place.after(contents, step);
        let wanted = match &place {
            Place::On(key) => contents.get(key).map(|value| (&key[..], &value[..])),
            Place::BeforeFirst | Place::BehindLast => None,
        };
        assert_eq!(cursor.entry(), wanted, "step {number}, {step:?} of {steps:?}");
    }
    Ok(())
}

/// What a walk comes by: at each step where it stands, and what it asks beside, unless it is one of states.
pub(crate) fn answers(
    contents: &Contents,
    steps: &[Step],
    is_of_states: bool,
) -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
    let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    let (mut place, mut found) = (Place::BeforeFirst, Vec::new());
    for step in steps {
        match step {
            Step::Nearest(..) | Step::Ends if is_of_states => {}
            Step::Nearest(key, which) => found.push(nearest(contents, key, *which)),
            Step::Ends => {
                found.push(contents.first_key_value().map(own));
                found.push(contents.last_key_value().map(own));
            }
            _ => {}
        }
        place = place.after(contents, step);
        found.push(match &place {
            Place::On(key) => contents.get_key_value(key).map(own),
            Place::BeforeFirst | Place::BehindLast => None,
        });
    }
    found
}

fn nearest(contents: &Contents, key: &[u8], which: Nearest) -> Option<(Vec<u8>, Vec<u8>)> {
    let key = || key.to_vec();
    let found = match which {
        Nearest::Below => contents.range(..key()).next_back(),
        Nearest::AtOrBelow => contents.range(..=key()).next_back(),
        Nearest::AtOrAbove => contents.range(key()..).next(),
        Nearest::Above => contents.range((Bound::Excluded(key()), Bound::Unbounded)).next(),
    };
    found.map(|(key, value)| (key.clone(), value.clone()))
}

impl Place {
    fn after(self, contents: &Contents, step: &Step) -> Self {
        let near = |key: &[u8], which| nearest(contents, key, which).map(|(key, _)| key);
        let first = || contents.keys().next().cloned();
        let last = || contents.keys().next_back().cloned();
        let forward = |key: Option<Vec<u8>>| key.map_or(Self::BehindLast, Self::On);
        let backward = |key: Option<Vec<u8>>| key.map_or(Self::BeforeFirst, Self::On);
        match (step, self) {
            (Step::Seek(key), _) => forward(near(key, Nearest::AtOrAbove)),
            (Step::SeekForPrev(key), _) => backward(near(key, Nearest::AtOrBelow)),
            (Step::SeekToFirst, _) | (Step::Next, Self::BeforeFirst) => forward(first()),
            (Step::SeekToLast, _) | (Step::Prev, Self::BehindLast) => backward(last()),
            (Step::Next, Self::On(key)) => forward(near(&key, Nearest::Above)),
            (Step::Prev, Self::On(key)) => backward(near(&key, Nearest::Below)),
            (_, place) => place,
        }
    }
}
