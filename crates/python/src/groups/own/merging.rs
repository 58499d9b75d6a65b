//! [`Merging`]: what the handles of one aggregator share of a function. The engine keeps the function of the first handle
//! for as long as the database is open, and merges by it; in a notebook that handle is soon gone, and what it was given is
//! mended.
//!
//! **Invariant:** merges are those of the object that came last, and what they raise is told by whatever handle is asked.
//!
//! No Python runs amid the locks: what is replaced is dropped behind them.

use std::collections::BTreeMap;

use forebay_env::sync::{Arc, Mutex, Weak};
use pyo3::prelude::*;

use super::Own;

/// See the module.
pub(super) struct Merging {
    object: Mutex<Py<PyAny>>,
    /// What a merge raised of which nobody was told yet.
    failed: Mutex<Option<PyErr>>,
}

impl Merging {
    pub(super) fn new(object: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self { object: Mutex::new(object), failed: Mutex::new(None) })
    }

    pub(super) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.lock().clone_ref(py)
    }

    pub(super) fn is_failed(&self) -> bool {
        self.failed.lock().is_some()
    }

    pub(super) fn fail(&self, error: PyErr) {
        let before = self.failed.lock().replace(error);
        drop(before);
    }

    pub(super) fn take_failed(&self) -> Option<PyErr> {
        self.failed.lock().take()
    }

    /// Another object is asked from now on, also for what the one before failed at.
    fn replace(&self, object: Py<PyAny>) {
        let is_same = self.object.lock().is(&object);
        if !is_same {
            let before = std::mem::replace(&mut *self.object.lock(), object);
            drop((before, self.take_failed()));
        }
    }
}

/// The functions of a database, by table and text, as long as somebody has them.
#[derive(Default)]
pub(crate) struct Merges(Mutex<BTreeMap<(String, String), Weak<Merging>>>);

impl Merges {
    /// A function of a handle of this table joins those of before.
    pub(in crate::groups) fn join(&self, py: Python<'_>, table: &str, own: &Own) {
        let merging = self.of(table, own);
        merging.replace(own.object.clone_ref(py));
        let before = std::mem::replace(&mut *own.merging.lock(), merging);
        drop(before);
    }

    fn of(&self, table: &str, own: &Own) -> Arc<Merging> {
        let (key, first) = ((table.to_string(), own.text.clone()), own.merging());
        let mut all = self.0.lock();
        all.retain(|_, known| known.strong_count() > 0);
        if let Some(known) = all.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        all.insert(key, Arc::downgrade(&first));
        first
    }
}
