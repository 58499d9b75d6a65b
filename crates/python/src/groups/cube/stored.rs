//! [`StoredCube`]: what is open of a cube that a database keeps, and [`Moment`], the cube as of a moment, whose levels are
//! read as groups of fewer columns.

use std::ops::Bound;

use forebay::aggregate::{Composite, Grouping, Groupings};
use forebay::{Approximation, Batch, Durability, Error, OrderedTable, Result, Snapshot};
use forebay_aggregate::arrow::{PartialSchema, RecordBatchStates};
use forebay_aggregate::group_key;
use forebay_env::sync::Arc;

use super::sets::{columns_of, places_of, shape_of};
use crate::database::Open;
use crate::failure::Outcome;
use crate::groups::asked::Asked;
use crate::groups::grouping::Levels;
use crate::groups::held::{Opens, Part, Writes};
use crate::groups::kept::Shape;
use crate::groups::pinned::Pins;
use crate::groups::read::{Find, Grouped, Made, Wanted};
use crate::rows::{BATCH_ROWS, Batches};

/// The smallest part of an update, of however many groupings.
const PART_BYTES_MIN: usize = 16 << 10;
/// A row is reckoned to add so much to the finest groups, states that are long among them.
const ROW_BYTES: usize = 512;

/// See the module.
pub(super) struct StoredCube {
    pub(super) cube: forebay::Cube<Arc<Composite>>,
    pub(super) schema: PartialSchema,
}

impl StoredCube {
    /// The metadata that a snapshot has. The table is looked up by its name, as those of the groups are: a cube that was
    /// dropped and made again has another, and a savepoint or a rollback the former.
    pub(super) fn metadata_at(&self, snapshot: &Snapshot) -> Result<Option<Vec<u8>>> {
        let table = snapshot.table(&format!("{}@cube", self.cube.name()))?;
        snapshot.get(&table, b"metadata")
    }
}

impl Opens for StoredCube {
    const NOUN: &'static str = "cube";
    type Means = Groupings;

    fn open(open: &Arc<Open>, name: &str, schema: PartialSchema, groupings: &Groupings) -> Outcome<Self> {
        let function = Arc::clone(schema.function());
        let cube = open.with_detached(|db| db.cube(name, function, groupings.clone()).open())?;
        Ok(Self { cube, schema })
    }

    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn shape(groupings: &Groupings) -> Shape {
        shape_of(groupings)
    }
}

impl Writes for StoredCube {
    type Late = ();

    /// Each of the finest groups may come to one in every grouping.
    fn part(&self) -> Part {
        let bytes =
            (forebay_groups::PENDING_BYTES / self.cube.groupings().iter().count()).max(PART_BYTES_MIN);
        Part { bytes, rows: (bytes / ROW_BYTES).min(BATCH_ROWS) }
    }

    fn write(
        &self,
        states: Option<&mut RecordBatchStates>,
        batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
        _late: &(),
    ) -> Result<u64> {
        let mut rows = self.cube.batch();
        if let Some(states) = states {
            states.take(&mut |key, state| rows.add_state(key, state))?;
        }
        match metadata {
            Some(metadata) => rows.commit_with(batch, durability, metadata),
            None => rows.write(batch, durability),
        }
    }
}

/// A cube as a snapshot has it.
pub(super) struct Moment {
    pub(super) asked: Arc<Asked>,
    pub(super) stored: Arc<StoredCube>,
    pub(super) snapshot: Snapshot,
}

