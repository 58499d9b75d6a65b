//! [`AggregatorSnapshot`]: groups that a database keeps, as they were at one moment.

use std::path::PathBuf;

use forebay::aggregate::Groupings;
use forebay_aggregate::arrow::PartialSchema;
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::asked::Asked;
use super::grouping;
use super::held::{Held, Stored};
use super::kept;
use super::memory::Aggregator;
use super::read::{Find, Grouped, Made, View, Wanted};
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::rows::{BATCH_ROWS, Batches, Rows};

/// Groups as they were when a snapshot was taken: ``StoredAggregator.at`` and ``Cube.by`` give them.
///
/// They hold what the snapshot holds, also once that is closed. They are read as those of ``StoredAggregator``.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct AggregatorSnapshot(Home<Kept>);

struct Kept {
    asked: Arc<Asked>,
    groups: Arc<dyn Pins>,
}

/// Groups of one moment.
pub(super) trait Pins: Grouped {
    /// The bytes that came with the last commit there was.
    fn metadata(&self) -> forebay::Result<Option<Vec<u8>>>;
}

struct Pinned {
    stored: Arc<Stored>,
    snapshot: forebay::Snapshot,
    table: forebay::Table,
}

impl Grouped for Pinned {
    fn schema(&self) -> &PartialSchema {
        &self.stored.schema
    }

    fn finder(&self) -> forebay::Result<Box<Find<'_>>> {
        Ok(Box::new(move |keys| self.snapshot.multi_get(&self.table, keys)))
    }

    fn batches(&self, wanted: Wanted) -> forebay::Result<Batches> {
        let entries = self.snapshot.iter_columns(&self.table, BATCH_ROWS)?;
        Ok(Box::new(Made::new(entries, &self.stored.schema, wanted, BATCH_ROWS)))
    }
}

impl Pins for Pinned {
    fn metadata(&self) -> forebay::Result<Option<Vec<u8>>> {
        let function = Arc::clone(self.stored.schema.function());
        self.snapshot.aggregator(self.table.name(), function)?.metadata()
    }
}

impl AggregatorSnapshot {
    pub(super) fn of(asked: Arc<Asked>, groups: Arc<dyn Pins>) -> Self {
        Self(Home::new(Kept { asked, groups }))
    }

    pub(super) fn new(
        py: Python<'_>,
        asked: Arc<Asked>,
        held: &Held,
        snapshot: forebay::Snapshot,
    ) -> Outcome<Self> {
        let groups = py.detach(|| {
            let stored = held.found()?.ok_or_else(|| Failure::invalid("nothing was added yet"))?;
            kept::check_at(&snapshot, held, &stored.schema)?;
            // A savepoint's tables know no function before it is named.
            snapshot.aggregator(&held.name, Arc::clone(stored.schema.function()))?;
            let table = snapshot.table(&held.name)?;
            Ok::<_, Failure>(Arc::new(Pinned { stored, snapshot, table }))
        })?;
        Ok(Self::of(asked, groups))
    }

    pub(super) fn view(&self) -> Outcome<View> {
        let Kept { asked, groups } = self.0.get()?;
        asked.raise_failed()?;
        let groups = Arc::clone(groups) as Arc<dyn Grouped>;
        Ok(View { asked: Arc::clone(asked), groups })
    }
}

#[pymethods]
impl AggregatorSnapshot {
    /// The bytes that came with the last commit there was.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let groups = &self.0.get()?.groups;
        let found = py.detach(|| groups.metadata())?;
        Ok(found.map(|metadata| PyBytes::new(py, &metadata)))
    }

    /// The answers of one group by their names, or None. The key's values come in order, or by their names.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        self.view()?.get(py, key, named)
    }

    /// The answers of groups, a row for each row of ``keys``, in their order; null where there was no such group.
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> Outcome<Rows> {
        self.view()?.get_many(py, keys)
    }

    /// The groups with the greatest answers under a name, the greatest first. Walks all groups.
    #[pyo3(signature = (name, count=10))]
    fn top(&self, py: Python<'_>, name: &str, count: usize) -> Outcome<Rows> {
        self.view()?.top(py, name, count)
    }

    /// All groups with their answers.
    fn result(&self) -> Outcome<Rows> {
        Ok(self.view()?.result())
    }

    /// All groups with their states, for ``merge`` here or on another machine.
    fn states(&self) -> Outcome<Rows> {
        Ok(self.view()?.states())
    }

    /// Groups by some of the columns of the key, or by none, in memory: for roll-ups and cubes.
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
        Aggregator::coarser(py, &self.view()?, columns, memory, spill)
    }

    /// Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.
    ///
    /// The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a
    /// column, that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column,
    /// the last one's the lowest, is set where the column is left out. One grouping after the other is made of states
    /// while rows are read; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn rollup(
        &self,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Rows> {
        grouping::rows(self.view()?, Groupings::rollup, columns, memory, spill)
    }

    /// Groups by all columns, by any fewer of them, and by none, as ``GROUP BY CUBE`` has them. See ``rollup``.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn cube(
        &self,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Rows> {
        grouping::rows(self.view()?, Groupings::cube, columns, memory, spill)
    }
}
