//! A cube and windows beside the tables: what they must hold, and their handles.
//!
//! **Invariant:** what is expected of them is made of the values alone: by the columns that a grouping keeps, and by the
//! time at which each was added.

mod check;
mod work;

use std::collections::BTreeSet;
use std::ops::Range;

use forebay::{Cube, Database, Error, Period, Result, Tiers, Windows};
use forebay_aggregate::{Grouping, Groupings, group_key};

use crate::model::{Change, Contents, TABLES, Write};
use crate::{Merging, Multiset};

pub(crate) use check::GroupsView;
pub(crate) use work::aligned;

/// The number of the cube, among tables.
pub const CUBE: usize = TABLES;
/// That of the windows.
pub const WINDOWS: usize = TABLES + 1;
/// The names of both.
const NAMES: [&str; 2] = ["cube", "windows"];
/// What they keep: states of a fixed length, and such that grow.
const MERGING: [Merging; 2] = [Merging::Tally, Merging::Bag];
/// How long windows are, in milliseconds, tier by tier.
const LENGTHS: [u64; 3] = [10, 40, 160];
/// How many are kept.
const KEEP: [u32; 3] = [3, 2, 2];
/// To open both takes this many records at most: declarations, that they are whole, and that they were being dropped.
pub(crate) const OWN_RECORDS_MAX: u64 = 6;

/// What both must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The finest groups of the cube.
    cube: Contents,
    /// By the window of the finest tier, in eight bytes, and the key. What was dropped is here, too.
    windows: Contents,
    /// What the last commits with metadata told.
    metadata: [Option<Vec<u8>>; 2],
    /// To when the windows were made to expire: surely, and at most.
    expired: (u64, u64),
    /// Which cube, and which windows, they are: each time that they are made again they are others.
    generations: [u64; 2],
}

impl Groups {
    /// One change of either, as it is [stored](stored).
    pub(crate) fn apply(&mut self, Change { table, key, write }: &Change) {
        let number = *table - TABLES;
        match write {
            Write::Merge(value) => {
                let contents = if *table == CUBE { &mut self.cube } else { &mut self.windows };
                let merged = MERGING[number].merged(value, contents.get(key).map(Vec::as_slice));
                contents.insert(key.clone(), merged);
            }
            Write::Metadata(bytes) => self.metadata[number] = Some(bytes.clone()),
            Write::Expire(now, Whole::Yes) => {
                self.expired = (self.expired.0.max(*now), self.expired.1.max(*now));
            }
            Write::Expire(now, Whole::Perhaps) => self.expired.1 = self.expired.1.max(*now),
            other => panic!("groups take no {other:?}"),
        }
    }

    /// One of both was dropped, and is made again.
    pub(crate) fn renew(&mut self, table: usize, generation: u64) {
        let number = table - TABLES;
        (self.metadata[number], self.generations[number]) = (None, generation);
        if table == CUBE {
            self.cube.clear();
        } else {
            (self.windows, self.expired) = (Contents::new(), (0, 0));
        }
    }

    /// Whether others have the same cube, or the same windows.
    pub(crate) fn is_same(&self, other: &Self, table: usize) -> bool {
        self.generations[table - TABLES] == other.generations[table - TABLES]
    }

    /// The groups of a grouping, by their keys.
    fn grouped(&self, groupings: &Groupings, grouping: Grouping) -> Contents {
        let mut groups = Contents::new();
        for (key, state) in &self.cube {
            merge_into(&mut groups, masked(groupings, grouping, key), state, MERGING[0]);
        }
        groups
    }

    /// Where the windows of the finest tier begin that have values, from some time on, within a range of time.
    fn starts(&self, from: u64, times: &Range<u64>) -> BTreeSet<u64> {
        let starts = self.windows.keys().map(|key| split(key).0);
        starts.filter(|start| *start >= from && times.contains(start)).collect()
    }

    /// What a range of time has of what is kept from some time on.
    fn over(&self, kept_from: u64, times: &Range<u64>) -> Contents {
        let mut groups = Contents::new();
        let times = times.start.max(kept_from)..times.end;
        for (key, state) in &self.windows {
            let (start, key) = split(key);
            if times.contains(&start) {
                merge_into(&mut groups, key.to_vec(), state, MERGING[1]);
            }
        }
        groups
    }
}

