//! [`Cube`]: groups by several columns and by fewer of them that a database keeps, all up to date together; and
//! [`CubeSnapshot`], the same as of a moment.

mod sets;
mod stored;

use forebay::aggregate::Groupings;
use forebay_aggregate::arrow::PartialSchema;
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::asked::Asked;
use super::given::Given;
use super::grouping;
use super::held::Held;
use super::kept;
use super::pinned::AggregatorSnapshot;
use super::read::{Grouped, View};
use crate::bytes::Bytes;
use crate::columns::{batches, for_each};
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::options::durability;
use crate::rows::Rows;
use crate::snapshot::Snapshot;
use sets::{asked_sets, columns_of, kept_sets};
use stored::{All, Moment, StoredCube};

/// Groups by several columns and by fewer of them that a database keeps: ``Database.cube`` opens it. All groupings agree
/// at every commit. Any number of threads add and read.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct Cube(Home<Held<StoredCube>>);

impl Cube {
    pub(crate) fn open(
        py: Python<'_>,
        open: &Arc<Open>,
        name: &str,
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        groupings: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        let given = Given::of(key, aggs, schema)?;
        let kept = open.with(py, |db| kept::shape(db, name))?;
        let means = match (kept, &given.asked) {
            (Some(kept), _) => kept_sets(name, &kept)?,
            (None, Some(asked)) => asked_sets(groupings, &asked.keys)?,
            (None, None) => {
                let told = format!("there is no cube `{name}` yet; say key and aggs to make it");
                return Err(forebay::Error::NotFound(told).into());
            }
        };
        // Before anything is made.
        given.asked.as_ref().map_or(Ok(()), grouping::check_names)?;
        let held: Held<StoredCube> = py.detach(|| Held::new(open, name, given, means))?;
        if groupings.is_some() && asked_sets(groupings, &held.asked.keys)? != held.means {
            let kept = named_groupings(&held.means, &held.asked);
            let told = format!("cube `{name}` was made with groupings {kept:?}; leave groupings out");
            return Err(Failure::invalid(told));
        }
        held.join_merges(py);
        Ok(Self(Home::new(held)))
    }

    /// Drops it, and what is kept of it.
    pub(crate) fn forget(db: &forebay::Database, name: &str) -> forebay::Result<()> {
        match db.drop_cube(name) {
            // A crash came amid it.
            Err(forebay::Error::NotFound(_))
                if matches!(kept::shape(db, name)?, Some(kept::Shape::Cube(_))) => {}
            dropped => dropped?,
        }
        kept::forget(db, name)
    }

    fn held(&self) -> Outcome<&Held<StoredCube>> {
        let held = self.0.get()?;
        held.asked.raise_failed()?;
        Ok(held)
    }

    /// The cube as it is now.
    fn now(&self, py: Python<'_>) -> Outcome<CubeSnapshot> {
        let held = self.held()?;
        let snapshot = held.open.with(py, |db| Ok(db.snapshot()))?;
        CubeSnapshot::new(py, held, snapshot)
    }
}

/// The columns of each grouping, those of all columns first.
fn named_groupings(groupings: &Groupings, asked: &Asked) -> Vec<Vec<String>> {
    groupings.iter().map(|grouping| columns_of(grouping, &asked.keys)).collect()
}

#[pymethods]
impl Cube {
    /// Its name.
    #[getter]
    fn name(&self) -> Outcome<&str> {
        Ok(&self.0.get()?.name)
    }

    /// By which columns there are groups: a list for each grouping, that of all columns first.
    #[getter]
    fn groupings(&self) -> Outcome<Vec<Vec<String>>> {
        let held = self.0.get()?;
        Ok(named_groupings(&held.means, &held.asked))
    }

    /// Adds the rows of a table, a record batch, or a stream of such, to all groupings. Returns how many.
    ///
    /// They are committed in parts, each of which all groupings have or none. Raises Invalid for a value that a function
    /// does not take: the rows of parts that were not committed before are not added.
    /// ``commit`` adds all or nothing.
    #[pyo3(signature = (data, *, durability=None))]
    fn update(&self, py: Python<'_>, data: &Bound<'_, PyAny>, durability: Option<&str>) -> Outcome<u64> {
        let held = self.held()?;
        let durability = self::durability(durability, held.open.usual)?;
        held.update(py, batches(data)?, durability, &())
    }

