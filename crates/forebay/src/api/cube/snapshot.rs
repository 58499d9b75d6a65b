//! Reading a cube: as it is now, or as a snapshot has it.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Grouping, group_key};
use forebay_base::Result;

use super::Cube;
use crate::api::KeyBounds;
use crate::versions::View;
use crate::{AggregatorScan, AggregatorSnapshot};

/// A [`Cube`] at one moment: all of its groupings agree.
pub struct CubeSnapshot<A> {
    cube: Cube<A>,
    view: View,
    database_id: u64,
}

impl<A> fmt::Debug for CubeSnapshot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CubeSnapshot({:?})", self.cube)
    }
}

impl<A: Aggregate> CubeSnapshot<A> {
    pub(super) fn new(cube: &Cube<A>, view: View, database_id: u64) -> Self {
        Self { cube: cube.clone(), view, database_id }
    }

    /// What a group's values came to.
    pub fn get(&self, grouping: Grouping, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        let table = self.table(grouping)?;
        match grouping {
            Grouping::FINEST => table.get(key),
            _ => table.get(self.stored(grouping, key.as_ref())),
        }
    }

    /// All groups of a grouping.
    pub fn iter(&self, grouping: Grouping) -> Result<CubeScan<A>> {
        self.prefix(grouping, [])
    }

    /// The groups of a grouping in a range of keys, ascending.
    pub fn range(&self, grouping: Grouping, bounds: impl KeyBounds) -> Result<CubeScan<A>> {
        let stored = |key: Bound<&[u8]>, open: Bound<Vec<u8>>| match key {
            Bound::Included(key) => Bound::Included(self.stored(grouping, key)),
            Bound::Excluded(key) => Bound::Excluded(self.stored(grouping, key)),
            Bound::Unbounded => open,
        };
        let (first, last) = match grouping {
            Grouping::FINEST => (Bound::Unbounded, Bound::Unbounded),
            _ => {
                let next = u32::from(grouping.bits()) + 1;
                let end = u16::try_from(next)
                    .map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_be_bytes().to_vec()));
                (Bound::Included(self.stored(grouping, b"")), end)
            }
        };
        let range = (stored(bounds.low(), first), stored(bounds.high(), last));
        Ok(CubeScan { scan: self.table(grouping)?.range(range)?, grouping })
    }

    /// The groups of a grouping whose keys begin so.
    pub fn prefix(&self, grouping: Grouping, prefix: impl AsRef<[u8]>) -> Result<CubeScan<A>> {
        let scan = self.table(grouping)?.prefix(self.stored(grouping, prefix.as_ref()))?;
        Ok(CubeScan { scan, grouping })
    }

    /// The bytes that came with the last [`commit`](crate::CubeBatch::commit) before.
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        self.cube.parts.declared.metadata(&self.view, self.database_id)
    }

    fn table(&self, grouping: Grouping) -> Result<AggregatorSnapshot<Arc<A>>> {
        Ok(self.cube.parts.table(grouping)?.seen_of(self.view.clone(), self.database_id))
    }

    /// A key, or what one begins with, as it is stored.
    fn stored(&self, grouping: Grouping, key: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(key.len() + 2);
        if grouping != Grouping::FINEST {
            group_key::push_grouping(grouping, &[], &mut stored);
        }
        self.cube.groupings().mask(grouping, key, &mut stored);
        stored
    }
}

/// Groups with what their values come to, as of when the walk was made: from the front, from the back, or both.
pub struct CubeScan<A> {
    scan: AggregatorScan<Arc<A>>,
    grouping: Grouping,
}

impl<A> fmt::Debug for CubeScan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.scan, self.grouping)
    }
}

impl<A> CubeScan<A> {
    fn shown<T>(&self, entry: Result<(Vec<u8>, T)>) -> Result<(Vec<u8>, T)> {
        let (key, value) = entry?;
        let shown = match self.grouping {
            Grouping::FINEST => key,
            _ => group_key::split_grouping(&key).1.to_vec(),
        };
        Ok((shown, value))
    }
}

impl<A: Aggregate> Iterator for CubeScan<A> {
    type Item = Result<(Vec<u8>, A::Output)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.next().map(|entry| self.shown(entry))
    }
}

impl<A: Aggregate> DoubleEndedIterator for CubeScan<A> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.scan.next_back().map(|entry| self.shown(entry))
    }
}
