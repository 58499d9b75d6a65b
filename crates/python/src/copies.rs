//! Backups, and what is done with databases that are not open.

use std::path::PathBuf;

use forebay::Rescue;
use forebay_env::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::database::{Database, plain};
use crate::failure::Outcome;
use crate::home::Home;
use crate::options::database_options;
use crate::progress::Progress;

/// Removes the database in a directory. Raises Busy where it is open, Invalid where the directory is no database.
#[pyfunction]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> Outcome<()> {
    Ok(py.detach(|| forebay::Database::destroy(path))?)
}

/// Copies all that can be read of a damaged database to a new one. Returns a report of what could not.
#[pyfunction]
#[pyo3(signature = (source, target, **options))]
pub(crate) fn rescue<'py>(
    py: Python<'py>,
    source: PathBuf,
    target: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> Outcome<Bound<'py, PyAny>> {
    let (options, ..) = database_options(options)?;
    let progress = Progress::begin(py, "rescue", "record", None);
    let mut told = |_: &str, records| progress.set(records, 0);
    plain(py, &py.detach(|| Rescue::new(options).run(source, target, &mut told))?)
}

/// A directory of backups that share what they have in common.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Backups(Home<Mutex<forebay::Backups>>);

impl Backups {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&forebay::Backups) -> forebay::Result<T> + Send,
    ) -> Outcome<T> {
        let backups = self.0.get()?;
        Ok(py.detach(|| act(&backups.lock()))?)
    }
}

#[pymethods]
impl Backups {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        let backups = py.detach(|| forebay::Backups::open(path))?;
        Ok(Self(Home::new(Mutex::new(backups))))
    }

    /// Takes a backup. Returns its number, its bytes, and those that were copied.
    fn take<'py>(&self, py: Python<'py>, db: &Bound<'py, Database>) -> Outcome<Bound<'py, PyAny>> {
        let (open, backups) = (db.get().open()?, self.0.get()?);
        let _progress = Progress::begin(py, "backup", "B", None);
        plain(py, &open.with(py, |db| backups.lock().take(db))?)
    }

    /// The backups, oldest first.
    fn list<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, forebay::Backups::list)?)
    }

    /// The number of the newest backup.
    fn newest(&self, py: Python<'_>) -> Outcome<u64> {
        self.with(py, forebay::Backups::newest)
    }

    /// Makes a database of a backup, in a new directory.
    fn restore(&self, py: Python<'_>, number: u64, target: PathBuf) -> Outcome<()> {
        let _progress = Progress::begin(py, "restore", "B", None);
        self.with(py, |backups| backups.restore(number, target))
    }

    /// Reads every byte of a backup. Returns what is wrong.
    fn verify(&self, py: Python<'_>, number: u64) -> Outcome<Vec<String>> {
        let problems = self.with(py, |backups| backups.verify(number))?;
        Ok(problems.iter().map(ToString::to_string).collect())
    }

    /// Removes all but the newest backups, at least one.
    fn keep(&self, py: Python<'_>, newest: usize) -> Outcome<()> {
        self.with(py, |backups| backups.keep(newest))
    }
}