    /// Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all groupings have all of it, or
    /// none has anything.
    ///
    /// What ``batch`` holds for tables is committed with them, as durably as either was asked to be. After any crash
    /// ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
    #[pyo3(signature = (data=None, *, metadata=None, batch=None, durability=None))]
    fn commit(
        &self,
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        metadata: Option<Bytes<'_>>,
        batch: Option<&Bound<'_, crate::batch::Batch>>,
        durability: Option<&str>,
    ) -> Outcome<u64> {
        let held = self.held()?;
        let durability = self::durability(durability, held.open.usual)?;
        let input = data.map(batches).transpose()?;
        held.commit(py, input, metadata.as_ref().map(AsRef::as_ref), batch, durability, &())
    }

    /// Merges what ``states`` of other groups by the same columns gave, batch by batch. Returns how many.
    #[pyo3(signature = (states, *, durability=None))]
    fn merge(&self, py: Python<'_>, states: &Bound<'_, PyAny>, durability: Option<&str>) -> Outcome<u64> {
        let (held, input) = (self.held()?, batches(states)?);
        let durability = self::durability(durability, held.open.usual)?;
        let schema = input.schema();
        let groups = py.detach(|| {
            let partial = PartialSchema::of_own(&schema, &held.asked.own_functions())?;
            held.asked.agrees(&partial)?;
            held.begun(|| Ok(partial))
        })?;
        for_each(py, input, |rows| {
            let mut batch = groups.cube.batch();
            let exact = forebay_aggregate::arrow::Form::Exact;
            groups.schema.read(rows, exact, &mut |key, state| batch.add_state(key, state))?;
            batch.write(forebay::Batch::new(), durability)?;
            Ok(())
        })
    }

    /// The bytes that came with the last commit.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let held = self.0.get()?;
        let found = py.detach(|| {
            let Some(groups) = held.found()? else { return Ok(None) };
            let now = held.open.with_detached(|db| Ok(db.snapshot()))?;
            Ok::<_, Failure>(groups.metadata_at(&now)?)
        })?;
        Ok(found.map(|metadata| PyBytes::new(py, &metadata)))
    }

    /// The answers of one group by their names, or None: of the grouping by the columns that are named.
    ///
    /// ``get(country="no")`` is over all cities, ``get()`` over all there is. Values without a name are of the first
    /// columns of the key. Raises Invalid for a grouping that is not kept.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        self.now(py)?.get(py, key, named)
    }

    /// The groups by some of the columns of the key, or by none, as of now: of a grouping that is kept.
    ///
    /// They are read as those of ``StoredAggregator.at``, and hold what a snapshot holds. Raises Invalid for a grouping
    /// that is not kept.
    #[pyo3(signature = (*columns))]
    fn by(&self, py: Python<'_>, columns: Vec<String>) -> Outcome<AggregatorSnapshot> {
        self.now(py)?.by(py, columns)
    }

    /// All groups of all groupings with their answers, by ``grouping``, as of now.
    ///
    /// Where a row's grouping leaves out a column, that is null; ``grouping`` tells such nulls from others, as SQL's
    /// ``GROUPING_ID``: a bit for each column, the last one's the lowest, is set where the column is left out. Whoever
    /// reads the rows, and whenever, sees that moment: a snapshot is held as long as they are.
    fn result(&self, py: Python<'_>) -> Outcome<Rows> {
        self.now(py)?.result()
    }

    /// The groups by all columns with their states, for ``merge`` here or on another machine.
    fn states(&self, py: Python<'_>) -> Outcome<Rows> {
        self.now(py)?.states(py)
    }

    /// Of each grouping its columns, its table, and about how many records and bytes that has of it. Reads nothing.
    fn stats<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyList>> {
        let now = self.now(py)?;
        let moment = now.moment()?;
        let told = PyList::empty(py);
        for grouping in moment.stored.cube.groupings().iter() {
            let columns = columns_of(grouping, &moment.asked.keys);
            let (table, size) = py.detach(|| moment.level(&columns)?.size())?;
            let one = PyDict::new(py);
            one.set_item("by", columns)?;
            one.set_item("table", table)?;
            one.set_item("records", size.records)?;
            one.set_item("bytes", size.bytes)?;
            told.append(one)?;
        }
        Ok(told)
    }

    /// The cube as it was when a snapshot was taken, also a savepoint's (``Database.open_savepoint``).
    ///
    /// Raises NotFound where it was not there, and Invalid where nothing was added to this one yet, where it was another
    /// cube by then, or of another database.
    fn at(&self, py: Python<'_>, snapshot: &Bound<'_, Snapshot>) -> Outcome<CubeSnapshot> {
        let held = self.held()?;
        CubeSnapshot::new(py, held, snapshot.get().held_of(&held.open)?)
    }

    fn __repr__(&self) -> Outcome<String> {
        let Held { name, asked, means, .. } = self.0.get()?;
        let groupings = named_groupings(means, asked);
        Ok(format!("<forebay.Cube {name} by {groupings:?}: {}>", asked.list()))
    }
}

