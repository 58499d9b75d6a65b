//! [`Database`]: opened, closed, copied, kept and brought back, and what it tells of itself.

use std::path::{Path, PathBuf};

use forebay::Durability;
use forebay_env::sync::{Arc, RwLock};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::batch::Batch;
use crate::changes::Changes;
use crate::failure::{Failure, Outcome};
use crate::groups::{Cube, Merges, StoredAggregator, Windows, Wish};
use crate::handle::{Handle, builder};
use crate::home::{Close, Home, register};
use crate::options::{database_options, duration, texts};
use crate::pool::Pool;
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::table::Table;
use crate::transaction::{Transaction, run};

/// A database until it is closed. Calls wait for its lock without the interpreter's.
pub(crate) struct Open {
    db: RwLock<Option<forebay::Database>>,
    /// That of writes that say none.
    pub(crate) usual: Durability,
    attempts: u32,
    /// Of the functions in Python that aggregators of it have.
    pub(crate) merges: Merges,
}

impl Open {
    /// Does something with the database; nothing of Python's is asked for amid it.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&forebay::Database) -> forebay::Result<T> + Send,
    ) -> Outcome<T> {
        py.detach(|| self.with_detached(act))
    }

    /// The same of a thread that is detached.
    pub(crate) fn with_detached<T>(
        &self,
        act: impl FnOnce(&forebay::Database) -> forebay::Result<T>,
    ) -> Outcome<T> {
        match &*self.db.read() {
            Some(db) => Ok(act(db)?),
            None => Err(Failure::Closed("database")),
        }
    }

    fn close(&self) -> forebay::Result<()> {
        let db = self.db.write().take();
        db.map_or(Ok(()), forebay::Database::close)
    }
}

impl Close for Open {
    fn close_at_exit(&self) {
        let _ = self.close();
    }
}

/// An open database: tables, aggregators, and what is done with all of them at once.
///
/// It may be used by any number of threads. As a context manager it is closed at the end; so it is when the
/// interpreter ends. Tables and snapshots that are still held can be read after that, and all their other calls raise
/// Closed or Invalid.
#[pyclass(frozen, weakref, module = "forebay")]
pub(crate) struct Database {
    home: Home<Arc<Open>>,
    path: PathBuf,
}

/// What the engine tells, as plain dictionaries and lists.
pub(crate) fn plain<'py>(py: Python<'py>, told: &impl Serialize) -> Outcome<Bound<'py, PyAny>> {
    let text = serde_json::to_string(told)
        .map_err(|error| forebay::Error::Bug(format!("no JSON can be made: {error}")))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?)
}

/// Opens the database in a directory, or makes one there.
///
/// ``memory`` is the limit for everything, in bytes or as ``"512MB"`` (units are powers of 1024): 256 MiB by default,
/// 1 MiB at least. ``durability`` is that of writes that say none: ``"memory"``, ``"os"`` (the default: survives the
/// process) or ``"disk"`` (survives a power loss). With ``read_only=True`` any number of processes read beside one
/// that writes. Times are timedeltas, or texts such as ``"100ms"``. ``docs/guide/memory.md`` and
/// ``docs/guide/durability.md`` have the others.
///
/// Raises Busy where it is open elsewhere, NotFound where it is not there and may not be made, Corruption,
/// NewerFormat, Invalid for an option that is none, IoError.
#[pyfunction]
#[pyo3(signature = (path, *, pool=None, **options))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    pool: Option<&Bound<'_, Pool>>,
    options: Option<&Bound<'_, PyDict>>,
) -> Outcome<Database> {
    let (mut made, usual, attempts) = database_options(options)?;
    if let Some(pool) = pool {
        made = made.pool(pool.get().shared()?);
    }
    let db = py.detach(|| forebay::Database::open(&path, made))?;
    let open = Arc::new(Open { db: RwLock::new(Some(db)), usual, attempts, merges: Merges::default() });
    register(py, &open);
    Ok(Database { home: Home::new(open), path })
}

