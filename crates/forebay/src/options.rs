//! Options of a database: plain data, validated when it is opened. Units are the last word of a name.

mod division;
mod encryption;
mod reads;
mod validate;

use std::time::Duration;

use forebay_env::Env;
use forebay_layouts::Layout;
use forebay_store::log::Durability;

use crate::pool::Pool;
pub(crate) use division::Division;
pub use reads::ReadOptions;

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) pool: Option<Pool>,
    pub(crate) write_buffer_bytes: Option<u64>,
    pub(crate) write_buffers: Option<usize>,
    pub(crate) resident_percent: Option<u32>,
    pub(crate) background_threads: Option<usize>,
    pub(crate) background_rate_bytes: u64,
    pub(crate) durability: Option<Durability>,
    pub(crate) log: bool,
    pub(crate) sync_interval: Duration,
    pub(crate) read_compaction_ratio: f64,
    pub(crate) keep_changes_bytes: Option<u64>,
    pub(crate) open_files_max: Option<usize>,
    pub(crate) system_cache: bool,
    pub(crate) transaction_attempts: u32,
    pub(crate) transaction_read_bytes: Option<u64>,
    pub(crate) create_if_missing: bool,
    pub(crate) read_only: bool,
    pub(crate) salvage: bool,
    pub(crate) env: Option<Env>,
    /// Who has the keys by which the database is encrypted.
    #[cfg(feature = "encryption")]
    pub(crate) key_provider: Option<encryption::Provider>,
    /// Nobody's rest is taken for idle time, in which lists are merged that no limit asks for.
    pub(crate) is_never_idle: bool,
    /// Who writes: its own, or another database's.
    pub(crate) role: Role,
}

/// What a database is opened as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Role {
    /// One that takes writes.
    #[default]
    Own,
    /// One that follows another, and takes nothing else.
    Follower,
}

impl Default for Options {
    /// 256 MiB of memory, [`Durability::Os`], a background sync every 100 ms, created if missing.
    fn default() -> Self {
        Self {
            memory_limit_bytes: None,
            pool: None,
            write_buffer_bytes: None,
            write_buffers: None,
            resident_percent: None,
            background_threads: None,
            background_rate_bytes: 0,
            durability: None,
            log: true,
            sync_interval: Duration::from_millis(100),
            read_compaction_ratio: 8.0,
            keep_changes_bytes: None,
            open_files_max: None,
            system_cache: false,
            transaction_attempts: TRANSACTION_ATTEMPTS,
            transaction_read_bytes: None,
            create_if_missing: true,
            read_only: false,
            salvage: false,
            env: None,
            #[cfg(feature = "encryption")]
            key_provider: None,
            is_never_idle: false,
            role: Role::Own,
        }
    }
}

/// Where writes go first: how many buffers, and of how many bytes a new one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Buffers {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
}

impl Buffers {
    /// All of them together.
    pub(crate) fn total_bytes(self) -> u64 {
        self.bytes.saturating_mul(self.count as u64)
    }

    /// How much may wait for background work before writers wait for it.
    pub(crate) fn free_debt_bytes(self) -> u64 {
        (self.total_bytes() / 2).saturating_mul(FREE_HALVES)
    }
}

/// As much debt as half of the write buffers' bytes, so many times, costs nothing.
const FREE_HALVES: u64 = 3;

