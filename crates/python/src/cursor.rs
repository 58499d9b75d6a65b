//! [`Cursor`]: goes to any place of a table in key order, and from there either way.

use forebay_env::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::failure::Outcome;
use crate::home::Home;
use crate::scan::{Entry, pair};

/// Goes to any place of a table in key order, and from there either way. Each step tells whether there is an entry.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Cursor(Home<Mutex<forebay::Cursor>>);

impl Cursor {
    pub(crate) fn new(cursor: forebay::Cursor) -> Self {
        Self(Home::new(Mutex::new(cursor)))
    }

    /// Goes somewhere. Tells whether there is an entry.
    fn go(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut forebay::Cursor) -> forebay::Result<()> + Send,
    ) -> Outcome<bool> {
        let cursor = self.0.get()?;
        Ok(py.detach(|| {
            let mut cursor = cursor.lock();
            step(&mut cursor)?;
            Ok::<_, forebay::Error>(cursor.entry().is_some())
        })?)
    }

    fn here(&self, py: Python<'_>) -> Outcome<Option<Entry>> {
        let cursor = self.0.get()?;
        Ok(py.detach(|| cursor.lock().entry().map(|(key, value)| (key.to_vec(), value.to_vec()))))
    }
}

#[pymethods]
impl Cursor {
    /// Goes to the first entry whose key is not below this one.
    fn seek(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<bool> {
        self.go(py, |cursor| cursor.seek(key))
    }

    /// Goes to the last entry whose key is not above this one.
    fn seek_for_prev(&self, py: Python<'_>, key: Bytes<'_>) -> Outcome<bool> {
        self.go(py, |cursor| cursor.seek_for_prev(key))
    }

    /// Goes to the first entry.
    fn seek_to_first(&self, py: Python<'_>) -> Outcome<bool> {
        self.go(py, forebay::Cursor::seek_to_first)
    }

    /// Goes to the last entry.
    fn seek_to_last(&self, py: Python<'_>) -> Outcome<bool> {
        self.go(py, forebay::Cursor::seek_to_last)
    }

    /// Goes to the next entry.
    fn next(&self, py: Python<'_>) -> Outcome<bool> {
        self.go(py, forebay::Cursor::next)
    }

    /// Goes to the entry before.
    fn prev(&self, py: Python<'_>) -> Outcome<bool> {
        self.go(py, forebay::Cursor::prev)
    }

    /// The key and the value here.
    #[getter]
    fn entry<'py>(&self, py: Python<'py>) -> Outcome<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        Ok(self.here(py)?.map(|entry| pair(py, &entry)))
    }
}
