//! [`StoredAggregator`]: groups that a database keeps.

use std::path::PathBuf;

use forebay::aggregate::Groupings;
use forebay::{Batch, Durability};
use forebay_aggregate::arrow::PartialSchema;
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::given::Given;
use super::grouping;
use super::held::Held;
use super::memory::Aggregator;
use super::pinned::AggregatorSnapshot;
use super::read::View;
use crate::bytes::Bytes;
use crate::columns::{batches, for_each};
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::options::{Text, durability};
use crate::rows::Rows;
use crate::snapshot::Snapshot;

/// Groups that a database keeps: ``Database.aggregator`` opens them. Any number of threads add and read.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct StoredAggregator(Home<Held>);

impl StoredAggregator {
    pub(crate) fn open(
        py: Python<'_>,
        open: &Arc<Open>,
        name: &str,
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        schema: Option<&Bound<'_, PyAny>>,
        options: Vec<Text>,
    ) -> Outcome<Self> {
        let given = Given::of(key, aggs, schema)?;
        let held = py.detach(|| Held::new(open, name, given, options))?;
        held.join_merges(py);
        Ok(Self(Home::new(held)))
    }

    /// What is held, unless a function in Python failed that nobody was told of.
    fn held(&self) -> Outcome<&Held> {
        let held = self.0.get()?;
        held.asked.raise_failed()?;
        Ok(held)
    }

    fn view(&self, py: Python<'_>) -> Outcome<View> {
        let held = self.held()?;
        let groups = py.detach(|| held.found())?.ok_or_else(|| {
            Failure::invalid("nothing was added yet, so the types of the columns are not known; give schema=")
        })?;
        Ok(View { asked: Arc::clone(&held.asked), groups })
    }

    /// The groups as they are now, for who reads them more than once.
    fn pinned(&self, py: Python<'_>) -> Outcome<View> {
        let (held, asked) = (self.held()?, self.view(py)?.asked);
        let snapshot = held.open.with(py, |db| Ok(db.snapshot()))?;
        AggregatorSnapshot::new(py, asked, held, snapshot)?.view()
    }

    fn write(held: &Held, batch: &mut Batch, durability: Durability) -> Outcome<()> {
        held.open.with_detached(|db| db.write(batch, durability)).map(drop)
    }
}

#[pymethods]
impl StoredAggregator {
    /// Its name.
    #[getter]
    fn name(&self) -> Outcome<&str> {
        Ok(&self.0.get()?.name)
    }

    /// Adds the rows of a table, a record batch, or a stream of such. Returns how many.
    ///
    /// They are committed in parts. Raises Invalid for a value that a function does not take: the rows of the record
    /// batch it is in, and of parts that were not committed before, are not added. ``commit`` adds all or nothing.
    #[pyo3(signature = (data, *, durability=None))]
    fn update(&self, py: Python<'_>, data: &Bound<'_, PyAny>, durability: Option<&str>) -> Outcome<u64> {
        let held = self.held()?;
        let durability = self::durability(durability, held.open.usual)?;
        held.update(py, batches(data)?, durability, &())
    }

    /// Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all of it or nothing.
    ///
    /// What ``batch`` holds for other tables is committed with them, as durably as either was asked to be. After any
    /// crash ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
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

    /// The bytes that came with the last commit.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let held = self.0.get()?;
        let found = py.detach(|| {
            held.found()?.map_or(Ok(None), |groups| Ok::<_, Failure>(groups.aggregator.metadata()?))
        })?;
        Ok(found.map(|metadata| PyBytes::new(py, &metadata)))
    }

    /// Merges what ``states`` of another aggregator of these groups gave, batch by batch. Returns how many.
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
        let mut batch = Batch::new();
        for_each(py, input, |rows| {
            groups.schema.read(rows, forebay_aggregate::arrow::Form::Exact, &mut |key, state| {
                batch.add_state(&groups.aggregator, key, state);
                Ok(())
            })?;
            Self::write(held, &mut batch, durability)
        })
    }

    /// The answers of one group by their names, or None. The key's values come in order, or by their names.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        self.view(py)?.get(py, key, named)
    }

    /// Removes a group, of an aggregator that was made with ``deletes=True``.
    #[pyo3(signature = (*key, **named))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<()> {
        let (key, held) = (self.view(py)?.key(key, named)?, self.0.get()?);
        py.detach(|| held.found()?.map_or(Ok(()), |groups| Ok(groups.aggregator.delete(key)?)))
    }

    /// The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group.
    ///
    /// All are of one moment.
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> Outcome<Rows> {
        self.view(py)?.get_many(py, keys)
    }

    /// The groups with the greatest answers under a name, the greatest first. Walks all groups.
    #[pyo3(signature = (name, count=10))]
    fn top(&self, py: Python<'_>, name: &str, count: usize) -> Outcome<Rows> {
        self.view(py)?.top(py, name, count)
    }

    /// All groups with their answers.
    fn result(&self, py: Python<'_>) -> Outcome<Rows> {
        Ok(self.view(py)?.result())
    }

    /// All groups with their states, for ``merge`` here or on another machine.
    fn states(&self, py: Python<'_>) -> Outcome<Rows> {
        Ok(self.view(py)?.states())
    }

    /// Groups by some of the columns of the key, or by none, as of now, in memory: for roll-ups and cubes.
    ///
    /// They are an aggregator of their own, made of the states that are here, so every function is right, also one of
    /// distinct values. What is added later to either is not added to the other. ``memory`` and ``spill`` are those of
    /// ``Aggregator``. Raises Invalid for a column that is not in the key, or comes twice.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn by(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Aggregator> {
        Aggregator::coarser(py, &self.view(py)?, columns, memory, spill)
    }

    /// Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.
    ///
    /// The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a
    /// column, that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column,
    /// the last one's the lowest, is set where the column is left out. One grouping after the other is made of states
    /// while rows are read, of what is there now; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn rollup(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Rows> {
        grouping::rows(self.pinned(py)?, Groupings::rollup, columns, memory, spill)
    }

    /// Groups by all columns, by any fewer of them, and by none, as ``GROUP BY CUBE`` has them. See ``rollup``.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn cube(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Rows> {
        grouping::rows(self.pinned(py)?, Groupings::cube, columns, memory, spill)
    }

    /// The groups as they were when a snapshot was taken, also a savepoint's (``Database.open_savepoint``).
    ///
    /// Raises NotFound where the aggregator was not there, and Invalid where nothing was added to this one yet, where it
    /// was one of other groups by then, or of another database.
    fn at(&self, py: Python<'_>, snapshot: &Bound<'_, Snapshot>) -> Outcome<AggregatorSnapshot> {
        let held = self.held()?;
        AggregatorSnapshot::new(py, self.view(py)?.asked, held, snapshot.get().held_of(&held.open)?)
    }

    /// Merges all there is to one state a group: the least space, and the fewest reads.
    fn finalize(&self, py: Python<'_>) -> Outcome<()> {
        let held = self.held()?;
        py.detach(|| held.found()?.map_or(Ok(()), |groups| Ok(groups.aggregator.finalize()?)))
    }

    fn __repr__(&self) -> Outcome<String> {
        let Held { name, asked, .. } = self.0.get()?;
        Ok(format!("<forebay.StoredAggregator {name} by {:?}: {}>", asked.keys, asked.list()))
    }
}
