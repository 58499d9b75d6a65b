//! [`Snapshot`]: the database as it was at one moment.

use forebay_env::sync::{Arc, Mutex};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::bytes::{Bytes, edges};
use crate::columns::{Column, chunks, is_arrow, joined};
use crate::cursor::Cursor;
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::handle::Handle;
use crate::home::Home;
use crate::scan::{Part, Scan, Shown};
use crate::table::Table;
use crate::writes::looked_up;

/// The database as it was at one moment. It holds files and memory until it is closed, as a ``with`` does.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Snapshot(Home<Held>);

struct Held {
    open: Arc<Open>,
    /// Until it is closed.
    snapshot: Mutex<Option<forebay::Snapshot>>,
}

impl Snapshot {
    pub(crate) fn new(open: &Arc<Open>, snapshot: forebay::Snapshot) -> Self {
        Self(Home::new(Held { open: Arc::clone(open), snapshot: Mutex::new(Some(snapshot)) }))
    }

    pub(crate) fn held(&self) -> Outcome<forebay::Snapshot> {
        self.0.get()?.snapshot.lock().clone().ok_or(Failure::Closed("snapshot"))
    }

    /// The same, unless it is another database's.
    pub(crate) fn held_of(&self, open: &Arc<Open>) -> Outcome<forebay::Snapshot> {
        if Arc::ptr_eq(&self.0.get()?.open, open) {
            return self.held();
        }
        Err(Failure::invalid(
            "the snapshot is of another database, or of one that was closed and opened again",
        ))
    }

    fn scan(&self, table: &Bound<'_, Table>, part: Part, reverse: bool) -> Outcome<Scan> {
        Scan::new(self.held()?, table.get().held()?.handle.clone(), part, Shown::Items, reverse)
    }
}

#[pymethods]
impl Snapshot {
    /// Lets go of what it holds.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        let taken = self.0.get()?.snapshot.lock().take();
        py.detach(|| drop(taken));
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

    /// The tables that there were, and their layouts.
    fn tables<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let (snapshot, tables) = (self.held()?, PyDict::new(py));
        for (name, layout) in snapshot.tables() {
            tables.set_item(name, layout.to_string())?;
        }
        Ok(tables)
    }

    /// A table that there was, also one that was dropped since.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Bound<'py, Table>> {
        let snapshot = self.held()?;
        let handle = Handle::of(&snapshot, name)?;
        Table::bound(py, handle, &self.0.get()?.open)
    }

    /// The value that a key had, or ``default``.
    #[pyo3(signature = (table, key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, Table>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Outcome<Option<Bound<'py, PyAny>>> {
        let (snapshot, table) = (self.held()?, &table.get().held()?.handle);
        let found = py.detach(|| snapshot.get(table, key))?;
        Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// The values that keys had: see ``Table.get_many``.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, Table>,
        keys: &Bound<'py, PyAny>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let (snapshot, table) = (self.held()?, &table.get().held()?.handle);
        if is_arrow(keys)? {
            let keys = joined(&chunks(keys)?)?;
            let values = py.detach(|| snapshot.get_columns(table, &keys))?;
            return Ok(Bound::new(py, Column(Arc::new(values)))?.into_any());
        }
        looked_up(py, keys, |keys, bytes, places| snapshot.multi_get_into(table, keys, bytes, places))
    }

    /// All entries that a table had.
    #[pyo3(signature = (table, *, reverse=false))]
    fn items(&self, table: &Bound<'_, Table>, reverse: bool) -> Outcome<Scan> {
        self.scan(table, Part::All, reverse)
    }

    /// The entries that a range had.
    #[pyo3(signature = (table, start=None, end=None, *, reverse=false))]
    fn range(
        &self,
        table: &Bound<'_, Table>,
        start: Option<Bytes<'_>>,
        end: Option<Bytes<'_>>,
        reverse: bool,
    ) -> Outcome<Scan> {
        self.scan(table, Part::Range(edges(start, end)), reverse)
    }

    /// The entries whose keys began so.
    #[pyo3(signature = (table, prefix, *, reverse=false))]
    fn prefix(&self, table: &Bound<'_, Table>, prefix: Bytes<'_>, reverse: bool) -> Outcome<Scan> {
        self.scan(table, Part::Prefix(prefix.as_ref().to_vec()), reverse)
    }

    /// A cursor over a table as it was, before its first entry.
    fn cursor(&self, py: Python<'_>, table: &Bound<'_, Table>) -> Outcome<Cursor> {
        let (snapshot, table) = (self.held()?, table.get().held()?.handle.ordered()?);
        Ok(Cursor::new(py.detach(|| snapshot.cursor(table))?))
    }

    /// How many keys a table had.
    fn count(&self, py: Python<'_>, table: &Bound<'_, Table>) -> Outcome<u64> {
        let (snapshot, table) = (self.held()?, &table.get().held()?.handle);
        Ok(py.detach(|| snapshot.count(table))?)
    }
}
