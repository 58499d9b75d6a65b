//! A table in front of an aggregator: groups of the rows that came last, with what each function keeps of them.
//!
//! **Invariant:** group 0 is nobody's, and the others are numbered in the order they came.

use forebay_base::Result;
use forebay_base::hash::key_hash;

use super::keys::{before_long, push_key};
use super::known::{Known, TOGETHER};
use super::order::in_order;
use super::parts::Parts;
use super::words::{KEYS_MAX, Words, width};
use super::{Kind, Lane, Rows};
use crate::compressed::SEED;
use crate::function::Function;

/// What takes groups: a key's hash, the key and its state.
pub(crate) type Sink<'s> = dyn FnMut(u64, &[u8], &[u8]) -> Result<()> + 's;

/// Rows that are looked at together: what is made of them stays in the second cache.
const ROWS_MAX: usize = 8 << 10;
/// So many for each byte of memory.
const ROW_MEMORY_BYTES: usize = 8 << 10;
const ROWS_MIN: usize = 64;
/// The table has this share of the memory, or less.
const SHARE: usize = 16;
const BYTES_MAX: usize = 32 << 20;
/// Of that the keys and states of rows that are looked at together take this share.
pub(crate) const SOME_SHARE: usize = 4;
/// Fewer adds a group than this are not worth the table,
const ADDS_PER_GROUP_MIN: f64 = 1.25;
/// which is then passed by for this many adds for each group that it held.
const PASSED_BY: u64 = 64;

/// What becomes of rows behind one that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRefused {
    /// They are added.
    PassBy,
    /// They are left, and it with them.
    End,
}

/// See the module.
pub(crate) struct Front {
    /// What groups may take.
    pub(crate) bytes_max: usize,
    rows_max: usize,
    parts: Parts,
    /// Those of the lanes that functions are given, and of those of the key.
    kinds: [Vec<Kind>; 2],
    words: Words,
    known: Known,
    /// The keys of groups.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// The group of each row.
    groups: Vec<u32>,
    /// Rows that came since the table was empty, and those it is passed by for.
    adds: u64,
    passes_by: u64,
    state: Vec<u8>,
}

impl Front {
    /// An empty table, for an aggregator with this much memory, of which groups take no more than so much.
    pub(crate) fn new(memory_max: usize, groups_bytes_max: usize) -> Self {
        let rows_max = (memory_max / ROW_MEMORY_BYTES).clamp(ROWS_MIN, ROWS_MAX);
        Self {
            bytes_max: (memory_max / SHARE).min(BYTES_MAX).min(groups_bytes_max),
            rows_max,
            parts: Parts::default(),
            kinds: Default::default(),
            words: Words::default(),
            known: Known::default(),
            keys: Vec::new(),
            key_ends: vec![0],
            groups: Vec::new(),
            adds: 0,
            passes_by: 0,
            state: Vec::new(),
        }
    }

    /// Adds rows. What leaves the table goes to `sink`; the numbers of rows that are refused, for their key or by a
    /// function, are put in place of what `refused` holds. Returns how many rows that is; the others are left.
    pub(crate) fn add(
        &mut self,
        functions: &[&dyn Function],
        rows: &Rows<'_>,
        on_refused: OnRefused,
        refused: &mut Vec<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        refused.clear();
        if self.kinds != kinds(rows) {
            self.empty(sink)?;
            self.begin(functions, kinds(rows));
        }
        let mut from = 0;
        while from < rows.len() {
            let len = self.some(rows, from);
            let before = refused.len();
            let added = self.add_some(functions, &rows.slice(from, len), on_refused, refused, sink);
            refused[before..].sort_unstable();
            refused[before..].iter_mut().for_each(|row| *row += from as u32);
            let added = added?;
            from += added;
            if added < len {
                break;
            }
        }
        refused.dedup();
        debug_assert!(on_refused == OnRefused::PassBy || refused.is_empty(), "what is refused is left");
        Ok(from)
    }

    /// How many rows from one on are looked at together: so many that what is made of them takes a part of the table's
    /// memory.
    fn some(&self, rows: &Rows<'_>, from: usize) -> usize {
        debug_assert!(from < rows.len(), "there are rows left");
        let row_bytes = self.parts.row_bytes() + size_of::<u64>() * width(rows.keys().iter().map(Lane::kind));
        let bytes_max = self.bytes_max / SOME_SHARE;
        let most = self.rows_max.min(rows.len() - from).min(bytes_max / row_bytes).max(1);
        let texts: Vec<_> = rows.keys().iter().filter(|lane| lane.kind() == Kind::Bytes).collect();
        if texts.is_empty() {
            return most;
        }
        let mut bytes = 0;
        for at in 0..most {
            bytes += row_bytes + texts.iter().map(|lane| lane.text(from + at).len()).sum::<usize>();
            if at > 0 && bytes > bytes_max {
                return at;
            }
        }
        most
    }

