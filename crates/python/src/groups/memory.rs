//! [`Aggregator`]: groups in memory, which go on in files where that is full.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use forebay::Error;
use forebay::aggregate::Groupings;
use forebay_aggregate::arrow::{PartialSchema, RecordBatchAggregator};
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::Ordering;
use forebay_groups::THREADS_MAX;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::asked::Asked;
use super::grouping;
use super::own::with_states;
use super::read::{Find, Grouped, View, Wanted};
use crate::columns::{batches, for_each, schema};
use crate::failure::{Failure, Outcome};
use crate::home::{Close, Home, register};
use crate::kernel::attached;
use crate::options::size;
use crate::rows::{BATCH_ROWS, Batches, Rows};
use crate::share::share;

/// Group-by of columns, in memory that is bounded; beyond that in files.
///
/// ``key`` names the columns to group by, none for one group of all rows; null is a group. ``aggs`` gives each answer
/// a name and a function, such as ``forebay.sum("amount")``. ``memory`` is in bytes or as ``"512MB"``, 1 GiB by
/// default; where it does not suffice groups go to files in the directory ``spill``, and without one it is an error
/// (Invalid). ``threads`` of its own add what one ``update`` brings. The types of columns are those of what is first
/// added, or of ``schema``. Any number of threads add and read.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct Aggregator(Home<Arc<Groups>>);

/// Groups that are lent to a call. Where another thread closes them meanwhile it is the last that lets go of them: their
/// threads, which end then, may wait for the interpreter's lock, and so for who holds it.
type Here = Home<Arc<RecordBatchAggregator>>;

/// Groups in memory, and how they are asked for.
pub(super) struct Groups {
    asked: Arc<Asked>,
    threads: usize,
    held: forebay_groups::Groups,
}

impl Groups {
    /// The groups, which are made by what they are given first.
    fn begun(&self, schema: impl FnOnce() -> forebay::Result<PartialSchema>) -> Outcome<Here> {
        self.held.begun(schema).map(Home::new).map_err(told)
    }

    fn here(&self) -> Outcome<Option<Here>> {
        Ok(self.held.here().map_err(told)?.map(Home::new))
    }

    /// Groups by fewer columns, of the states of others, for who reads them at once.
    pub(super) fn coarser(
        asked: Asked,
        finer: &dyn Grouped,
        memory: Option<u64>,
        spill: Option<PathBuf>,
    ) -> forebay::Result<(Arc<Self>, Arc<dyn Grouped>)> {
        let groups = none(asked, memory, spill, 1)?;
        let schema = groups.asked.partial_of_states(finer.schema())?;
        let here = groups.held.begun(|| Ok(schema))?;
        for batch in finer.batches(Wanted::States)? {
            here.add_partials(&batch?)?;
        }
        Ok((groups, here))
    }

    fn of_rows(&self, schema: &SchemaRef) -> Outcome<Here> {
        self.begun(|| self.asked.partial(schema))
    }
}

impl Close for Groups {
    fn close_at_exit(&self) {
        self.held.close();
    }
}

/// What is said of groups that are closed.
fn told(error: Error) -> Failure {
    if error.is_closed() { Failure::Closed("aggregator") } else { error.into() }
}

impl Grouped for RecordBatchAggregator {
    fn schema(&self) -> &PartialSchema {
        self.schema()
    }

    fn finder(&self) -> forebay::Result<Box<Find<'_>>> {
        Ok(Box::new(move |keys| keys.iter().map(|key| self.get(key)).collect()))
    }

    fn batches(&self, wanted: Wanted) -> forebay::Result<Batches> {
        let batches = match wanted {
            Wanted::Answers => self.answers(),
            Wanted::States => self.partials(),
        }?;
        Ok(Box::new(batches.rows_max(BATCH_ROWS)))
    }
}

/// Groups that there are none of yet.
fn begin(
    py: Python<'_>,
    asked: Asked,
    memory: Option<&Bound<'_, PyAny>>,
    spill: Option<PathBuf>,
    threads: usize,
) -> Outcome<Home<Arc<Groups>>> {
    let memory = memory.map(|memory| size("memory", memory)).transpose()?;
    let groups = none(asked, memory, spill, threads)?;
    register(py, &groups);
    Ok(Home::new(groups))
}

fn none(
    asked: Asked,
    memory: Option<u64>,
    spill: Option<PathBuf>,
    threads: usize,
) -> forebay::Result<Arc<Groups>> {
    let threads = threads.clamp(1, THREADS_MAX);
    let held = forebay_groups::Groups::new(memory, spill, threads)?;
    Ok(Arc::new(Groups { asked: Arc::new(asked), threads, held }))
}