impl Database {
    pub(crate) fn open(&self) -> Outcome<&Arc<Open>> {
        self.home.get()
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&forebay::Database) -> forebay::Result<T> + Send,
    ) -> Outcome<T> {
        self.home.get()?.with(py, act)
    }

    /// A table, in the class of its order.
    fn opened<'py>(&self, py: Python<'py>, handle: Handle) -> Outcome<Bound<'py, Table>> {
        Table::bound(py, handle, self.home.get()?)
    }
}

#[pymethods]
impl Database {
    /// The directory, as a pathlib.Path.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Makes everything durable and closes. Closing again does nothing. Waits for calls of other threads.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        let open = self.home.get()?;
        Ok(py.detach(|| open.close())?)
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

    /// Opens a table, or makes it: an OrderedTable where its layout keeps keys in order.
    ///
    /// ``layout`` is ``"wb-tree"`` (hash order, the default), ``"wb-tree:ordered"``, ``"leveling:t=10"`` and so on:
    /// ``docs/guide/layouts.md``. Options count when the table is made; others later raise Invalid, and ``alter``
    /// changes them. ``merge_rule`` is ``"append:,"``, ``"append"``, ``"max"``, ``"min"`` or ``"add"``.
    /// ``existing=True`` raises NotFound instead of making it.
    #[pyo3(signature = (name, **options))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Bound<'py, Table>> {
        let texts = texts(options)?;
        let handle = self.with(py, |db| Handle::open(builder(db, name, &texts)?))?;
        self.opened(py, handle)
    }

    /// The same of a table that keeps its keys in order; ``"wb-tree:ordered"`` by default.
    #[pyo3(signature = (name, **options))]
    fn ordered_table<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Bound<'py, Table>> {
        let texts = texts(options)?;
        let handle = self.with(py, |db| {
            let table = builder(db, name, &texts)?.open_ordered()?;
            Ok(Handle::Ordered(table))
        })?;
        self.opened(py, handle)
    }

    /// Opens groups that the database keeps, or makes them.
    ///
    /// ``key`` names the columns to group by, none for one group of all rows; ``aggs`` gives each answer a name and a
    /// function. Both are kept, and may be left out later; others then raise Invalid. The types of the key's columns
    /// are those of what is first added, or of ``schema``, which raises Invalid where others are kept. Until then
    /// reads raise Invalid; with ``schema`` there are no rows yet.
    #[pyo3(signature = (name, *, key=None, aggs=None, schema=None, **options))]
    fn aggregator(
        &self,
        py: Python<'_>,
        name: &str,
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        schema: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<StoredAggregator> {
        StoredAggregator::open(py, self.home.get()?, name, key, aggs, schema, texts(options)?)
    }

    /// Opens groups by key and by time that the database keeps, in windows, or makes them.
    ///
    /// ``time`` names the column of times: timestamps, dates, or whole numbers of milliseconds since 1970. A window is
    /// ``every`` long, a timedelta or such as ``"15m"``, ``"1d"``, ``"1w"`` (from Monday on), ``"1mo"``, ``"1q"``,
    /// ``"1y"``, and ``retain`` says how far back they are kept, all where it is left out: ``Windows.expire`` drops the
    /// others. Windows lie side by side from 1970 on, in UTC. ``key``, ``aggs`` and ``schema`` are those of
    /// ``aggregator``. All is kept, and may be left out later.
    #[pyo3(signature = (name, *, time=None, every=None, retain=None, key=None, aggs=None, schema=None))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of its own")]
    fn windows(
        &self,
        py: Python<'_>,
        name: &str,
        time: Option<String>,
        every: Option<&Bound<'_, PyAny>>,
        retain: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Windows> {
        Windows::open(py, self.home.get()?, name, &Wish { time, every, retain, key, aggs, schema })
    }

    /// Drops windows with all there is of them.
    fn drop_windows(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.with(py, |db| Windows::forget(db, name))
    }

    /// Opens groups by several columns and by fewer of them that the database keeps up to date together, or makes them.
    ///
    /// ``key``, ``aggs`` and ``schema`` are those of ``aggregator``. ``groupings`` says by which columns there are groups:
    /// ``"cube"`` (by any of them, the default), ``"rollup"`` (by all, all but the last, and so on to none), or lists of
    /// columns, to which all columns are added. All is kept, and may be left out later. At most 12 columns.
    #[pyo3(signature = (name, *, key=None, aggs=None, groupings=None, schema=None))]
    fn cube(
        &self,
        py: Python<'_>,
        name: &str,
        key: Option<&Bound<'_, PyAny>>,
        aggs: Option<&Bound<'_, PyDict>>,
        groupings: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Cube> {
        Cube::open(py, self.home.get()?, name, key, aggs, groupings, schema)
    }

    /// Drops a cube with all there is of it.
    fn drop_cube(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.with(py, |db| Cube::forget(db, name))
    }

    /// The tables' names and their layouts.
    fn tables<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for (name, layout) in self.with(py, |db| Ok(db.tables()))? {
            tables.set_item(name, layout.to_string())?;
        }
        Ok(tables)
    }

    /// Drops a table with all its records; of an aggregator drop ``NAME.schema``, too.
    fn drop_table(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.with(py, |db| db.drop_table(name))
    }

    /// Gives a table in use other options; those that are not named stay.
    #[pyo3(signature = (name, **options))]
    fn alter(&self, py: Python<'_>, name: &str, options: Option<&Bound<'_, PyDict>>) -> Outcome<()> {
        let texts = texts(options)?;
        self.with(py, |db| builder(db, name, &texts)?.alter())
    }

    /// A batch: writes to any tables that are committed together, or not at all.
    #[pyo3(signature = (*, durability=None))]
    fn batch<'py>(&self, py: Python<'py>, durability: Option<&str>) -> Outcome<Bound<'py, Batch>> {
        Batch::begin(py, self.home.get()?, durability)
    }

    /// The database as it is now, over all tables.
    fn snapshot(&self, py: Python<'_>) -> Outcome<Snapshot> {
        let open = self.home.get()?;
        Ok(Snapshot::new(open, open.with(py, |db| Ok(db.snapshot()))?))
    }

    /// Begins a transaction, which its context commits. ``transaction`` also begins anew after a conflict.
    #[pyo3(signature = (*, durability=None))]
    fn begin<'py>(&self, py: Python<'py>, durability: Option<&str>) -> Outcome<Bound<'py, Transaction>> {
        Transaction::begin(py, self.home.get()?, durability)
    }

    /// Calls ``act`` with a transaction, commits it, and returns what ``act`` returned.
    ///
    /// Where somebody else has changed what it read, ``act`` is called again, up to ``transaction_attempts`` times:
    /// it should do nothing but read and write. An exception of it ends this, and nothing is written. Raises Conflict
    /// at last.
    #[pyo3(signature = (act, *, durability=None))]
    fn transaction<'py>(
        &self,
        py: Python<'py>,
        act: &Bound<'py, PyAny>,
        durability: Option<&str>,
    ) -> Outcome<Bound<'py, PyAny>> {
        let open = self.home.get()?;
        run(py, open, act, durability, open.attempts)
    }

    /// Keeps all tables as they are now, under a name, inside the database. Returns the last record's number.
    fn savepoint(&self, py: Python<'_>, name: &str) -> Outcome<u64> {
        self.with(py, |db| db.savepoint(name))
    }

    /// The savepoints, oldest first.
    fn savepoints<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, |db| Ok(db.savepoints()))?)
    }

    /// The database as it was at a savepoint.
    fn open_savepoint(&self, py: Python<'_>, name: &str) -> Outcome<Snapshot> {
        let open = self.home.get()?;
        Ok(Snapshot::new(open, open.with(py, |db| db.open_savepoint(name))?))
    }

    /// Makes all tables what they were at a savepoint, at once.
    fn rollback(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.with(py, |db| db.rollback(name))
    }

    /// Gives up a savepoint.
    fn drop_savepoint(&self, py: Python<'_>, name: &str) -> Outcome<()> {
        self.with(py, |db| db.drop_savepoint(name))
    }

    /// All changes after the one of this number, commit by commit, up to now.
    ///
    /// Each item is the number to go on from and a list of Change. Raises ChangesGone where the log does not go back
    /// that far: ``keep_changes`` says how far it does.
    #[pyo3(signature = (since=0))]
    fn changes(&self, py: Python<'_>, since: u64) -> Outcome<Changes> {
        Ok(Changes::new(self.with(py, |db| db.changes(since))?))
    }

    /// How much of the log is kept for ``changes``, in bytes.
    fn keep_changes(&self, py: Python<'_>, bytes: &Bound<'_, PyAny>) -> Outcome<()> {
        let bytes = crate::options::size("bytes", bytes)?;
        self.with(py, |db| db.keep_changes(bytes))
    }

    /// Makes a copy of the database in a new directory on the same file system. Returns its files and last record.
    fn checkpoint<'py>(&self, py: Python<'py>, path: PathBuf) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, |db| db.checkpoint(path))?)
    }

    /// Reads every byte and checks it. ``["problems"]`` of the report lists what is damaged.
    fn verify<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let progress = Progress::begin(py, "verify", "B", None);
        plain(py, &self.with(py, |db| db.verify(&mut |done, all| progress.set(done, all)))?)
    }

    /// What could not be read so far, of a database that is open with ``salvage=True``.
    fn damage<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, |db| Ok(db.damage()))?)
    }

    /// Counters and gauges: bytes, seconds, and shares.
    fn stats<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, |db| Ok(db.stats()))?)
    }

    /// How the tables are laid out.
    fn describe<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        plain(py, &self.with(py, |db| Ok(db.describe()))?)
    }

    /// Of a database that is open with ``read_only=True``: goes on to what was written since. Returns the last
    /// record's number.
    fn refresh(&self, py: Python<'_>) -> Outcome<u64> {
        self.with(py, forebay::Database::refresh)
    }

    /// The stats of the process that has it open to write, if it answers within this time (seconds).
    fn writer_stats<'py>(&self, py: Python<'py>, patience: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        let patience = duration(patience)?;
        plain(py, &self.with(py, |db| db.writer_stats(patience))?)
    }

    /// Writes all buffered records to files.
    fn flush(&self, py: Python<'_>) -> Outcome<()> {
        self.with(py, forebay::Database::flush)
    }

    /// Makes everything accepted so far survive a power loss.
    fn sync(&self, py: Python<'_>) -> Outcome<()> {
        self.with(py, forebay::Database::sync)
    }

    /// Returns once all records up to this number survive a power loss.
    fn wait_durable(&self, py: Python<'_>, sequence: u64) -> Outcome<()> {
        self.with(py, |db| db.wait_durable(sequence))
    }

    /// Returns once background work has nothing left to do.
    fn wait_until_idle(&self, py: Python<'_>) -> Outcome<()> {
        self.with(py, forebay::Database::wait_until_idle)
    }

    /// How many bytes a second background work goes through; 0 for no limit.
    fn set_background_rate(&self, py: Python<'_>, bytes_a_second: &Bound<'_, PyAny>) -> Outcome<()> {
        let bytes = crate::options::size("bytes_a_second", bytes_a_second)?;
        self.with(py, |db| db.set_background_rate(bytes))
    }

    /// The number of the last accepted record.
    #[getter]
    fn last_sequence(&self, py: Python<'_>) -> Outcome<u64> {
        self.with(py, |db| Ok(db.last_sequence()))
    }

    /// The number up to which records survive a power loss.
    #[getter]
    fn durable_sequence(&self, py: Python<'_>) -> Outcome<u64> {
        self.with(py, |db| Ok(db.durable_sequence()))
    }
}
