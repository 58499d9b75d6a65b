//! What the engine has to hold: which record numbers, and which version of each. Four bytes a record where
//! anything was overwritten, nothing before that.

use std::ops::Range;

use crate::answers::Expected;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Records below this number were removed.
    first: u64,
    /// Records from this number on were not written yet.
    next: u64,
    /// Of those in between these were removed.
    hole: Range<u64>,
    /// By record number, from zero; those that are missing are 0.
    versions: Vec<u32>,
}

impl Oracle {
    /// How many records there are.
    pub(crate) fn live(&self) -> u64 {
        self.next - self.first - (self.hole.end - self.hole.start)
    }

    /// The numbers of those that are there, and where some were removed in their midst, of these too.
    pub(crate) fn numbers(&self) -> Range<u64> {
        self.first..self.next
    }

    /// Records up to this number are written.
    pub(crate) fn written_to(&mut self, next: u64) {
        self.next = next;
    }

    /// Records up to this number are removed.
    pub(crate) fn removed_to(&mut self, first: u64) {
        self.first = first;
    }

    /// Records of these numbers are removed, none of them the first or the last.
    pub(crate) fn removed(&mut self, hole: Range<u64>) {
        self.hole = hole;
    }

    pub(crate) fn version(&self, number: u64) -> u32 {
        self.versions.get(number as usize).copied().unwrap_or(0)
    }

    /// The version that an overwrite of the record makes.
    #[inline]
    pub(crate) fn overwrite(&mut self, number: u64) -> u32 {
        if number as usize >= self.versions.len() {
            self.versions.resize(self.next as usize, 0);
        }
        let version = &mut self.versions[number as usize];
        *version = version.wrapping_add(1);
        *version
    }

    /// What a lookup of the record has to answer.
    pub(crate) fn expected(&self, number: u64) -> Expected {
        if self.numbers().contains(&number) && !self.hole.contains(&number) {
            Expected::Version { number, version: self.version(number) }
        } else {
            Expected::Removed { number }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_overwrites() {
        let mut oracle = Oracle::default();
        oracle.written_to(10);
        assert_eq!((oracle.live(), oracle.version(3)), (10, 0));
        assert_eq!((oracle.overwrite(3), oracle.overwrite(3), oracle.version(3)), (1, 2, 2));
        oracle.written_to(12);
        assert_eq!((oracle.version(11), oracle.overwrite(11)), (0, 1));
        oracle.removed_to(4);
        assert_eq!(oracle.expected(3), Expected::Removed { number: 3 });
        assert_eq!(oracle.expected(11), Expected::Version { number: 11, version: 1 });
        assert_eq!(oracle.live(), 8);
        oracle.removed(6..9);
        assert_eq!((oracle.live(), oracle.expected(6)), (5, Expected::Removed { number: 6 }));
        assert_eq!(oracle.expected(9), Expected::Version { number: 9, version: 0 });
    }
}
