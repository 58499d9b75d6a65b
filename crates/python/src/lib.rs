//! `forebay._forebay`: the native half of the Python package `forebay`. What it has is written down in
//! `python/forebay/_forebay.pyi`; `python/forebay/__init__.py` puts it together.
//!
//! 1. A class of Python's is a [`Home`](home::Home) of something of the engine's. Every call enters by it: after a fork
//!    it refuses, and what it holds is never dropped there.
//! 2. What may touch the device runs detached: the interpreter's lock is not held. No lock of ours is waited for, or held,
//!    with the interpreter's lock: so neither waits for the other.
//! 3. Errors of the engine become exceptions of `forebay._errors` ([`failure`]).
//! 4. A process has one interpreter that may import it: what is static here is of that one.
//! 5. Arrow's data come and go by its C interface ([`kernel`]), without copies.
//!
//! **Invariant:** outside [`kernel`] there is no raw pointer.

mod batch;
mod bytes;
mod changes;
mod columns;
mod copies;
mod cursor;
mod database;
mod failure;
mod groups;
mod handle;
mod home;
mod kernel;
mod options;
mod ordered;
mod pool;
mod progress;
mod rows;
mod scan;
mod share;
mod snapshot;
mod table;
mod transaction;
mod writes;

use pyo3::pymodule;

/// The native half of `forebay`.
#[pymodule]
mod _forebay {
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::{Batch, Writes};
    #[pymodule_export]
    use crate::changes::{Change, Changes};
    #[pymodule_export]
    use crate::columns::Column;
    #[pymodule_export]
    use crate::copies::{Backups, destroy, rescue};
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::database::{Database, open};
    #[pymodule_export]
    use crate::groups::{
        Aggregator, AggregatorSnapshot, Cube, CubeSnapshot, StoredAggregator, Windows, quoted,
    };
    #[pymodule_export]
    use crate::ordered::OrderedTable;
    #[pymodule_export]
    use crate::pool::Pool;
    #[pymodule_export]
    use crate::rows::{BatchIterator, Rows};
    #[pymodule_export]
    use crate::scan::{Scan, ScanIterator};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::transaction::Transaction;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if !crate::kernel::is_main_interpreter(module.py()) {
            return Err(PyImportError::new_err(
                "forebay works in the main interpreter of a process; give other interpreters processes of their own",
            ));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Closes what is open, before the interpreter goes.
    #[pyfunction]
    fn _close_all(py: Python<'_>) {
        crate::home::close_all(py);
    }

    /// The long calls that go on: number, name, unit, how many are done, and of how many, 0 where that is not known.
    #[pyfunction]
    fn _running(py: Python<'_>) -> Vec<(u64, &'static str, &'static str, u64, u64)> {
        crate::progress::running(py)
    }

    /// Told in the child of a fork: nothing of the parent's is touched again.
    #[pyfunction]
    fn _forked() {
        crate::home::forked();
    }
}
