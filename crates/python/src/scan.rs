//! [`Scan`]: a table, or part of it, as it was when the scan was asked for. Each loop over it begins anew, and so does each
//! consumer of Arrow's.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;
use forebay_env::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use crate::bytes::Edges;
use crate::failure::Outcome;
use crate::handle::Handle;
use crate::home::Home;
use crate::kernel::schema_capsule;
use crate::rows::{BATCH_ROWS, BatchIterator, stream};

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// So many entries are read at a time, at first and at most: a loop that ends early has read little.
const ENTRIES_MIN: usize = 8;
const ENTRIES_MAX: usize = 512;
/// But no more bytes than this.
const ENTRIES_BYTES: usize = 1 << 20;

/// Which part of a table.
pub(crate) enum Part {
    All,
    Range(Edges),
    Prefix(Vec<u8>),
}

/// What a loop is given.
#[derive(Clone, Copy)]
pub(crate) enum Shown {
    Keys,
    Values,
    Items,
}

/// A table, or part of it, as it was when this was asked for.
///
/// Each loop begins anew, and so does each stream of Arrow's: record batches of at most 65,536 rows with the binary
/// columns ``key`` and ``value``. It holds files and memory until it goes.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Scan(Home<Asked>);

struct Asked {
    snapshot: forebay::Snapshot,
    table: Handle,
    part: Part,
    shown: Shown,
    reverse: bool,
}

impl Asked {
    fn entries(&self) -> forebay::Result<forebay::Scan> {
        match &self.part {
            Part::All => self.snapshot.iter(&self.table),
            Part::Range(edges) => self.snapshot.range(self.table.ordered()?, edges.clone()),
            Part::Prefix(prefix) => self.snapshot.prefix(self.table.ordered()?, prefix),
        }
    }

    fn columns(&self) -> forebay::Result<forebay::ColumnScan> {
        let scan = match &self.part {
            Part::All => self.snapshot.iter_columns(&self.table, BATCH_ROWS),
            Part::Range(edges) => {
                self.snapshot.scan_columns(self.table.ordered()?, edges.clone(), BATCH_ROWS)
            }
            Part::Prefix(prefix) => self.snapshot.prefix_columns(self.table.ordered()?, prefix, BATCH_ROWS),
        }?;
        Ok(if self.reverse { scan.backward() } else { scan })
    }
}

impl Scan {
    pub(crate) fn new(
        snapshot: forebay::Snapshot,
        table: Handle,
        part: Part,
        shown: Shown,
        reverse: bool,
    ) -> Outcome<Self> {
        let asked = Asked { snapshot, table, part, shown, reverse };
        // What is wrong with the call is told now.
        asked.entries()?;
        Ok(Self(Home::new(asked)))
    }

    pub(crate) fn begin(&self, py: Python<'_>) -> Outcome<ScanIterator> {
        let asked = self.0.get()?;
        let scan = py.detach(|| asked.entries())?;
        Ok(ScanIterator::new(scan, asked.shown, asked.reverse))
    }
}

#[pymethods]
impl Scan {
    fn __iter__(&self, py: Python<'_>) -> Outcome<ScanIterator> {
        self.begin(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Outcome<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let asked = self.0.get()?;
        let columns = py.detach(|| asked.columns())?;
        let schema: SchemaRef = columns.schema();
        stream(py, schema, Box::new(columns))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        let asked = self.0.get()?;
        let columns = py.detach(|| asked.columns())?;
        schema_capsule(py, &columns.schema())
    }

    /// The record batches one by one, from the beginning: each is an array of Arrow's, a structure of the columns.
    fn batches(&self, py: Python<'_>) -> Outcome<BatchIterator> {
        let asked = self.0.get()?;
        Ok(BatchIterator::new(Box::new(py.detach(|| asked.columns())?)))
    }

    fn __repr__(&self) -> String {
        let Ok(asked) = self.0.get() else { return "<forebay.Scan of before a fork>".into() };
        let table: &forebay::Table = asked.table.as_ref();
        format!("<forebay.Scan of {}>", table.name())
    }
}

/// What a loop over a Scan is given, one by one.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct ScanIterator {
    walk: Home<Mutex<Walk>>,
    shown: Shown,
}

struct Walk {
    scan: forebay::Scan,
    reverse: bool,
    ready: VecDeque<Entry>,
    /// What comes behind those that are ready.
    failed: Option<forebay::Error>,
    is_over: bool,
    entries: usize,
    entries_max: usize,
}

impl ScanIterator {
    pub(crate) fn new(scan: forebay::Scan, shown: Shown, reverse: bool) -> Self {
        Self::reading(scan, shown, reverse, ENTRIES_MIN, ENTRIES_MAX)
    }

    /// Of a transaction: what is read ahead is read by it, and may conflict.
    pub(crate) fn one_by_one(scan: forebay::Scan, reverse: bool) -> Self {
        Self::reading(scan, Shown::Items, reverse, 1, 1)
    }

    fn reading(scan: forebay::Scan, shown: Shown, reverse: bool, entries: usize, entries_max: usize) -> Self {
        let ready = VecDeque::new();
        let walk = Walk { scan, reverse, ready, failed: None, is_over: false, entries, entries_max };
        Self { walk: Home::new(Mutex::new(walk)), shown }
    }
}

impl Walk {
    /// The next entry, if that needs no reading.
    fn ready(&mut self) -> Option<Option<Entry>> {
        let is_over = self.is_over && self.failed.is_none();
        match self.ready.pop_front() {
            None if is_over => Some(None),
            entry => entry.map(Some),
        }
    }

    fn next(&mut self) -> forebay::Result<Option<Entry>> {
        let mut bytes = 0;
        while !self.is_over && self.ready.len() < self.entries && bytes < ENTRIES_BYTES {
            let next = if self.reverse { self.scan.next_back() } else { self.scan.next() };
            match next {
                Some(Ok((key, value))) => {
                    bytes += key.len() + value.len();
                    self.ready.push_back((key, value));
                }
                Some(Err(error)) => (self.failed, self.is_over) = (Some(error), true),
                None => self.is_over = true,
            }
        }
        self.entries = (2 * self.entries).min(self.entries_max);
        match (self.ready.pop_front(), self.failed.take()) {
            (None, Some(error)) => Err(error),
            (entry, failed) => {
                self.failed = failed;
                Ok(entry)
            }
        }
    }
}

/// An entry as Python has it.
pub(crate) fn pair<'py>(py: Python<'py>, (key, value): &Entry) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    (PyBytes::new(py, key), PyBytes::new(py, value))
}

#[pymethods]
impl ScanIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyAny>>> {
        let walk = self.walk.get()?;
        let ready = walk.try_lock().and_then(|mut walk| walk.ready());
        let next = match ready {
            Some(next) => next,
            None => {
                py.check_signals()?;
                py.detach(|| walk.lock().next())?
            }
        };
        let Some(entry) = next else { return Ok(None) };
        Ok(Some(match self.shown {
            Shown::Keys => PyBytes::new(py, &entry.0).into_any(),
            Shown::Values => PyBytes::new(py, &entry.1).into_any(),
            Shown::Items => {
                let (key, value) = pair(py, &entry);
                PyTuple::new(py, [key, value])?.into_any()
            }
        }))
    }
}
