//! What all loops have in common: the database, its tables, and a lock for each share of the keys.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay::{Database, Error, Follower, Layout, OrderedTable, PrefixFilter, Result, Table, TableBuilder};
use forebay_env::sync::{Mutex, MutexGuard, RwLock};

use crate::acl::Acl;
use crate::clients::Clients;
use crate::commands::{Aggregates, Events};
use crate::config::Config;
use crate::elements::{self, DROPPED};
use crate::feeds::Feeds;
use crate::jobs::Jobs;
use crate::key_counts::KeyCounts;
use crate::moment::Rollbacks;
use crate::observe::{HotKeys, SlowLog};
use crate::pushes::{Expiries, Hub, Seat};
use crate::replication::{Followers, Following};
use crate::syncs::Syncs;
use crate::tls::Tls;
use crate::value::Type;

/// As many databases as `SELECT` knows.
pub(crate) const DATABASES: usize = 16;
/// Keys share so many locks.
pub(crate) const STRIPES: usize = 1024;

/// The name of the table of a database's elements.
fn elements_of(number: usize) -> String {
    format!("{number}.elements")
}

/// What a lock of some keys guards besides them: those that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Stripe {
    watched: HashMap<(usize, Vec<u8>), Watched>,
    /// Who waits for keys to have something, in rows: one for lists and one for sorted sets.
    rows: HashMap<(usize, Vec<u8>), [VecDeque<Waiter>; 2]>,
}

/// A client that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) id: u64,
    pub(crate) seat: Seat,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    /// How often it was written since.
    writes: u64,
}

/// Which row those stand in who wait for a type.
fn row_of(kind: Type) -> usize {
    usize::from(kind == Type::SortedSet)
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

    /// Has a client stand last in a row of a key, if it is not in it.
    pub(crate) fn wait(&mut self, database: usize, key: &[u8], kind: Type, waiter: Waiter) {
        let row = &mut self.rows.entry((database, key.to_vec())).or_default()[row_of(kind)];
        // A key that a command names twice.
        if row.back().is_none_or(|last| last.id != waiter.id) {
            row.push_back(waiter);
        }
    }

    /// Takes a client out of its row of a key. Returns who is first there then, if it was that.
    pub(crate) fn stop_waiting(&mut self, database: usize, key: &[u8], id: u64) -> Option<Seat> {
        let key = (database, key.to_vec());
        let rows = self.rows.get_mut(&key)?;
        let mut next = None;
        for row in rows.iter_mut() {
            let was_first = row.front().is_some_and(|first| first.id == id);
            row.retain(|waiter| waiter.id != id);
            next = next.or(row.front().filter(|_| was_first).map(|first| first.seat.clone()));
        }
        if rows.iter().all(VecDeque::is_empty) {
            self.rows.remove(&key);
        }
        next
    }

    /// The first in each row of a key.
    pub(crate) fn firsts(&self, database: usize, key: &[u8]) -> [Option<Seat>; 2] {
        let found = if self.rows.is_empty() { None } else { self.rows.get(&(database, key.to_vec())) };
        let first = |row: &VecDeque<Waiter>| row.front().map(|first| first.seat.clone());
        found.map_or([None, None], |rows| rows.each_ref().map(first))
    }

    /// Whether nobody stands before a client in a row of a key.
    pub(crate) fn is_first(&self, database: usize, key: &[u8], kind: Type, id: u64) -> bool {
        let rows = self.rows.get(&(database, key.to_vec()));
        rows.and_then(|rows| rows[row_of(kind)].front()).is_none_or(|first| first.id == id)
    }

    /// Notes that all keys may have been.
    pub(crate) fn all_written(&mut self) {
        self.rows.values().flatten().filter_map(VecDeque::front).for_each(|first| first.seat.ring());
        self.watched.values_mut().for_each(|watched| watched.writes += 1);
    }
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) config: Config,
    pub(crate) acl: Arc<Acl>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Of each database; made when it is first used.
    tables: RwLock<[Option<Table>; DATABASES]>,
    /// Of the elements of each database's containers.
    elements: RwLock<[Option<OrderedTable>; DATABASES]>,
    /// The number of the next container.
    next_container: AtomicU64,
    /// Whence numbers come that nobody foresees.
    random: AtomicU64,
    stripes: Vec<Mutex<Stripe>>,
    /// Of each database, whether dropped containers may wait for the sweeper.
    pub(crate) has_dropped: [AtomicBool; DATABASES],
    /// Held while elements of dropped containers are looked for and deleted.
    pub(crate) sweeping: Mutex<()>,
    pub(crate) rollbacks: Rollbacks,
    pub(crate) key_counts: Arc<KeyCounts>,
    pub(crate) aggregates: Aggregates,
    pub(crate) jobs: Jobs,
    pub(crate) syncs: Syncs,
    pub(crate) slow: SlowLog,
    pub(crate) hot: HotKeys,
    /// The last turn's commit has failed.
    pub(crate) is_failing: AtomicBool,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) connections: AtomicUsize,
    pub(crate) clients: Clients,
    /// Of requests, replies and messages.
    pub(crate) buffers_bytes: Arc<AtomicUsize>,
    /// Clients that wait for something to take.
    pub(crate) blocked: AtomicUsize,
    pub(crate) hub: Hub,
    pub(crate) feeds: Feeds,
    pub(crate) following: Arc<Following>,
    pub(crate) followers: Followers,
    /// Keys that somebody watches.
    pub(crate) watched: AtomicUsize,
    pub(crate) events: Events,
    pub(crate) expiries: Expiries,
    pub(crate) commands: AtomicU64,
    pub(crate) accepted: AtomicU64,
    next_id: AtomicU64,
    started: Instant,
}

