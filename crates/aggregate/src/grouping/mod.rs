//! Groupings by fewer columns than the finest one, and how each follows from a finer one: every group's state is merged
//! under its key with some columns left out. What is grouped is read once, however many groupings there are.
//!
//! 1. Groupings come in levels, by how many columns they leave out. The first follow from the finest groups.
//! 2. Each further one follows from a finer one that has been made before: from that with the fewest groups. So most
//!    groups are merged out of few.

pub mod group_key;

use std::collections::BTreeMap;
use std::fmt;

use forebay_base::{Error, Result};

/// The most columns of which groupings leave some out.
pub const COLUMNS_MAX: usize = 12;

/// Which columns are left out: the bit of each is set, the last column's lowest, as by `GROUPING` in SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grouping(u16);

impl Grouping {
    /// By all columns.
    pub const FINEST: Self = Self(0);

    /// Of bits.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// How many columns it leaves out.
    pub fn left_out(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it follows from this one.
    fn follows_from(self, finer: Self) -> bool {
        finer.0 & self.0 == finer.0
    }
}

/// The groupings that follow from each.
pub type Children = BTreeMap<Grouping, Vec<Grouping>>;

/// The groupings that are asked for, the finest one among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groupings {
    columns: usize,
    /// Ascending, each once.
    all: Vec<Grouping>,
}

impl Groupings {
    /// Every choice of this many columns, at most [`COLUMNS_MAX`]: SQL's `CUBE`.
    pub fn cube(columns: usize) -> Result<Self> {
        Self::new(columns, |columns| (0..1 << columns).collect())
    }

    /// All columns, all but the last, and so on to none: SQL's `ROLLUP`.
    pub fn rollup(columns: usize) -> Result<Self> {
        Self::new(columns, |columns| (0..=columns).map(|left_out| (1 << left_out) - 1).collect())
    }

    /// By the columns of each set, which are numbered from 0: SQL's `GROUPING SETS`. The finest grouping is always there.
    pub fn sets<S: AsRef<[usize]>>(columns: usize, sets: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut all = Self::new(columns, |_| vec![0])?;
        for set in sets {
            all.all.push(all.by(set)?);
        }
        all.all.sort_unstable();
        all.all.dedup();
        Ok(all)
    }

    fn new(columns: usize, all: impl FnOnce(usize) -> Vec<u16>) -> Result<Self> {
        if columns > COLUMNS_MAX {
            return Err(Error::invalid(format!(
                "groupings are of at most {COLUMNS_MAX} columns, not {columns}"
            )));
        }
        let mut all: Vec<Grouping> = all(columns).into_iter().map(Grouping).collect();
        all.sort_unstable();
        Ok(Self { columns, all })
    }

    /// The grouping by these columns, whether it is one of these or not.
    pub fn by(&self, columns: impl AsRef<[usize]>) -> Result<Grouping> {
        let everything = (1_u32 << self.columns) - 1;
        let mut kept = 0;
        for &column in columns.as_ref() {
            if column >= self.columns {
                return Err(Error::invalid(format!(
                    "there is no column {column}; the {} columns are numbered from 0",
                    self.columns
                )));
            }
            kept |= 1 << (self.columns - 1 - column);
        }
        Ok(Grouping((everything & !kept) as u16))
    }