/// How many write buffers there are, and which part of the memory limit each takes, unless that is said. The longer they
/// are, the fewer lists there are, and the less often records are merged.
const WRITE_BUFFERS: (usize, u64) = (2, 4);
/// Where their size is given, or of what is left beside tables that keep records in memory.
const MANY_WRITE_BUFFERS: (usize, u64) = (3, 8);
/// What a database may take unless that is said.
const MEMORY_LIMIT_BYTES: u64 = 256 << 20;
/// The least memory a database works in.
pub(crate) const MEMORY_LIMIT_BYTES_MIN: u64 = 1 << 20;
/// The largest write buffer: places in it are 32-bit numbers.
const WRITE_BUFFER_BYTES_MAX: u64 = 2 << 30;
/// The most threads that compact. Each has a bit in a word that says who has nothing to do.
pub(crate) const BACKGROUND_THREADS_MAX: usize = 64;
/// Where the machine has only one core, one of them waits for the device while the other merges.
const BACKGROUND_THREADS_MIN: usize = 2;
/// There are no more compactors by default than one for so much of the memory limit: each writes from a buffer, and builds
/// filters.
const COMPACTOR_BYTES: u64 = 16 << 20;
/// More than this is of no use to a merge.
const MERGE_BYTES_MAX: u64 = 32 << 20;
const SYNC_INTERVAL_MIN: Duration = Duration::from_millis(1);
const WRITE_BUFFER_BYTES_MIN: u64 = 4 << 10;
/// What one writes and merges at a time.
const OPEN_FILES_MIN: usize = 16;
/// More are not kept open unless asked for.
const OPEN_FILES: usize = 4096;
/// A process may have several databases, and files of its own.
const OPEN_FILES_PART: usize = 4;
/// What a process may have open, where the system does not say.
const PROCESS_FILES: usize = 1024;
/// Tables keep something of this many write buffers in memory at least, of each as little as it may be. The log goes
/// back as far.
const RESIDENT_BUFFERS_MIN: u64 = 8;
/// And of no more than so many, however small they are.
const RESIDENT_BUFFERS_MAX: u64 = 64;
/// The part of the memory limit that they take, unless it is said, and what it may be: with more nothing would be left for
/// reading.
const RESIDENT_PERCENT: u32 = 40;
const RESIDENT_PERCENT_MAX: u32 = 60;
/// How many write buffers it has room for at least, unless their size is given: one of them is always coming.
const RESIDENT_BUFFERS: u64 = 4;
/// A segment of the log stays for its values where they are this share of it at least.
pub(crate) const VALUES_SHARE_MIN: f64 = 0.5;
/// Of writers that all change one key each may lose against all others a few hundred times in a row.
const TRANSACTION_ATTEMPTS: u32 = 1000;
/// What one transaction may have read takes this part of the memory limit by default,
const TRANSACTION_READS_PART: u64 = 16;
/// and no less than this: several of the longest keys.
const TRANSACTION_READ_BYTES_MIN: u64 = 1 << 20;
/// Write buffers are whole blocks of this many bytes.
const BLOCK_BYTES: u64 = 4096;

const _: () =
    assert!(WRITE_BUFFER_BYTES_MAX <= u32::MAX as u64, "places in a write buffer are 32-bit numbers");
const _: () = assert!(
    WRITE_BUFFER_BYTES_MIN.is_multiple_of(BLOCK_BYTES) && WRITE_BUFFER_BYTES_MAX.is_multiple_of(BLOCK_BYTES),
    "what is within bounds stays so as whole blocks"
);
const _: () = assert!(
    MEMORY_LIMIT_BYTES_MIN / MANY_WRITE_BUFFERS.1 >= WRITE_BUFFER_BYTES_MIN,
    "the usual part of any limit is a write buffer"
);
const _: () = assert!(
    OPEN_FILES_MIN <= PROCESS_FILES / OPEN_FILES_PART && OPEN_FILES_MIN <= OPEN_FILES,
    "by default there are as many open files as are needed"
);

impl Options {
    /// Memory for everything: write buffers and their indexes, filters, page search, page cache, merges, scans. At
    /// least 1 MiB. The process stays within the limit plus a tenth, or plus 16 MiB where that is more;
    /// `docs/guide/memory.md` lists what breaks this. Among it: a batch longer than a write buffer, which gets a buffer
    /// of its own length, and the page search of very many lists. Flushed buffers that only snapshots see move to files
    /// without names when they do not fit.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// Takes memory and threads from a pool, which several databases share, instead of a
    /// [`memory_limit`](Self::memory_limit) and [`background_threads`](Self::background_threads) of its own: giving
    /// either besides is an error. A [`write_buffer`](Self::write_buffer) that is given is the longest that one gets.
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Size of one write buffer; a quarter of the memory limit by default, or a thirteenth while there are tables that keep
    /// records in memory ([`Layout::range_merge`](crate::Layout::range_merge)) and nothing is said of
    /// [`resident_percent`](Self::resident_percent). What is flushed at a time is a write
    /// buffer: of two sizes the longer one merges less often, and lookups meet fewer lists.
    pub fn write_buffer(mut self, bytes: u64) -> Self {
        self.write_buffer_bytes = Some(bytes);
        self
    }

    /// How many write buffers there are: one is filled while the others are written out. At least 2, which is the
    /// default; 3 where their size is given, or while there are tables that keep records in memory. More than that are
    /// shorter where their size is not given: all of them take no more memory.
    pub fn write_buffers(mut self, count: usize) -> Self {
        self.write_buffers = Some(count);
        self
    }