/// A database's table, which is opened, or made, when it is first asked for.
fn opened<T: Clone>(
    tables: &RwLock<[Option<T>; DATABASES]>,
    number: usize,
    open: impl FnOnce() -> Result<T>,
) -> Result<T> {
    debug_assert!(number < DATABASES, "SELECT refuses others");
    if let Some(table) = &tables.read()[number] {
        return Ok(table.clone());
    }
    let mut tables = tables.write();
    if let Some(table) = &tables[number] {
        return Ok(table.clone());
    }
    let table = open()?;
    tables[number] = Some(table.clone());
    Ok(table)
}

impl Shared {
    pub(crate) fn new(database: Arc<Database>, config: Config, follower: Option<Follower>) -> Result<Self> {
        use std::hash::{BuildHasher, Hasher};
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        let slow = SlowLog::new(Duration::from_micros(config.slow_microseconds));
        let following = Following::new(follower, config.source.clone())?;
        let shared = Self {
            database,
            tls: config.tls.as_ref().map(Tls::new).transpose()?.map(Arc::new),
            acl: Arc::new(Acl::new(&config)?),
            config,
            tables: RwLock::default(),
            elements: RwLock::default(),
            next_container: AtomicU64::new(DROPPED + 1),
            random: AtomicU64::new(random),
            stripes: (0..STRIPES).map(|_| Mutex::new(Stripe::default())).collect(),
            has_dropped: std::array::from_fn(|_| AtomicBool::new(true)),
            sweeping: Mutex::default(),
            rollbacks: Rollbacks::default(),
            key_counts: Arc::default(),
            aggregates: Aggregates::default(),
            syncs: Syncs::default(),
            jobs: Jobs::new(),
            slow,
            hot: HotKeys::default(),
            is_failing: AtomicBool::new(false),
            stopping: Arc::default(),
            connections: AtomicUsize::new(0),
            clients: Clients::default(),
            buffers_bytes: Arc::default(),
            blocked: AtomicUsize::new(0),
            hub: Hub::default(),
            feeds: Feeds::default(),
            following: Arc::new(following),
            followers: Followers::default(),
            watched: AtomicUsize::new(0),
            events: Events::default(),
            expiries: Expiries::default(),
            commands: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            started: Instant::now(),
        };
        shared.events.set(&shared.config.events).map_err(Error::invalid)?;
        shared.pass_containers()?;
        Ok(shared)
    }