    /// Makes what functions keep for lanes of these kinds.
    fn begin(&mut self, functions: &[&dyn Function], kinds: [Vec<Kind>; 2]) {
        debug_assert!(self.is_empty(), "groups of other kinds have left");
        (self.kinds, self.known) = (kinds, Known::default());
        let [lanes, keys] = &self.kinds;
        self.parts = Parts::new(functions, lanes);
        // States that grow by rows are merged where there is room for them.
        let is_held = self.parts.are_counted() && keys.len() <= KEYS_MAX;
        self.passes_by = if is_held { 0 } else { u64::MAX };
        self.parts.resize(1);
    }

    fn add_some(
        &mut self,
        functions: &[&dyn Function],
        rows: &Rows<'_>,
        on_refused: OnRefused,
        refused: &mut Vec<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        let before = refused.len();
        self.parts.read(functions, rows, refused);
        if on_refused == OnRefused::End {
            let most = refused[before..].iter().min().map_or(rows.len(), |first| *first as usize);
            let sound = before_long(rows, most, &mut self.keys);
            refused.truncate(before);
            match sound {
                0 => return Ok(0),
                sound if sound < rows.len() => {
                    // What was read of the others is forgotten.
                    return self.add_some(functions, &rows.slice(0, sound), on_refused, refused, sink);
                }
                _ => {}
            }
        }
        if self.passes_by == 0 && self.memory_bytes() >= self.bytes_max {
            self.empty(sink)?;
        }
        self.groups.clear();
        self.groups.resize(rows.len(), u32::MAX);
        refused[before..].iter().for_each(|row| self.groups[*row as usize] = 0);
        if self.passes_by > 0 {
            if self.passes_by < u64::MAX {
                self.passes_by = self.passes_by.saturating_sub(rows.len() as u64);
            }
            return self.pass(functions, rows, refused, sink).map(|()| rows.len());
        }
        debug_assert!(
            refused[before..].iter().all(|row| self.groups[*row as usize] == 0),
            "who is refused has no group"
        );
        self.words.fill(rows, &self.groups);
        // A number; a text, or two numbers; a text and a number; two texts.
        match self.words.width {
            2 => self.find::<2>(rows, refused),
            3 => self.find::<3>(rows, refused),
            4 => self.find::<4>(rows, refused),
            5 => self.find::<5>(rows, refused),
            _ => self.find::<0>(rows, refused),
        }
        self.adds += rows.len() as u64;
        self.parts.resize(self.key_ends.len());
        self.parts.add(functions, rows, &self.groups);
        Ok(rows.len())
    }

    /// Finds the group of each row, or makes one. `W` is how many words a row has, or 0 for any number.
    fn find<const W: usize>(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let (width, mut others) = (self.words.width, [0; TOGETHER]);
        let all = std::mem::take(&mut self.words.rows);
        for (start, some) in (0..).step_by(TOGETHER).zip(all.chunks(TOGETHER * width)) {
            let groups = &mut self.groups[start..][..some.len() / width];
            let count = self.known.find_first::<W>(some, width, groups, &mut others);
            for at in &others[..count] {
                let words = &some[at * width..][..width];
                self.groups[start + at] = match self.known.find(words) {
                    Ok(group) => group,
                    Err(slot) => self.found(rows, start + at, words, slot, refused),
                };
            }
        }
        self.words.rows = all;
    }

    /// A group that is not known; 0 where its key is too long.
    fn found(
        &mut self,
        rows: &Rows<'_>,
        at: usize,
        words: &[u64],
        slot: usize,
        refused: &mut Vec<u32>,
    ) -> u32 {
        if !push_key(rows, at, &mut self.keys) {
            refused.push(at as u32);
            return 0;
        }
        debug_assert!(words.len() > rows.keys().len(), "a word for each column, and one for nulls");
        let group = self.key_ends.len() as u32;
        self.key_ends.push(self.keys.len());
        self.known.insert(slot, group, words);
        group
    }