impl Aggregator {
    /// Groups by fewer columns, of the states of others.
    pub(super) fn coarser(
        py: Python<'_>,
        view: &View,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Self> {
        let made = begin(py, view.asked.coarser(columns)?, memory, spill, 1)?;
        let groups = made.get()?;
        py.detach(|| {
            let schema = groups.asked.partial_of_states(view.groups.schema())?;
            let here = groups.begun(|| Ok(schema))?;
            for states in view.groups.batches(Wanted::States)? {
                here.get()?.add_partials(&states?)?;
                attached(|py| py.check_signals()).unwrap_or(Ok(()))?;
            }
            Ok::<_, Failure>(())
        })?;
        Ok(Self(made))
    }

    fn view(&self, py: Python<'_>) -> Outcome<Home<View>> {
        let groups = self.0.get()?;
        groups.asked.raise_failed()?;
        let here = py.detach(|| groups.held.here()).map_err(told)?.ok_or_else(|| {
            Failure::invalid("nothing was added yet, so the types of the columns are not known; give schema=")
        })?;
        Ok(Home::new(View { asked: Arc::clone(&groups.asked), groups: here }))
    }
}

#[pymethods]
impl Aggregator {
    #[new]
    #[pyo3(signature = (*, key=None, aggs, memory=None, spill=None, threads=2, schema=None))]
    fn new(
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
        aggs: &Bound<'_, PyDict>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
        threads: usize,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        let groups = begin(py, Asked::of(key, aggs)?, memory, spill, threads)?;
        if let Some(given) = schema {
            let (schema, groups) = (self::schema(given)?, groups.get()?);
            py.detach(|| groups.of_rows(&schema))?;
        }
        Ok(Self(groups))
    }

    /// Adds the rows of a table, a record batch, or a stream of such. Returns how many.
    ///
    /// Raises Invalid for a value that a function does not take, with its row, counted from 1 in its record batch:
    /// which of the other rows are added by then is not known.
    fn update(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Outcome<u64> {
        let groups = self.0.get()?;
        groups.asked.raise_failed()?;
        let input = batches(data)?;
        let schema = input.schema();
        let lent = py.detach(|| groups.of_rows(&schema))?;
        let here = lent.get()?;
        let add = |part: &RecordBatch, before: usize| Ok(here.add_part(part, before)?);
        if groups.asked.own().is_empty() {
            return share(py, input, groups.threads, add);
        }
        let (input, rows) = with_states(input, &groups.asked, here.schema());
        share(py, input, groups.threads, add)?;
        Ok(rows.load(Ordering::Relaxed))
    }

    /// Merges what ``states`` of another aggregator of these groups gave. Returns how many.
    fn merge(&self, py: Python<'_>, states: &Bound<'_, PyAny>) -> Outcome<u64> {
        let groups = self.0.get()?;
        groups.asked.raise_failed()?;
        let input = batches(states)?;
        let schema = input.schema();
        let lent = py.detach(|| {
            let partial = PartialSchema::of_own(&schema, &groups.asked.own_functions())?;
            groups.asked.agrees(&partial)?;
            groups.begun(|| Ok(partial))
        })?;
        let here = lent.get()?;
        for_each(py, input, |batch| Ok(here.add_partials(batch)?))
    }

    /// The answers of one group by their names, or None. The key's values come in order, or by their names.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        self.view(py)?.get()?.get(py, key, named)
    }

    /// The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group.
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> Outcome<Rows> {
        self.view(py)?.get()?.get_many(py, keys)
    }

    /// The groups with the greatest answers under a name, the greatest first. Walks all groups.
    #[pyo3(signature = (name, count=10))]
    fn top(&self, py: Python<'_>, name: &str, count: usize) -> Outcome<Rows> {
        self.view(py)?.get()?.top(py, name, count)
    }

    /// All groups with their answers.
    fn result(&self, py: Python<'_>) -> Outcome<Rows> {
        Ok(self.view(py)?.get()?.result())
    }

    /// All groups with their states, for ``merge`` here or on another machine.
    fn states(&self, py: Python<'_>) -> Outcome<Rows> {
        Ok(self.view(py)?.get()?.states())
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
    ) -> Outcome<Self> {
        Self::coarser(py, self.view(py)?.get()?, columns, memory, spill)
    }

    /// Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.
    ///
    /// The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a
    /// column, that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column,
    /// the last one's the lowest, is set where the column is left out. One grouping after the other is made of states
    /// while rows are read, of what is there by then; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
    #[pyo3(signature = (*columns, memory=None, spill=None))]
    fn rollup(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Rows> {
        grouping::rows(self.view(py)?.get()?.clone(), Groupings::rollup, columns, memory, spill)
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
        grouping::rows(self.view(py)?.get()?.clone(), Groupings::cube, columns, memory, spill)
    }

    /// How many bytes of memory it takes now.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> Outcome<usize> {
        let groups = self.0.get()?;
        let Some(here) = py.detach(|| groups.here())? else { return Ok(0) };
        let here = here.get()?;
        Ok(py.detach(|| here.memory_bytes()))
    }

    /// Lets go of memory and files. All further calls raise Closed.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        let groups = self.0.get()?;
        py.detach(|| groups.close_at_exit());
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        self.close(py)
    }

    fn __repr__(&self) -> Outcome<String> {
        let asked = &self.0.get()?.asked;
        Ok(format!("<forebay.Aggregator by {:?}: {}>", asked.keys, asked.list()))
    }
}
