//! Records in the order of hashes, as nodes hold them unpacked: hashes, sizes, and keys with their states.

use std::ops::Range;

/// A key with its state, and the hash by which it is ordered.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) hash: u32,
    pub(super) key: &'a [u8],
    pub(super) state: &'a [u8],
}

/// Records side by side.
#[derive(Clone, Default)]
pub(super) struct Records {
    /// Bytes of every state, if that is one number.
    state_bytes: Option<usize>,
    pub(super) hashes: Vec<u32>,
    pub(super) key_sizes: Vec<u32>,
    /// Empty where states are of one length.
    pub(super) state_sizes: Vec<u32>,
    /// Each key with its state behind it.
    pub(super) pairs: Vec<u8>,
}

impl Records {
    /// With memory for so many records of so many bytes.
    pub(super) fn with_capacity(state_bytes: Option<usize>, records: usize, pair_bytes: usize) -> Self {
        Self {
            state_bytes,
            hashes: Vec::with_capacity(records),
            key_sizes: Vec::with_capacity(records),
            state_sizes: Vec::with_capacity(if state_bytes.is_some() { 0 } else { records }),
            pairs: Vec::with_capacity(pair_bytes),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let numbers = self.hashes.capacity() + self.key_sizes.capacity() + self.state_sizes.capacity();
        size_of::<u32>() * numbers + self.pairs.capacity()
    }

    #[inline]
    pub(super) fn push(&mut self, record: &Record<'_>) {
        debug_assert!(self.hashes.last().is_none_or(|&last| last <= record.hash), "records come in order");
        self.hashes.push(record.hash);
        self.key_sizes.push(record.key.len() as u32);
        if self.state_bytes.is_none() {
            self.state_sizes.push(record.state.len() as u32);
        }
        self.pairs.extend_from_slice(record.key);
        self.pairs.extend_from_slice(record.state);
    }

    /// The state of the last record, which is this long.
    #[inline]
    pub(super) fn last_state(&mut self, state_bytes: usize) -> &mut [u8] {
        let start = self.pairs.len() - state_bytes;
        &mut self.pairs[start..]
    }

    /// All of them.
    pub(super) fn whole(&self) -> Part<'_> {
        self.part(0..self.len(), 0)
    }

    /// Some of them, whose keys and states begin there.
    pub(super) fn part(&self, range: Range<usize>, start: usize) -> Part<'_> {
        let key_sizes = &self.key_sizes[range.clone()];
        let state_sizes = if self.state_bytes.is_some() { &[][..] } else { &self.state_sizes[range.clone()] };
        let sum = |sizes: &[u32]| sizes.iter().map(|&size| size as usize).sum::<usize>();
        let states = self.state_bytes.map_or_else(|| sum(state_sizes), |bytes| bytes * key_sizes.len());
        let end = start + sum(key_sizes) + states;
        Part {
            state_bytes: self.state_bytes,
            hashes: &self.hashes[range],
            key_sizes,
            state_sizes,
            pairs: &self.pairs[start..end],
        }
    }

    /// Where the middle is, before which and behind which there are records and no hash is on both sides.
    pub(super) fn middle(&self) -> Option<usize> {
        let &hash = self.hashes.get(self.len() / 2)?;
        let first = self.hashes.partition_point(|&other| other < hash);
        let behind = self.hashes.partition_point(|&other| other <= hash);
        [first, behind].into_iter().find(|&at| at > 0 && at < self.len())
    }
}

/// Some records, lent.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    state_bytes: Option<usize>,
    pub(super) hashes: &'a [u32],
    pub(super) key_sizes: &'a [u32],
    pub(super) state_sizes: &'a [u32],
    pub(super) pairs: &'a [u8],
}

impl<'a> Part<'a> {
    /// What they take unpacked: what a node's buffer is measured by.
    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * (2 * self.hashes.len() + self.state_sizes.len()) + self.pairs.len()
    }

    pub(super) fn to_records(self) -> Records {
        Records {
            state_bytes: self.state_bytes,
            hashes: self.hashes.to_vec(),
            key_sizes: self.key_sizes.to_vec(),
            state_sizes: self.state_sizes.to_vec(),
            pairs: self.pairs.to_vec(),
        }
    }

    pub(super) fn walk(self) -> Walk<'a> {
        Walk { part: self, at: 0, rest: self.pairs }
    }
}

/// One record after the other.
pub(super) struct Walk<'a> {
    part: Part<'a>,
    at: usize,
    rest: &'a [u8],
}

impl Walk<'_> {
    /// The hash of the next.
    #[inline]
    pub(super) fn hash(&self) -> Option<u32> {
        self.part.hashes.get(self.at).copied()
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let hash = self.hash()?;
        let (key, rest) = self.rest.split_at_checked(self.part.key_sizes[self.at] as usize)?;
        let state_bytes = self.part.state_bytes.unwrap_or_else(|| self.part.state_sizes[self.at] as usize);
        let (state, rest) = rest.split_at_checked(state_bytes)?;
        (self.at, self.rest) = (self.at + 1, rest);
        Some(Record { hash, key, state })
    }
}