    /// Gives every row to `sink` as a group by itself.
    fn pass(
        &mut self,
        functions: &[&dyn Function],
        rows: &Rows<'_>,
        refused: &mut Vec<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        debug_assert!(self.is_empty(), "no group is passed by");
        let (mut keys, mut ends, mut hashes) = (std::mem::take(&mut self.keys), Vec::new(), Vec::new());
        for at in 0..rows.len() {
            let start = keys.len();
            if !push_key(rows, at, &mut keys) && self.groups[at] > 0 {
                refused.push(at as u32);
                self.groups[at] = 0;
            }
            ends.push((start, keys.len()));
            hashes.push(key_hash(&keys[start..], SEED));
        }
        for (at, group) in self.groups.iter_mut().enumerate() {
            *group = if *group == 0 { 0 } else { at as u32 + 1 };
        }
        self.parts.resize(rows.len() + 1);
        self.parts.add(functions, rows, &self.groups);
        self.parts.gather();
        let mut passed = Ok(());
        debug_assert_eq!((hashes.len(), ends.len()), (rows.len(), rows.len()), "each row has a key");
        for at in in_order(&hashes) {
            if self.groups[at] == 0 || passed.is_err() {
                continue;
            }
            self.parts.write_state(at + 1, &mut self.state);
            passed = sink(hashes[at], &keys[ends[at].0..ends[at].1], &self.state);
        }
        self.parts.resize(1);
        keys.clear();
        self.keys = if keys.capacity() > self.bytes_max { Vec::new() } else { keys };
        passed
    }

    /// Empties the table: each group goes to `sink`. What it fails for stays.
    pub(crate) fn empty(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let groups = self.key_ends.len() - 1;
        if groups == 0 {
            self.words.forget();
            return Ok(());
        }
        if (self.adds as f64) < ADDS_PER_GROUP_MIN * groups as f64 {
            self.passes_by = PASSED_BY * groups as u64;
        }
        self.adds = 0;
        self.parts.gather();
        for group in (1..=groups).rev() {
            self.parts.write_state(group, &mut self.state);
            let key = &self.keys[self.key_ends[group - 1]..self.key_ends[group]];
            if let Err(error) = sink(key_hash(key, SEED), key, &self.state) {
                self.passes_by = 0;
                self.truncate(group);
                return Err(error);
            }
        }
        (self.keys, self.key_ends, self.known) = (Vec::new(), vec![0], Known::default());
        self.words.forget();
        self.parts.resize(0);
        self.parts.resize(1);
        Ok(())
    }

    /// Forgets all groups behind the first few.
    fn truncate(&mut self, groups: usize) {
        self.key_ends.truncate(groups + 1);
        self.keys.truncate(self.key_ends[groups]);
        self.known.truncate(groups, self.words.width);
        self.parts.resize(groups + 1);
    }

    /// Whether it has no groups.
    pub(crate) fn is_empty(&self) -> bool {
        self.key_ends.len() == 1
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.parts.memory_bytes()
            + self.words.memory_bytes()
            + self.known.memory_bytes()
            + size_of::<u32>() * self.groups.capacity()
            + self.keys.capacity()
            + size_of::<usize>() * self.key_ends.capacity()
            + self.state.capacity()
    }
}

/// The kinds of the lanes that functions are given, and of those of the key.
fn kinds(rows: &Rows<'_>) -> [Vec<Kind>; 2] {
    [rows.lanes(), rows.keys()].map(|lanes| lanes.iter().map(Lane::kind).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_base::Error;

    use super::*;
    use crate::columns::Items;

    /// What cannot leave the table stays in it, and is found again.
    #[test]
    fn what_is_not_taken_stays() {
        let functions: [&dyn Function; 1] = [&crate::row_count::RowCount];
        let (mut front, mut refused) = (Front::new(64 << 20, 4 << 20), Vec::new());
        let keys: Vec<i64> = (0..1000).map(|number| number % 300).collect();
        let lane = Lane::new(Items::I64(&keys), None).expect("a lane");
        let rows = Rows::new(vec![lane], 1).expect("rows");
        let mut counts = BTreeMap::<Vec<u8>, u64>::new();
        for taken in [0, 1, 100, 299, 300] {
            let added = front.add(&functions, &rows, OnRefused::PassBy, &mut refused, &mut |_, _, _| Ok(()));
            assert_eq!(added.expect("room"), 1000);
            let mut left = taken;
            let emptied = front.empty(&mut |_, key, state| {
                if left == 0 {
                    return Err(Error::invalid("full"));
                }
                left -= 1;
                let count = state.try_into().map(u64::from_le_bytes).expect("a count");
                *counts.entry(key.to_vec()).or_default() += count;
                Ok(())
            });
            assert_eq!(emptied.is_ok(), taken == 300, "of {taken}");
        }
        assert_eq!((counts.len(), counts.values().sum::<u64>()), (300, 5000));
    }
}