    /// How many columns the finest grouping has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All of them, the finest one first.
    pub fn iter(&self) -> impl Iterator<Item = Grouping> + '_ {
        self.all.iter().copied()
    }

    /// Whether this is one of them.
    pub fn has(&self, grouping: Grouping) -> bool {
        self.all.binary_search(&grouping).is_ok()
    }

    /// The groupings that leave out this many columns, each under the one that it follows from: that of the least size
    /// of those that are made.
    pub fn children(&self, left_out: u32, sizes: &BTreeMap<Grouping, u64>) -> Children {
        let mut children = Children::new();
        for grouping in self.iter().filter(|grouping| grouping.left_out() == left_out) {
            let finer = sizes.iter().filter(|(finer, _)| grouping.follows_from(**finer));
            if let Some((parent, _)) = finer.min_by_key(|(_, size)| **size) {
                children.entry(*parent).or_default().push(grouping);
            }
        }
        children
    }

    /// Appends a key, or what one begins with, without the columns that a grouping leaves out.
    pub fn mask(&self, grouping: Grouping, key: &[u8], out: &mut Vec<u8>) {
        let mut ends = [0; COLUMNS_MAX];
        let columns = self.ends(key, &mut ends);
        self.mask_columns(grouping, key, &ends[..columns], out);
    }

    /// Where the columns of a key end. Returns how many there are.
    #[inline]
    fn ends(&self, key: &[u8], ends: &mut [usize; COLUMNS_MAX]) -> usize {
        let (mut columns, mut end) = (0, 0);
        for (column, slot) in group_key::split(key).zip(&mut ends[..self.columns]) {
            end += column.len();
            *slot = end;
            columns += 1;
        }
        columns
    }

    #[inline]
    fn mask_columns(&self, grouping: Grouping, key: &[u8], ends: &[usize], out: &mut Vec<u8>) {
        let (mut copied, mut start) = (0, 0);
        for (bit, &end) in (0..self.columns).rev().zip(ends) {
            if grouping.0 >> bit & 1 == 1 {
                out.extend_from_slice(&key[copied..start]);
                group_key::push(out, None);
                copied = end;
            }
            start = end;
        }
        out.extend_from_slice(&key[copied..]);
    }

    /// Shows the keys of the groups that follow from a group, each behind its grouping. `spare` is memory.
    pub fn follow(
        &self,
        children: &Children,
        grouping: Grouping,
        key: &[u8],
        spare: &mut Vec<u8>,
        see: &mut dyn FnMut(Grouping, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(children) = children.get(&grouping) else { return Ok(()) };
        let mut ends = [0; COLUMNS_MAX];
        let columns = self.ends(key, &mut ends);
        for child in children {
            spare.clear();
            group_key::push_grouping(*child, &[], spare);
            self.mask_columns(*child, key, &ends[..columns], spare);
            see(*child, spare)?;
        }
        Ok(())
    }
}

impl fmt::Display for Groupings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns={},groupings=", self.columns)?;
        for (at, grouping) in self.all.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { ";" }, grouping.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groupings_are_those_of_sql() {
        let bits = |groupings: Groupings| groupings.iter().map(Grouping::bits).collect::<Vec<_>>();
        assert_eq!(bits(Groupings::cube(2).unwrap()), [0, 1, 2, 3]);
        assert_eq!(bits(Groupings::rollup(3).unwrap()), [0, 1, 3, 7]);
        assert_eq!(bits(Groupings::sets(3, [&[0][..], &[], &[2, 0]]).unwrap()), [0, 2, 3, 7]);
        assert_eq!(bits(Groupings::cube(0).unwrap()), [0]);
        assert!(Groupings::sets(2, [[2]]).is_err() && Groupings::cube(COLUMNS_MAX + 1).is_err());
        assert_eq!(Groupings::rollup(2).unwrap().to_string(), "columns=2,groupings=0;1;3");
    }

    /// A grouping whose columns leave out two more than any other's follows from that all the same.
    #[test]
    fn each_follows_from_the_least_finer_one() {
        let sets = Groupings::sets(3, [&[0][..], &[0, 1]]).unwrap();
        let [finest, fine, coarse] = [0, 1, 3].map(Grouping);
        let mut sizes = BTreeMap::from([(finest, 9)]);
        assert_eq!(sets.children(1, &sizes), Children::from([(finest, vec![fine])]));
        sizes.insert(fine, 4);
        assert_eq!(sets.children(2, &sizes), Children::from([(fine, vec![coarse])]));
        assert!(sets.children(3, &sizes).is_empty());
    }

    #[test]
    fn what_a_key_begins_with_is_masked_as_the_key() {
        let groupings = Groupings::cube(3).unwrap();
        let key = group_key::of([Some("a"), Some("b"), None]);
        for grouping in groupings.iter() {
            let mut whole = Vec::new();
            groupings.mask(grouping, &key, &mut whole);
            for end in [0, 3, 6, 8] {
                let mut masked = Vec::new();
                groupings.mask(grouping, &key[..end], &mut masked);
                assert!(whole.starts_with(&masked), "{grouping:?}, {end}");
            }
        }
    }
}