    /// Has new containers take numbers beyond those that there are.
    pub(crate) fn pass_containers(&self) -> Result<()> {
        for (_, elements) in self.elements_there()? {
            self.next_container.fetch_max(Self::last_container(&elements)? + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The table of a database of `SELECT`. It is named by its number.
    pub(crate) fn table(&self, number: usize) -> Result<Table> {
        opened(&self.tables, number, || self.builder(&number.to_string()).time_to_live(Duration::MAX).open())
    }

    /// The table of the elements of a database's containers.
    pub(crate) fn elements(&self, number: usize) -> Result<OrderedTable> {
        opened(&self.elements, number, || {
            let table = self.builder(&elements_of(number)).layout(Layout::wb_tree_ordered());
            table.prefix_filter(PrefixFilter::Bytes(8)).open_ordered()
        })
    }

    /// A table whose long values stand apart, unless it is there already and was made otherwise.
    fn builder(&self, name: &str) -> TableBuilder {
        let home = self.home_of(name);
        let table = home.table(name);
        let is_new = || home.tables().iter().all(|(known, _)| known != name);
        let apart_bytes_min = self.config.apart_bytes_min.filter(|_| is_new());
        apart_bytes_min.into_iter().fold(table, |table, bytes| table.values_apart(bytes))
    }

    /// Where a table is: where the server follows, and the source has not made it, an empty one stands in its place.
    fn home_of(&self, name: &str) -> &Database {
        match self.following.blank() {
            Some(blank) if !self.database.tables().iter().any(|(there, _)| there == name) => blank,
            _ => &self.database,
        }
    }

    /// Looks anew for all tables: some may have come or gone. Whoever calls it has the database for itself.
    pub(crate) fn renew_tables(&self) -> Result<()> {
        self.tables.write().fill(None);
        self.elements.write().fill(None);
        self.has_dropped.iter().for_each(|has| has.store(true, Ordering::SeqCst));
        self.aggregates.renew(|| Ok(()))
    }

    /// Notes that any key may have been written.
    pub(crate) fn note_all_written(&self) {
        self.key_counts.all_written();
        if self.watched.load(Ordering::SeqCst) > 0 {
            self.stripes.iter().for_each(|stripe| stripe.lock().all_written());
        }
    }

    /// The same, of the databases that have ever had a container.
    pub(crate) fn elements_there(&self) -> Result<Vec<(usize, OrderedTable)>> {
        let there: Vec<String> = self.database.tables().into_iter().map(|(name, _)| name).collect();
        let numbers = (0..DATABASES).filter(|number| there.contains(&elements_of(*number)));
        numbers.map(|number| Ok((number, self.elements(number)?))).collect()
    }

    /// The highest number that a container has, or had, whose elements may be there.
    fn last_container(elements: &OrderedTable) -> Result<u64> {
        let last = elements.last()?.and_then(|(key, _)| elements::id_of(&key));
        let dropped = elements.range(elements::all(DROPPED))?.next_back().transpose()?;
        let dropped = dropped.and_then(|(key, _)| elements::dropped_id(&key));
        Ok(last.max(dropped).unwrap_or(DROPPED))
    }

    /// Drops all keys of a database, or of all databases. Whoever calls it holds all stripes.
    pub(crate) fn flush(&self, database: Option<usize>) -> Result<()> {
        let there: Vec<String> = self.database.tables().into_iter().map(|(name, _)| name).collect();
        let (mut tables, mut elements) = (self.tables.write(), self.elements.write());
        self.expiries.forget(database);
        for number in database.map_or(0..DATABASES, |number| number..number + 1) {
            (tables[number], elements[number]) = (None, None);
            // Headers go first: without elements they would be wrong, and elements without headers are swept.
            for name in [number.to_string(), elements_of(number)].iter().filter(|name| there.contains(name)) {
                self.database.drop_table(name)?;
            }
            self.key_counts.written(number);
        }
        Ok(())
    }

    /// Makes the database what it was at a savepoint. Whoever calls it holds all stripes.
    pub(crate) fn rollback(&self, savepoint: &str) -> Result<()> {
        let _sweeping = self.sweeping.lock();
        let rolled_back = || self.aggregates.renew(|| self.database.rollback(savepoint));
        let rolled_back = self.rollbacks.roll_back(rolled_back);
        self.key_counts.all_written();
        rolled_back?;
        self.tables.write().fill(None);
        self.elements.write().fill(None);
        self.has_dropped.iter().for_each(|has| has.store(true, Ordering::SeqCst));
        self.expiries.forget(None);
        self.pass_containers()
    }

    /// The number of a new container.
    pub(crate) fn new_container(&self) -> u64 {
        self.next_container.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that nobody foresees, below a bound.
    pub(crate) fn random(&self, below: u64) -> u64 {
        let count = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let drawn = rapidhash::v3::rapidhash_v3(&count.to_le_bytes());
        ((u128::from(drawn) * u128::from(below)) >> 64) as u64
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