/// Whether something was done as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// It was.
    Yes,
    /// It may have been done in part.
    Perhaps,
}

/// A change as the model has it: of windows, by the window of the finest tier.
pub(crate) fn stored(change: &Change) -> Change {
    let mut stored = change.clone();
    if change.table == WINDOWS && matches!(change.write, Write::Merge(_)) {
        let (time, key) = split(&change.key);
        stored.key = window_key(time / LENGTHS[0] * LENGTHS[0], key);
    }
    stored
}

/// A time and a key as one.
pub(crate) fn window_key(time: u64, key: &[u8]) -> Vec<u8> {
    [&time.to_be_bytes()[..], key].concat()
}

fn split(key: &[u8]) -> (u64, &[u8]) {
    let (time, key) = key.split_first_chunk().expect("a time, and a key behind it");
    (u64::from_be_bytes(*time), key)
}

/// A key without the columns that a grouping leaves out.
fn masked(groupings: &Groupings, grouping: Grouping, key: &[u8]) -> Vec<u8> {
    let columns = group_key::split(key).enumerate().map(|(at, column)| {
        let is_left_out = grouping.bits() >> (groupings.columns() - 1 - at) & 1 == 1;
        group_key::column(column).filter(|_| !is_left_out)
    });
    group_key::of(columns)
}

fn merge_into(groups: &mut Contents, key: Vec<u8>, state: &[u8], merging: Merging) {
    use forebay_aggregate::Aggregate;
    let Some(older) = groups.get_mut(&key) else {
        groups.insert(key, state.to_vec());
        return;
    };
    let mut merged = Vec::new();
    Multiset(merging).merge(&[state, older], &mut merged);
    *older = merged;
}

/// Where the tiers' windows begin that are kept.
fn floors(now: u64) -> [u64; 3] {
    std::array::from_fn(|tier| {
        let length = LENGTHS[tier];
        (now / length * length).saturating_sub(u64::from(KEEP[tier]) * length)
    })
}

fn tiers() -> Tiers {
    let [finest, middle, coarsest] = LENGTHS.map(Period::milliseconds);
    Tiers::new(finest, KEEP[0]).then(middle, KEEP[1]).then(coarsest, KEEP[2])
}

/// Handles of both.
#[derive(Clone, Debug)]
pub(crate) struct Handles {
    pub(crate) cube: Cube<Multiset>,
    pub(crate) windows: Windows<Multiset>,
}

impl Handles {
    /// Opens both, or makes them. What was being dropped is dropped first.
    pub(crate) fn open(db: &Database, groupings: &Groupings) -> Result<Self> {
        let open_cube = || db.cube(NAMES[0], Multiset(MERGING[0]), groupings.clone()).open();
        let open_windows = || db.windows(NAMES[1], Multiset(MERGING[1]), tiers()).open();
        let cube = match open_cube() {
            Err(error) if was_being_dropped(&error) => drop_one(db, CUBE).and_then(|()| open_cube()),
            outcome => outcome,
        }?;
        let windows = match open_windows() {
            Err(error) if was_being_dropped(&error) => drop_one(db, WINDOWS).and_then(|()| open_windows()),
            outcome => outcome,
        }?;
        Ok(Self { cube, windows })
    }
}

/// Drops one of both.
pub(crate) fn drop_one(db: &Database, table: usize) -> Result<()> {
    if table == CUBE { db.drop_cube(NAMES[0]) } else { db.drop_windows(NAMES[1]) }
}

fn was_being_dropped(error: &Error) -> bool {
    matches!(error, Error::Invalid(reason) if reason.contains("was being dropped"))
}

/// Merges all that their tables have.
pub(crate) fn compact(db: &Database) -> Result<()> {
    for (name, _) in db.tables() {
        let (owner, rest) = name.split_once('@').unwrap_or((&name, ""));
        match NAMES.iter().position(|known| *known == owner) {
            Some(_) if owner == rest => db.table(&name).existing(true).open()?.compact()?,
            Some(number) => {
                db.aggregator(&name, Multiset(MERGING[number])).existing(true).open()?.finalize()?;
            }
            None => {}
        }
    }
    Ok(())
}
