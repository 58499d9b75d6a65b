//! [`Changes`]: the feed of changes, commit by commit.

use forebay::Operation;
use forebay_env::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::Outcome;
use crate::home::Home;

/// The key of an operation that has none.
static NOTHING: Vec<u8> = Vec::new();

/// What was committed, commit by commit: the number to go on from, and the changes.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Changes(Home<Mutex<forebay::Changes>>);

impl Changes {
    pub(crate) fn new(changes: forebay::Changes) -> Self {
        Self(Home::new(Mutex::new(changes)))
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<(u64, Vec<Change>)>> {
        let changes = self.0.get()?;
        py.check_signals()?;
        let Some(batch) = py.detach(|| changes.lock().next()) else { return Ok(None) };
        let batch = batch?;
        Ok(Some((batch.last_sequence, batch.changes.iter().map(|change| Change::of(py, change)).collect())))
    }
}

/// One operation of a commit.
#[pyclass(frozen, get_all, module = "forebay")]
pub(crate) struct Change {
    sequence: u64,
    table: String,
    operation: &'static str,
    key: Py<PyBytes>,
    value: Option<Py<PyBytes>>,
    expiry_milliseconds: Option<u64>,
}

impl Change {
    fn of(py: Python<'_>, change: &forebay::Change) -> Self {
        let (operation, key, value, expiry_milliseconds) = match &change.operation {
            Operation::Put { key, value, expiry_milliseconds } => {
                ("put", key, Some(value), *expiry_milliseconds)
            }
            Operation::Delete { key } => ("delete", key, None, None),
            Operation::Merge { key, operand, expiry_milliseconds } => {
                ("merge", key, Some(operand), *expiry_milliseconds)
            }
            Operation::DeleteRange { low, high } => ("delete_range", low, high.as_ref(), None),
            _ => ("other", &NOTHING, None, None),
        };
        let bytes = |bytes: &Vec<u8>| PyBytes::new(py, bytes).unbind();
        Self {
            sequence: change.sequence,
            table: change.table.to_string(),
            operation,
            key: bytes(key),
            value: value.map(bytes),
            expiry_milliseconds,
        }
    }
}

#[pymethods]
impl Change {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { sequence, table, operation, .. } = self;
        let (key, value) =
            (self.key.bind(py).repr()?, self.value.as_ref().map(|value| value.bind(py).repr()));
        let value = value.transpose()?.map_or_else(|| "None".into(), |value| value.to_string());
        Ok(format!("Change({sequence}, {table:?}, {operation:?}, {key}, {value})"))
    }
}
