//! [`Windows`]: groups by key and by time that a database keeps, in windows that are dropped as a whole.

mod input;
mod shape;
mod stored;
mod times;
mod wish;

use std::ops::Range;
use std::path::PathBuf;

use arrow_array::RecordBatchReader;
use arrow_schema::SchemaRef;
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_groups::{WINDOW, Windowed, windowed_schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::given::Given;
use super::held::Held;
use super::kept::{self, Shape as Kept};
use super::memory::Aggregator;
use super::read::View;
use crate::bytes::Bytes;
use crate::columns::batches;
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::options::durability;
use crate::rows::Rows;
use input::{LateRows, WindowedRows};
use stored::{Spanned, StoredWindows};
use times::{moment, time_of, times, window_field};
pub(crate) use wish::Wish;
use wish::agreed;

/// Groups by key and by time that a database keeps: ``Database.windows`` opens them. Any number of threads add and read.
///
/// The first column of the key is ``window``, where a group's window begins.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct Windows(Home<Inner>);

struct Inner {
    held: Held<StoredWindows>,
    /// Rows that were dropped, as they came too late.
    late_rows: AtomicU64,
}

impl Windows {
    pub(crate) fn open(py: Python<'_>, open: &Arc<Open>, name: &str, wish: &Wish<'_, '_>) -> Outcome<Self> {
        let shape = wish.shape()?;
        let given = Given::of(wish.key, wish.aggs, wish.schema)?;
        let held = py.detach(|| {
            let kept = open.with_detached(|db| kept::shape(db, name))?;
            let shape = agreed(name, kept, shape)?;
            let windowed = |rows: &SchemaRef| Ok::<_, Failure>(windowed_schema(rows, &shape.time, None)?.0);
            let rows = given.rows.as_ref().map(windowed).transpose()?;
            Held::new(open, name, given.behind(WINDOW, rows)?, shape)
        })?;
        held.join_merges(py);
        Ok(Self(Home::new(Inner { held, late_rows: AtomicU64::new(0) })))
    }

    /// Drops them, and what is kept of them.
    pub(crate) fn forget(db: &forebay::Database, name: &str) -> forebay::Result<()> {
        match db.drop_windows(name) {
            // A crash came amid it.
            Err(forebay::Error::NotFound(_)) if matches!(kept::shape(db, name)?, Some(Kept::Windows(_))) => {}
            dropped => dropped?,
        }
        kept::forget(db, name)
    }

    fn inner(&self) -> Outcome<&Inner> {
        let inner = self.0.get()?;
        inner.held.asked.raise_failed()?;
        Ok(inner)
    }

    /// The windows, once there are such.
    fn groups(&self, py: Python<'_>) -> Outcome<Arc<StoredWindows>> {
        let held = &self.inner()?.held;
        py.detach(|| held.found())?.ok_or_else(|| {
            Failure::invalid("nothing was added yet, so the types of the columns are not known; give schema=")
        })
    }

    /// Those that begin within a range of time.
    fn view(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<View> {
        let groups = self.groups(py)?;
        let times = times(&groups, start, end)?;
        self.spanned(groups, times)
    }

    fn spanned(&self, stored: Arc<StoredWindows>, times: Range<u64>) -> Outcome<View> {
        let asked = Arc::clone(&self.0.get()?.held.asked);
        Ok(View { asked, groups: Arc::new(Spanned { stored, times }) })
    }
}

impl Inner {
    /// The rows of an object with their windows.
    fn windowed(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        late: &Arc<LateRows>,
    ) -> Outcome<Box<WindowedRows>> {
        let (input, shape) = (batches(data)?, &self.held.means);
        let windows = py.detach(|| self.held.found())?;
        let kind = windows.as_ref().map(|known| window_field(known).data_type().clone());
        let (schema, times) = windowed_schema(&input.schema(), &shape.time, kind)?;
        let windowed = Windowed { schema, times, period: shape.period, kept_from: 0, late: late.late };
        Ok(Box::new(WindowedRows { input, windowed, windows, late: Arc::clone(late) }))
    }

    fn count(&self, late: &LateRows) {
        self.late_rows.fetch_add(late.dropped.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[pymethods]
impl Windows {
    /// Their name.
    #[getter]
    fn name(&self) -> Outcome<&str> {
        Ok(&self.0.get()?.held.name)
    }

    /// Adds the rows of a table, a record batch, or a stream of such, each to the window of its time. Returns how many.
    ///
    /// They are committed in parts. Rows from before what ``expire`` keeps are refused, with ``late="drop"`` left out:
    /// ``late_rows`` counts them. Raises Invalid for a row without a time, or a value that a function does not take: the
    /// rows of the record batch it is in, and of parts that were not committed before, are not added. ``commit`` adds
    /// all or nothing.
    #[pyo3(signature = (data, *, late="refuse", durability=None))]
    fn update(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        late: &str,
        durability: Option<&str>,
    ) -> Outcome<u64> {
        let inner = self.inner()?;
        let durability = self::durability(durability, inner.held.open.usual)?;
        let late = LateRows::of(late)?;
        let rows = inner.held.update(py, inner.windowed(py, data, &late)?, durability, &late)?;
        inner.count(&late);
        Ok(rows)
    }

    /// Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all of it or nothing, in however
    /// many windows the rows are.
    ///
    /// What ``batch`` holds for tables is committed with them, as durably as either was asked to be. After any crash
    /// ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
    #[pyo3(signature = (data=None, *, metadata=None, batch=None, late="refuse", durability=None))]
    fn commit(
        &self,
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        metadata: Option<Bytes<'_>>,
        batch: Option<&Bound<'_, crate::batch::Batch>>,
        late: &str,
        durability: Option<&str>,
    ) -> Outcome<u64> {
        let inner = self.inner()?;
        let (late, durability) = (LateRows::of(late)?, self::durability(durability, inner.held.open.usual)?);
        let input = data.map(|data| inner.windowed(py, data, &late)).transpose()?;
        let input = input.map(|input| input as Box<dyn RecordBatchReader + Send>);
        let metadata = metadata.as_ref().map(AsRef::as_ref);
        let last = inner.held.commit(py, input, metadata, batch, durability, &late)?;
        inner.count(&late);
        Ok(last)
    }

    /// The bytes that came with the last commit.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let held = &self.0.get()?.held;
        let found = py.detach(|| {
            held.found()?.map_or(Ok(None), |groups| Ok::<_, Failure>(groups.windows.metadata()?))
        })?;
        Ok(found.map(|metadata| PyBytes::new(py, &metadata)))
    }

    /// How many rows this object has left out, as they came too late. Of those that had come in time, and whose window
    /// ``expire`` dropped before they were committed, each group counts as one.
    #[getter]
    fn late_rows(&self) -> Outcome<u64> {
        Ok(self.0.get()?.late_rows.load(Ordering::Relaxed))
    }

    /// Makes it ``now``: drops the windows that are no longer kept, and returns how many. No clock is read.
    ///
    /// Kept are the window in which it is now and those that ``retain`` reaches back to. Rows from before are refused
    /// from then on, so a time that is too late cannot be taken back; an earlier one than once before does nothing.
    fn expire(&self, py: Python<'_>, now: &Bound<'_, PyAny>) -> Outcome<usize> {
        let groups = self.groups(py)?;
        let now = time_of(&groups, now)?;
        Ok(py.detach(|| groups.windows.expire(now))?.dropped)
    }

    /// From when on times are kept. Rows from before are late.
    #[getter]
    fn kept_from<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let groups = self.groups(py)?;
        moment(py, &groups, py.detach(|| groups.windows.kept_from())?)
    }

    /// Where the windows begin that are kept and that have rows, ascending: those from ``start`` on, before ``end``.
    #[pyo3(signature = (start=None, end=None))]
    fn windows<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        end: Option<&Bound<'py, PyAny>>,
    ) -> Outcome<Vec<Bound<'py, PyAny>>> {
        let groups = self.groups(py)?;
        let times = times(&groups, start, end)?;
        let found = py.detach(|| groups.now()?.windows(times))?;
        found.into_iter().map(|window| moment(py, &groups, window.start)).collect()
    }

    /// The answers of one group by their names, or None. First comes a time within its window, then the key's values, in
    /// order or by their names.
    #[pyo3(signature = (*key, **named))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Option<Bound<'py, PyDict>>> {
        self.view(py, None, None)?.get(py, key, named)
    }

    /// The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group.
    ///
    /// All are of one moment. The column ``window`` of ``keys`` has the type of that of ``result``, and times within
    /// windows.
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> Outcome<Rows> {
        self.view(py, None, None)?.get_many(py, keys)
    }

    /// The groups with the greatest answers under a name, the greatest first. Walks all groups of these windows.
    #[pyo3(signature = (name, count=10, *, start=None, end=None))]
    fn top(
        &self,
        py: Python<'_>,
        name: &str,
        count: usize,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Rows> {
        self.view(py, start, end)?.top(py, name, count)
    }

    /// All groups of the windows that begin from ``start`` on, before ``end``, with their answers: window by window.
    #[pyo3(signature = (start=None, end=None))]
    fn result(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Rows> {
        Ok(self.view(py, start, end)?.result())
    }

    /// All groups of the window that a time is in.
    fn window(&self, py: Python<'_>, at: &Bound<'_, PyAny>) -> Outcome<Rows> {
        let groups = self.groups(py)?;
        let times = groups.shape.period.around(time_of(&groups, at)?);
        Ok(self.spanned(groups, times)?.result())
    }

    /// The same groups as ``result`` with their states, for ``Aggregator.merge`` here or on another machine.
    #[pyo3(signature = (start=None, end=None))]
    fn states(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Rows> {
        Ok(self.view(py, start, end)?.states())
    }

    /// Groups over all windows that begin from ``start`` on, before ``end``, by some columns of the key, in memory.
    ///
    /// With ``window`` among the columns they are by window. They are an aggregator of their own, as
    /// ``StoredAggregator.by`` makes it. Raises Invalid for a column that is not in the key, or comes twice.
    #[pyo3(signature = (*columns, start=None, end=None, memory=None, spill=None))]
    fn by(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        spill: Option<PathBuf>,
    ) -> Outcome<Aggregator> {
        Aggregator::coarser(py, &self.view(py, start, end)?, columns, memory, spill)
    }

    fn __repr__(&self) -> Outcome<String> {
        let Held { name, asked, means, .. } = &self.0.get()?.held;
        Ok(format!("<forebay.Windows {name} by {:?}: {}; {means}>", asked.keys, asked.list()))
    }
}
