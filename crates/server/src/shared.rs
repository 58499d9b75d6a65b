//! What all loops have in common: the database, its tables, and a lock for each share of the keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay::{Database, Result, Table};
use forebay_env::sync::{Mutex, MutexGuard, RwLock};

use crate::commands::Aggregates;
use crate::config::Config;
use crate::jobs::Jobs;
use crate::observe::SlowLog;

/// As many databases as `SELECT` knows.
pub(crate) const DATABASES: usize = 16;
/// Keys share so many locks.
pub(crate) const STRIPES: usize = 1024;

/// What a lock of some keys guards besides them: those that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Stripe {
    watched: HashMap<(usize, Vec<u8>), Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    /// How often it was written since.
    writes: u64,
}

impl Stripe {
    /// Begins to watch a key. Returns how often it was written so far.
    pub(crate) fn watch(&mut self, database: usize, key: &[u8]) -> u64 {
        let watched = self.watched.entry((database, key.to_vec())).or_default();
        watched.watchers += 1;
        watched.writes
    }

    pub(crate) fn writes(&self, database: usize, key: &[u8]) -> u64 {
        self.watched.get(&(database, key.to_vec())).map_or(0, |watched| watched.writes)
    }

    pub(crate) fn unwatch(&mut self, database: usize, key: &[u8]) {
        let watched = (database, key.to_vec());
        if let Some(found) = self.watched.get_mut(&watched) {
            found.watchers -= 1;
            if found.watchers == 0 {
                self.watched.remove(&watched);
            }
        }
    }

    /// Notes that a key was written.
    pub(crate) fn written(&mut self, database: usize, key: &[u8]) {
        if !self.watched.is_empty()
            && let Some(watched) = self.watched.get_mut(&(database, key.to_vec()))
        {
            watched.writes += 1;
        }
    }

    /// Notes that all keys of a database were written, or of all databases.
    pub(crate) fn all_written(&mut self, database: Option<usize>) {
        let of = |(key, _): &(&(usize, Vec<u8>), &mut Watched)| database.is_none_or(|number| number == key.0);
        self.watched.iter_mut().filter(of).for_each(|(_, watched)| watched.writes += 1);
    }
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) config: Config,
    /// Of each database; made when it is first used.
    tables: RwLock<Vec<Option<Table>>>,
    stripes: Vec<Mutex<Stripe>>,
    pub(crate) aggregates: Aggregates,
    pub(crate) jobs: Jobs,
    pub(crate) slow: SlowLog,
    /// The last turn's commit has failed.
    pub(crate) is_failing: AtomicBool,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) connections: AtomicUsize,
    pub(crate) buffers_bytes: AtomicUsize,
    pub(crate) commands: AtomicU64,
    pub(crate) accepted: AtomicU64,
    next_id: AtomicU64,
    started: Instant,
}

impl Shared {
    pub(crate) fn new(database: Database, config: Config) -> Self {
        let slow = SlowLog::new(Duration::from_micros(config.slow_microseconds));
        Self {
            database: Arc::new(database),
            config,
            tables: RwLock::new(vec![None; DATABASES]),
            stripes: (0..STRIPES).map(|_| Mutex::new(Stripe::default())).collect(),
            aggregates: Aggregates::default(),
            jobs: Jobs::new(),
            slow,
            is_failing: AtomicBool::new(false),
            stopping: Arc::default(),
            connections: AtomicUsize::new(0),
            buffers_bytes: AtomicUsize::new(0),
            commands: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            started: Instant::now(),
        }
    }

    /// The table of a database of `SELECT`. It is named by its number.
    pub(crate) fn table(&self, number: usize) -> Result<Table> {
        debug_assert!(number < DATABASES, "SELECT refuses others");
        if let Some(table) = &self.tables.read()[number] {
            return Ok(table.clone());
        }
        let mut tables = self.tables.write();
        if let Some(table) = &tables[number] {
            return Ok(table.clone());
        }
        let table = self.database.table(&number.to_string()).time_to_live(Duration::MAX).open()?;
        tables[number] = Some(table.clone());
        Ok(table)
    }

    /// Drops all keys of a database, or of all databases. Whoever calls it holds all stripes.
    pub(crate) fn flush(&self, database: Option<usize>) -> Result<()> {
        let there: Vec<String> = self.database.tables().into_iter().map(|(name, _)| name).collect();
        let mut tables = self.tables.write();
        for number in database.map_or(0..DATABASES, |number| number..number + 1) {
            tables[number] = None;
            let name = number.to_string();
            if there.contains(&name) {
                self.database.drop_table(&name)?;
            }
        }
        Ok(())
    }

    /// Has tables be looked for anew: the database is that of another moment. Whoever calls it holds all stripes.
    pub(crate) fn forget_tables(&self) {
        self.tables.write().fill(None);
        self.aggregates.clear();
    }

    /// Which lock a key has, in all databases.
    pub(crate) fn stripe_of(key: &[u8]) -> usize {
        rapidhash::v3::rapidhash_v3(key) as usize % STRIPES
    }

    pub(crate) fn lock(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[stripe].lock()
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}