impl Moment {
    /// The groups of a grouping that is kept, by these columns in this order.
    pub(super) fn level(self: &Arc<Self>, columns: &[String]) -> Result<Arc<Level>> {
        let (cube, keys) = (&self.stored.cube, &self.asked.keys);
        let (groupings, places) = (cube.groupings(), places_of(columns, keys)?);
        let grouping = groupings.by(&places)?;
        if !groupings.has(grouping) {
            let kept: Vec<_> = groupings.iter().map(|grouping| columns_of(grouping, keys)).collect();
            return Err(Error::invalid(format!(
                "cube `{}` keeps no groups by {columns:?}; it does by {kept:?}",
                cube.name()
            )));
        }
        let name = match grouping {
            Grouping::FINEST => cube.name().to_string(),
            _ => format!("{}@{}", cube.name(), grouping.left_out()),
        };
        // A savepoint's tables know no function before it is named.
        self.snapshot.aggregator(&name, Arc::clone(self.stored.schema.function()))?;
        let table = self.snapshot.ordered_table(&name)?;
        let schema = self.asked.coarser(columns.to_vec())?.partial_of_states(&self.stored.schema)?;
        Ok(Arc::new(Level { moment: Arc::clone(self), grouping, places, schema, table }))
    }
}

/// All levels, for who reads one after the other.
pub(super) struct All(pub(super) Arc<Moment>);

impl Levels for All {
    fn level(&self, asked: &Asked) -> Result<Arc<dyn Grouped>> {
        Ok(self.0.level(&asked.keys)?)
    }
}

/// The groups of a grouping.
pub(super) struct Level {
    moment: Arc<Moment>,
    grouping: Grouping,
    /// Which column of the cube's key each column is.
    places: Vec<usize>,
    schema: PartialSchema,
    table: OrderedTable,
}

impl Level {
    /// The name of its table, and about how much of that are its groups.
    pub(super) fn size(&self) -> Result<(String, Approximation)> {
        let next = self.grouping.bits().checked_add(1).filter(|_| self.grouping != Grouping::FINEST);
        let end = next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_be_bytes().to_vec()));
        let size = self.table.approximate((Bound::Included(self.prefix()), end))?;
        Ok((self.table.name().to_string(), size))
    }

    /// What the keys of its groups begin with in the table.
    fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        if self.grouping != Grouping::FINEST {
            group_key::push_grouping(self.grouping, &[], &mut prefix);
        }
        prefix
    }

    /// The key of a group as it stands in the table.
    fn stored(&self, key: &[u8]) -> Vec<u8> {
        let columns: Vec<&[u8]> = group_key::split(key).collect();
        let mut stored = self.prefix();
        for at in 0..self.moment.asked.keys.len() {
            match self.places.iter().position(|place| *place == at) {
                Some(place) => stored.extend_from_slice(columns[place]),
                None => group_key::push(&mut stored, None),
            }
        }
        stored
    }
}

impl Grouped for Level {
    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn finder(&self) -> Result<Box<Find<'_>>> {
        Ok(Box::new(move |keys| {
            let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.stored(key)).collect();
            self.moment.snapshot.multi_get(&self.table, &keys)
        }))
    }

    fn batches(&self, wanted: Wanted) -> Result<Batches> {
        let prefix = self.prefix();
        let entries = self.moment.snapshot.prefix_columns(&self.table, &prefix, BATCH_ROWS)?;
        let made = Made::new(entries, &self.schema, wanted, BATCH_ROWS);
        if self.grouping == Grouping::FINEST && self.places.is_sorted() {
            return Ok(Box::new(made));
        }
        let (places, all) = (self.places.clone(), self.moment.asked.keys.len());
        let shown = move |stored: &[u8], key: &mut Vec<u8>| {
            let mut columns = [&[][..]; forebay_aggregate::COLUMNS_MAX];
            let pieces = group_key::split(&stored[prefix.len()..]);
            columns[..all].iter_mut().zip(pieces).for_each(|(column, piece)| *column = piece);
            places.iter().for_each(|place| key.extend_from_slice(columns[*place]));
        };
        Ok(Box::new(made.keys(shown)))
    }
}

impl Pins for Level {
    fn metadata(&self) -> Result<Option<Vec<u8>>> {
        let Moment { stored, snapshot, .. } = &*self.moment;
        stored.metadata_at(snapshot)
    }
}
