//! What is added to a cube at one go: merged in memory first, and then brought to all coarser groups.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Aggregator as _, Grouping, HashAggregator, group_key};
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::{Error, Result};
use forebay_store::log::Durability;

use super::Cube;
use crate::Batch;
use crate::api::batch::Amid;

/// The most memory that the groups of a level take: no longer batch can be committed.
const GROUPS_BYTES_MAX: usize = 1 << 30;
/// The longest key: those of coarser groups begin with their grouping.
const CUBE_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - size_of::<u16>();

/// Values for a [`Cube`], all of which are written or none. Values of a group are merged as they come, so that the more
/// come of each, the less a batch costs.
pub struct CubeBatch<A: Aggregate> {
    cube: Cube<A>,
    groups: HashAggregator<Arc<A>>,
    amid: Amid,
}

impl<A: Aggregate> fmt::Debug for CubeBatch<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CubeBatch({} groups of {:?})", self.len(), self.cube)
    }
}

impl<A: Aggregate> CubeBatch<A> {
    pub(super) fn new(cube: &Cube<A>) -> Self {
        let groups = HashAggregator::new(Arc::clone(&cube.parts.function), GROUPS_BYTES_MAX);
        Self { cube: cube.clone(), groups, amid: Amid::default() }
    }

    /// Adds a value to a key, a [group key](crate::aggregate::group_key) of all columns. A key of another number of
    /// columns, or of more than 64 KiB less 2 bytes, is an error, as is a value that the function refuses; then nothing
    /// is added.
    pub fn add(&mut self, key: impl AsRef<[u8]>, value: A::Input<'_>) -> Result<()> {
        self.check(key.as_ref())?;
        self.amid.guard(|| self.groups.add(key.as_ref(), value))
    }

    /// Merges a state into that of a key.
    pub fn add_state(&mut self, key: impl AsRef<[u8]>, state: impl AsRef<[u8]>) -> Result<()> {
        self.check(key.as_ref())?;
        self.amid.guard(|| self.groups.add_state(key.as_ref(), state.as_ref()))
    }

    #[inline]
    fn check(&self, key: &[u8]) -> Result<()> {
        let (mut columns, mut bytes, mut is_whole) = (0, 0, true);
        for column in group_key::split(key) {
            (columns, bytes) = (columns + 1, bytes + column.len());
            is_whole &= group_key::is_column(column);
        }
        if columns != self.cube.groupings().columns() || bytes != key.len() || !is_whole {
            return Err(Error::invalid(format!(
                "a key of cube `{}` is a group key of {} columns; make it by aggregate::group_key::of",
                self.cube.name(),
                self.cube.groupings().columns()
            )));
        }
        if bytes > CUBE_KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key of cube `{}` has {bytes} bytes; at most {CUBE_KEY_BYTES_MAX} are allowed",
                self.cube.name()
            )));
        }
        Ok(())
    }

    /// How many of the finest groups it has.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Memory of its finest groups.
    pub fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes()
    }

    /// Writes all of it, together with bytes of the caller's, such as how far a stream was read: see
    /// [`Cube::metadata`]. Returns the number of the last record. A batch that is committed again is added again.
    pub fn commit(&self, durability: Durability, metadata: impl AsRef<[u8]>) -> Result<u64> {
        self.commit_as(Batch::new(), durability, Some(metadata.as_ref()))
    }

    /// The same together with a batch of other tables of the database.
    pub fn commit_with(
        &self,
        batch: Batch,
        durability: Durability,
        metadata: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.commit_as(batch, durability, Some(metadata.as_ref()))
    }

    /// The same without metadata: those of before stay.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<u64> {
        self.commit_as(batch, durability, None)
    }

    pub(super) fn commit_as(
        &self,
        mut batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
    ) -> Result<u64> {
        let declared = &self.cube.parts.declared;
        self.append_to(&mut batch)?;
        metadata.iter().for_each(|metadata| declared.put_metadata(&mut batch, metadata));
        let table = declared.table();
        table.engine.writer.write(batch.payload(table.database_id())?, durability)
    }

    /// Appends all of it to a batch of any tables, whose commit writes it. After an error that has nothing of it.
    pub fn append_to(&self, batch: &mut Batch) -> Result<()> {
        self.amid.refuse("begin another")?;
        let (parts, levels) = (&*self.cube.parts, self.levels()?);
        batch.guarded(|batch| {
            let tables = [&parts.finest].into_iter().chain(parts.levels.iter().map(|(_, table)| table));
            let groups = [&self.groups].into_iter().chain(levels.iter().map(|(_, level)| level));
            tables.zip(groups).try_for_each(|(table, groups)| {
                groups.for_each(&mut |key, state| {
                    batch.add_state(table, key, state);
                    Ok(())
                })
            })
        })
    }

    /// The coarser groups, by how many columns they leave out.
    fn levels(&self) -> Result<Vec<(u32, HashAggregator<Arc<A>>)>> {
        let parts = &*self.cube.parts;
        let mut sizes = BTreeMap::from([(Grouping::FINEST, self.groups.len() as u64)]);
        let mut made: Vec<(u32, HashAggregator<Arc<A>>)> = Vec::new();
        let mut spare = Vec::new();
        for (left_out, _) in &parts.levels {
            let children = parts.groupings.children(*left_out, &sizes);
            let mut level = HashAggregator::new(Arc::clone(&parts.function), GROUPS_BYTES_MAX);
            let mut follow = |grouping, key: &[u8], state: &[u8]| {
                parts.groupings.follow(&children, grouping, key, &mut spare, &mut |_, masked| {
                    level.add_state(masked, state)
                })
            };
            if children.contains_key(&Grouping::FINEST) {
                self.groups.for_each(&mut |key, state| follow(Grouping::FINEST, key, state))?;
            }
            for (finer, groups) in &made {
                if children.keys().any(|parent| parent.left_out() == *finer) {
                    groups.for_each(&mut |key, state| {
                        let (grouping, key) = group_key::split_grouping(key);
                        follow(grouping, key, state)
                    })?;
                }
            }
            level.finalize()?;
            level.for_each(&mut |key, _| {
                *sizes.entry(group_key::split_grouping(key).0).or_default() += 1;
                Ok(())
            })?;
            debug_assert!(
                self.is_empty() || children.values().flatten().all(|grouping| sizes.contains_key(grouping)),
                "every grouping has a group"
            );
            made.push((*left_out, level));
        }
        Ok(made)
    }
}