/// A cube as it was when a snapshot was taken: ``Cube.at`` gives it. All groupings are of that moment.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct CubeSnapshot(Home<Arc<Moment>>);

impl CubeSnapshot {
    fn new(py: Python<'_>, held: &Held<StoredCube>, snapshot: forebay::Snapshot) -> Outcome<Self> {
        let asked = Arc::clone(&held.asked);
        let moment = py.detach(|| {
            let stored = held.found()?.ok_or_else(|| {
                Failure::invalid(
                    "nothing was added yet, so the types of the columns are not known; give schema=",
                )
            })?;
            kept::check_at(&snapshot, held, &stored.schema)?;
            Ok::<_, Failure>(Arc::new(Moment { asked, stored, snapshot }))
        })?;
        Ok(Self(Home::new(moment)))
    }

    fn moment(&self) -> Outcome<&Arc<Moment>> {
        let moment = self.0.get()?;
        moment.asked.raise_failed()?;
        Ok(moment)
    }
}

#[pymethods]
impl CubeSnapshot {
    /// The bytes that came with the last commit there was.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let moment = self.0.get()?;
        let found = py.detach(|| moment.stored.metadata_at(&moment.snapshot))?;
        Ok(found.map(|metadata| PyBytes::new(py, &metadata)))
    }

    /// The answers of one group by their names, or None. See ``Cube.get``.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        let moment = self.moment()?;
        let mut columns: Vec<String> = moment.asked.keys.iter().take(key.len()).cloned().collect();
        for name in named.iter().flat_map(|named| named.keys()) {
            columns.push(name.extract()?);
        }
        // Where names and values stand for one column, or there are too many, the groups say so.
        let level = py.detach(|| moment.level(&columns))?;
        let asked = Arc::new(moment.asked.coarser(columns)?);
        View { asked, groups: level as Arc<dyn Grouped> }.get(py, key, named)
    }

    /// The groups by some of the columns of the key, or by none. See ``Cube.by``.
    #[pyo3(signature = (*columns))]
    fn by(&self, py: Python<'_>, columns: Vec<String>) -> Outcome<AggregatorSnapshot> {
        let moment = self.moment()?;
        let level = py.detach(|| moment.level(&columns))?;
        Ok(AggregatorSnapshot::of(Arc::new(moment.asked.coarser(columns)?), level))
    }

    /// All groups of all groupings with their answers, by ``grouping``. See ``Cube.result``.
    fn result(&self) -> Outcome<Rows> {
        let moment = self.moment()?;
        let groupings = moment.stored.cube.groupings().clone();
        let asked = Asked::clone(&moment.asked);
        grouping::kept_rows(asked, &moment.stored.schema, groupings, All(Arc::clone(moment)))
    }

    /// The groups by all columns with their states, for ``merge`` here or on another machine.
    fn states(&self, py: Python<'_>) -> Outcome<Rows> {
        let moment = self.moment()?;
        let level = py.detach(|| moment.level(&moment.asked.keys))?;
        Ok(View { asked: Arc::clone(&moment.asked), groups: level as Arc<dyn Grouped> }.states())
    }

    fn __repr__(&self) -> Outcome<String> {
        let Moment { asked, stored, snapshot } = &**self.0.get()?;
        let groupings = named_groupings(stored.cube.groupings(), asked);
        Ok(format!(
            "<forebay.CubeSnapshot {} by {groupings:?}: at {}>",
            stored.cube.name(),
            snapshot.number()
        ))
    }
}
