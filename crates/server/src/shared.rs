//! What all loops have in common: the database, its tables, and a lock for each share of the keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay::limits::VALUE_BYTES_MAX;
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
use crate::pushes::{Expiries, Hub};
use crate::replication::{Followers, Following};
use crate::stripe::Stripe;
use crate::syncs::Syncs;
use crate::tls::Tls;

/// The longest argument that may be allowed: a value has its type and its expiry beside it.
const ARGUMENT_BYTES_MAX: usize = VALUE_BYTES_MAX - (1 << 20);

/// As many databases as `SELECT` knows.
pub(crate) const DATABASES: usize = 16;
/// Keys share so many locks.
pub(crate) const STRIPES: usize = 1024;

/// The name of the table of a database's elements.
fn elements_of(number: usize) -> String {
    format!("{number}.elements")
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
        let argument_bytes = shared.config.argument_bytes_max;
        if argument_bytes > ARGUMENT_BYTES_MAX {
            let most = ARGUMENT_BYTES_MAX >> 20;
            let told = format!(
                "arguments of up to {argument_bytes} bytes; a value has no room for more than {most}M"
            );
            return Err(Error::invalid(told));
        }
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
        opened(&self.tables, number, || {
            self.builder(&number.to_string(), |table| table).time_to_live(Duration::MAX).open()
        })
    }

    /// The table of the elements of a database's containers.
    pub(crate) fn elements(&self, number: usize) -> Result<OrderedTable> {
        let ordered = |table: TableBuilder| {
            table.layout(Layout::wb_tree_ordered()).prefix_filter(PrefixFilter::Bytes(8))
        };
        opened(&self.elements, number, || self.builder(&elements_of(number), ordered).open_ordered())
    }

    /// A table that is made in this way, with long values apart, where it is not there. One that is may have another
    /// layout by now, or was made by an older server. Where the server follows, and the source has not made it, an empty
    /// one stands in its place.
    fn builder(&self, name: &str, make: impl FnOnce(TableBuilder) -> TableBuilder) -> TableBuilder {
        if self.database.tables().iter().any(|(known, _)| known == name) {
            return self.database.table(name);
        }
        let table = make(self.following.blank().unwrap_or(&self.database).table(name));
        let apart_bytes_min = self.config.apart_bytes_min.into_iter();
        apart_bytes_min.fold(table, |table, bytes| table.values_apart(bytes))
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