    /// Which part of the memory limit tables that keep records in memory
    /// ([`Layout::range_merge`](crate::Layout::range_merge)) may take for that, all together, with filters and page search:
    /// from 1 to 60 percent, 40 by default, or two write buffers where their size is given, and a quarter at most. What they
    /// write falls as this grows. A write buffer is a quarter of it then, or an eighth of what is left where that is less;
    /// one that is given has to fit into it twice. What filters and cached pages have is what these leave.
    pub fn resident_percent(mut self, percent: u32) -> Self {
        self.resident_percent = Some(percent);
        self
    }

    /// How many threads compact, all tables together: by default the cores of the machine, but at most one for 16 MiB of
    /// the memory limit, and at least 2. Each works on nodes or runs of its own. They share a sixteenth of the memory limit
    /// to read what they merge, and each takes up to a thirty-second to write. Flushes, the sorting before them and the
    /// sync of the log have a thread each besides.
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = Some(threads);
        self
    }

    /// How many bytes of records a second background work goes through, so that it leaves the device and the cores to
    /// others: 0, the default, for no limit, or at least 65,536. Merges read that many bytes, and write as many at most.
    /// Flushes count, and merges wait for what they take; no flush waits. Writers that outrun merges wait for them as
    /// they do otherwise, and so for longer: [`Stats::stall_seconds`](crate::Stats::stall_seconds) tells, and
    /// [`Stats::merge_wait_seconds`](crate::Stats::merge_wait_seconds) how long merges waited. Give more than the
    /// writers' rate times what merges cost (`forebay simulate` tells), or they go by this.
    /// [`Database::set_background_rate`](crate::Database::set_background_rate) changes it in use. In a
    /// [pool](Self::pool) it is the pool's to say.
    pub fn background_rate(mut self, bytes_a_second: u64) -> Self {
        self.background_rate_bytes = bytes_a_second;
        self
    }

    /// Durability of [`Table::put`](crate::Table::put) and [`Table::delete`](crate::Table::delete): [`Durability::Os`] by
    /// default, [`Durability::Memory`] without a [log](Self::log).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Whether there is a log (the default). Without one nothing is written twice: records go to lists as write buffers
    /// are flushed, and nowhere before. After any crash the database is as the last flush left it: of a write buffer all
    /// batches are there or none, and only behind all of those before it. Buffers are flushed when they are full, by
    /// [`Database::flush`](crate::Database::flush), and when the database is closed. This is for programs that can give again what was lost: put how far their input was read into a table, in the
    /// same batch as what was read, and both are there after a crash, or neither.
    ///
    /// A write or a sync that asks for more gets it, and the log is written as far: batches at [`Durability::Os`] or
    /// [`Durability::Disk`], [`Database::sync`](crate::Database::sync), and what needs records durable before they are in
    /// lists: [`keep_changes`](Self::keep_changes), tables that keep records in memory
    /// ([`Layout::range_merge`](crate::Layout::range_merge)), and values that are kept apart, which are written to it
    /// alone. It may be another at each opening.
    pub fn log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// How old a write may become that is not durable: what a power loss can take from writes at [`Durability::Os`]. The
    /// log is synced in the background where a record has become that old; those that were flushed before are durable.
    /// With [`Duration::MAX`] it is never synced in the background: for programs that call
    /// [`Database::sync`](crate::Database::sync).
    pub fn sync_interval(mut self, interval: Duration) -> Self {
        self.sync_interval = interval;
        self
    }

    /// How much of the log is kept for [`Database::changes`](crate::Database::changes) once tables no longer need it.
    /// It is kept by whole segments, each as long as a write buffer at most, and the oldest go first; so give a few
    /// times the size of a write buffer. With 0 only the newest changes are there, those that are not in lists yet: that
    /// is how a database begins. The database keeps this number: openings that say none leave it as it is, and
    /// [`Database::keep_changes`](crate::Database::keep_changes) changes it in use.
    pub fn keep_changes(mut self, bytes: u64) -> Self {
        self.keep_changes_bytes = Some(bytes);
        self
    }

    /// The most files that this database keeps open, at least 16. By default it is a quarter of what the process may
    /// open (`ulimit -n`), and no more than 4,096. Files are opened when they are read, and those that were not read
    /// for the longest time are closed. A file that is written, or read around the page cache, counts twice. Files
    /// being written stay open: fewer than 16, apart from log segments that a long
    /// [`sync_interval`](Self::sync_interval) leaves unsynced, and from many readers at once, each of which has at
    /// least one. With few open files, lookups and scans cost an `open` now and then, and no more memory.
    pub fn open_files_max(mut self, files: usize) -> Self {
        self.open_files_max = Some(files);
        self
    }

    /// How often [`Database::transaction`](crate::Database::transaction),
    /// [`Table::update`](crate::Table::update) and
    /// [`Table::compare_and_swap`](crate::Table::compare_and_swap) try before they give
    /// [`Error::Conflict`](crate::Error::Conflict): 1,000 times by default.
    pub fn transaction_attempts(mut self, attempts: u32) -> Self {
        self.transaction_attempts = attempts;
        self
    }

    /// Memory for what one transaction remembers of its reads: about 64 bytes and the key for each key that is read by
    /// itself, and for each range that is walked, however much is in it. A transaction that needs more fails. By
    /// default it is a sixteenth of the memory limit, and at least 1 MiB; the limit does not cover it.
    pub fn transaction_reads(mut self, bytes: u64) -> Self {
        self.transaction_read_bytes = Some(bytes);
        self
    }

    /// Whether a missing database is created (the default) or is an error.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Opens for reading only: any number of processes may do so at a time, beside one that writes. What is seen is what
    /// was in files at that moment; [`Database::refresh`](crate::Database::refresh) goes on to what was written since.
    ///
    /// Not a byte of the database is changed. A reader keeps a file of its own in the folder `readers` of the directory,
    /// its *lease*, for as long as it lives: so the writer knows which files it may need. Where it may not write there,
    /// it opens only while nobody writes, and nobody can until it is closed.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        if read_only {
            self.create_if_missing = false;
        }
        self
    }

    /// Opens a database with a damaged log for reading only: damaged frames are passed over, and sound ones after them
    /// are read. [`Database::damage`](crate::Database::damage) lists what was passed over. Newer batches may then be
    /// there without older ones: copy what is intact to a new database, and go on with that.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        if salvage { self.read_only(true) } else { self }
    }

    /// Runs in another environment than the machine's own: in memory, or in simulation.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// For a database to which more may come, however long nothing does.
    pub(crate) fn never_idle(mut self) -> Self {
        self.is_never_idle = true;
        self
    }

    /// For a database that follows another.
    pub(crate) fn following(mut self) -> Self {
        self.role = Role::Follower;
        self
    }

    /// Durability of what is written without saying which.
    pub(crate) fn usual_durability(&self) -> Durability {
        self.durability.unwrap_or(if self.log { Durability::default() } else { Durability::Memory })
    }

    /// What the database may take; in a pool what one of several busy ones usually does.
    pub(crate) fn memory_limit_bytes(&self) -> u64 {
        let usual = self.pool.as_ref().map_or(MEMORY_LIMIT_BYTES, Pool::usual_share_bytes);
        self.memory_limit_bytes.unwrap_or(usual)
    }

    /// The size of one write buffer that these options come to, in whole blocks, where all tables have this layout.
    pub fn buffer_bytes(&self, layout: Layout) -> u64 {
        self.division().buffers(layout.keeps_in_memory()).bytes
    }

    /// How many files are kept open, of what the process may have open where that is known.
    pub(crate) fn open_files(&self, process_max: Option<usize>) -> usize {
        let part = process_max.unwrap_or(PROCESS_FILES) / OPEN_FILES_PART;
        self.open_files_max.unwrap_or(part.clamp(OPEN_FILES_MIN, OPEN_FILES))
    }

    /// Memory for what one transaction has read, where the database may take this much now.
    pub(crate) fn transaction_read_bytes(&self, division: &Division) -> u64 {
        self.transaction_read_bytes.unwrap_or(division.transaction_read_bytes())
    }

    /// How many compactors there are. Of a pool's threads each may work for one database.
    pub(crate) fn compactors(&self) -> usize {
        let usual = self.pool.as_ref().map_or(BACKGROUND_THREADS_MIN, Pool::threads);
        self.background_threads.unwrap_or(usual)
    }

    /// What is not given and depends on the machine is as it should be on one of this many cores: no more compactors than
    /// there is memory for what each reads and writes. A pool was told.
    pub(crate) fn fit_to(&mut self, cores: usize) {
        if self.pool.is_some() {
            return;
        }
        let roomy = usize::try_from(self.memory_limit_bytes() / COMPACTOR_BYTES).unwrap_or(usize::MAX);
        let threads = cores.min(roomy).clamp(BACKGROUND_THREADS_MIN, BACKGROUND_THREADS_MAX);
        self.background_threads.get_or_insert(threads);
    }
}
