//! Opening: make a database if there is none, else read the superblock, replay the manifest, read the log back; then
//! see to it that what was read is durable, clear away what a crash left, and only then make anything new. So an
//! opening that fails leaves no more than it found, and a full disk is cleared before it is asked for room. Opening
//! after any crash needs no flags.

mod beside;
mod clear;
mod destroy;
mod dump;
mod enter;
mod evidence;
mod feed;
mod found;
mod left;
mod read_back;
mod refresh;
mod reload;
mod renewing;
mod salvage;
mod start;
mod verify;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use forebay_base::{Error, Result, planted};
use forebay_env::fs::{BoundedFs, CachedFs, GatedFs};
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::{Env, FileLock, FileSystem, SteadyClock};
use forebay_store::log::recover::{Extent, LogFiles};
use forebay_store::log::{Log, PreparedSegment, Writes};
use forebay_store::manifest::{AppendError, Change, Edit, Feed, Manifest, Superblock};
use forebay_store::{Lease, Metrics, WriteBuffer, names};

use crate::context::{Context, Health};
use crate::engine::Engine;
use crate::options::{Options, Role};
use crate::pool::Limit;
use crate::versions::{Replay, RetainedSegment, Retired, State, VersionSet, Versions};

pub(crate) use beside::is_written;
pub(crate) use clear::{Listing, clear_away, is_ours, remove_all};
pub(crate) use destroy::{Made, destroy, remove_files};
pub(crate) use dump::dump;
pub use dump::{Dumped, DumpedEntry};
use enter::of_path;
pub(crate) use enter::{Hold, enter};
pub(crate) use evidence::{Evidence, live_files};
use feed::take_up_feed;
use found::{Found, Looking, look, unlocked};
pub(crate) use read_back::{ReadBack, Reader, SURPLUS_BUFFERS, load_buffer};
pub(crate) use refresh::Refresher;
pub(crate) use salvage::salvage;
pub(crate) use start::start;
pub(crate) use verify::verify;
pub use verify::{Damage, VerifyReport};

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Where a database is opened.
struct Surroundings {
    /// Its files are behind the gate, and few are open at a time. Its wall clock never goes back.
    env: Env,
    gate: Arc<GatedFs>,
    clock: Arc<SteadyClock>,
    /// Its files as they are.
    files: Arc<dyn FileSystem>,
}

/// Those of `dir`, if options agree with each other.
fn surroundings(dir: &Path, options: &Options) -> Result<Surroundings> {
    options.validate()?;
    let env = match &options.pool {
        Some(pool) => pool.environment(options.env.clone(), &dir.display().to_string()),
        None => options.env.clone().unwrap_or_else(Env::real),
    };
    let files = Arc::clone(&env.fs);
    let ways = if options.system_cache { CachedFs::new(Arc::clone(&files)) } else { Arc::clone(&files) };
    let gate = GatedFs::new(ways, Error::CLOSED);
    let files_max = options.open_files(env.fs.process_files_max());
    let clock = Arc::new(SteadyClock::new(Arc::clone(&env.clock)));
    let env = Env { fs: BoundedFs::new(gate.clone(), files_max), clock: clock.clone(), ..env };
    Ok(Surroundings { env, gate, clock, files })
}

/// A database that was opened, and is at rest yet.
pub(crate) struct Opened {
    pub(crate) engine: Arc<Engine>,
    /// What its log has that is to be read back yet.
    pub(crate) pending: VecDeque<Extent>,
    pub(crate) lock: Option<FileLock>,
    pub(crate) made: Made,
    /// Where somebody else may write it.
    pub(crate) refresher: Option<Refresher>,
}

/// Opens or makes the database at `dir`.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<Opened> {
    let Surroundings { env, gate, clock, files } = surroundings(dir, &options)?;
    options.fit_to(env.jobs.parallelism());
    // Whatever becomes the working directory later.
    let dir = &*env.fs.absolute(dir).map_err(|error| of_path(&*env.fs, dir, error))?;
    let (hold, made) = enter(&env, &files, dir, &options)?;
    debug_assert!(
        !matches!(hold, Hold::Nothing) || options.salvage,
        "only what is damaged may lack its lock"
    );
    debug_assert!(made == Made::Nothing || options.create_if_missing, "only what was wanted is made");
    let (lock, lease) = match hold {
        Hold::Lock(lock) => (Some(lock), None),
        Hold::Lease(lease) => (None, Some(lease)),
        Hold::Nothing => (None, None),
    };
    let (engine, pending, refresher) = read(&env, gate.clone(), clock, dir, options, lease)
        .inspect_err(|_| drop(made.take_back(gate.behind(), dir)))?;
    Ok(Opened { engine, pending, lock, made, refresher })
}

/// Reads what the directory has, and makes what work begins with.
fn read(
    env: &Env,
    gate: Arc<GatedFs>,
    clock: Arc<SteadyClock>,
    dir: &Path,
    options: Options,
    lease: Option<Lease>,
) -> Result<(Arc<Engine>, VecDeque<Extent>, Option<Refresher>)> {
    let unlocked = unlocked(env, dir, &options)?;
    let (env, superblock) = (unlocked.env.clone(), unlocked.superblock);
    let limit = Limit::new(&options, dir, &env)?;
    let (fs, metrics) = (&*env.fs, Arc::new(Metrics::within(limit.bytes())));
    let looking = Looking::first(&unlocked, dir, &options, &limit, &metrics);
    let found = if lease.is_some() { beside::look_beside(&looking)? } else { look(&looking, false)? };
    clock.raise(found.replay.clock_milliseconds);
    let (reader, durable, keeps_records) = (found.reader(&looking), found.durable, found.keeps_records);
    let Found { closed, manifest, mut replay, listing, live, mut read, retained, pool, .. } = found;
    let last_sequence = read.recovered.last_sequence;
    let (mut followed, mut log, mut active, mut owed) = (None, None, WriteBuffer::never_filled(), None);
    let manifest = if options.read_only {
        followed = manifest.filter(|_| lease.is_some());
        None
    } else {
        let mut manifest = manifest.ok_or_else(|| Error::bug("a salvaged database is read-only"))?;
        let is_noted = make_manifest_durable(fs, dir, &mut manifest, closed.is_none())?;
        let trash = Arc::clone(&replay.lists.trash);
        trash.begin(manifest.place());
        let needed = (&replay.log, &read.needs(&retained));
        clear_away(fs, dir, &trash, &listing, &live, needed, manifest.id())?;
        superblock.keep_spare(fs, dir)?;
        unlocked.encryption.as_ref().map_or(Ok(()), |encryption| encryption.vouch(fs, dir))?;
        take_over(&reader, &mut replay, &mut manifest, &mut read, is_noted)?;
        owed = take_up_feed(&reader, &superblock, &mut replay, &mut manifest, last_sequence)?;
        let (begun, first) = begin(&reader, &replay, &superblock, last_sequence)?;
        (log, active) = (Some(begun), first);
        manifest.keep_tail();
        Some(manifest)
    };
    let (sealed, pending): (Vec<_>, _) = (read.buffers.into_iter().rev().collect(), read.pending);
    let version_set = version_set_of(&replay, retained, manifest, owed);
    let (tables, lists, trees) = (replay.tables.clone(), replay.lists.clone(), replay.trees.clone());
    let follow = |manifest| Refresher::new(manifest, replay, clock, sealed.clone(), last_sequence);
    let mut refresher = followed.map(follow).transpose()?;
    let state = State { active, sealed, tables, frozen: BTreeSet::new(), is_frozen: false };
    let context = Context {
        dir: dir.to_path_buf(),
        superblock,
        encryption: unlocked.encryption,
        log,
        pool,
        metrics,
        gaps: unlocked.gaps,
        gate,
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        closing: AtomicBool::new(false),
        keeps_records: AtomicBool::new(keeps_records),
        follows: AtomicBool::new(options.role == Role::Follower),
        health: Health::new(options.compactors()),
        lease,
        answer: OnceLock::new(),
        seen_durable: AtomicU64::new(durable),
        env,
        options,
        limit,
    };
    let engine = Arc::new(Engine::new(Versions::new(Arc::new(context), version_set, state, lists, trees)));
    begin_to_share(&engine);
    // So that what is seen was the case at one moment.
    refresher.iter_mut().try_for_each(|refresher| refresher.refresh(&engine).map(drop))?;
    Ok((engine, pending, refresher))
}

/// Shares memory before any filter is read, so that none need stay in memory whole before it is made thinner.
fn begin_to_share(engine: &Engine) {
    engine.memory.begin();
    engine.versions.weigh();
    engine.versions.lock().weigh_savepoints();
    if engine.context.options.read_only {
        engine.memory.tell_held();
    }
}

/// The log, in the segment that is filled first, and the buffer of that.
fn begin(
    reader: &Reader<'_>,
    replay: &Replay,
    superblock: &Superblock,
    last_sequence: u64,
) -> Result<(Log, Arc<WriteBuffer>)> {
    let Reader { env, pool, options, .. } = reader;
    let lists = &replay.lists;
    let first = PreparedSegment::first(&*env.fs, &lists.dir, lists.new_id(), pool)?;
    let active = Arc::clone(first.buffer());
    let writes = if options.log { Writes::Always } else { Writes::OnRequest };
    let metrics = Arc::clone(&lists.metrics);
    Ok((Log::new(first, last_sequence, writes, superblock.log_secret, metrics), active))
}

/// Makes durable what the manifest says, and that it is the one that counts, before anything is done because of it.
/// After a crash nobody knows whether the disk has what the system's memory has. Says whether it was noted that the
/// database is open.
fn make_manifest_durable(
    fs: &dyn FileSystem,
    dir: &Path,
    manifest: &mut Manifest,
    is_unclean: bool,
) -> Result<bool> {
    manifest.truncate_tail()?;
    if planted::is("manifest-not-renewed") {
        return Ok(is_unclean);
    }
    if is_unclean {
        manifest.renew()?;
    }
    // Its name, too: a sync of the directory may have failed, and the next one tells nothing of that.
    let is_noted = is_unclean && (planted::is("name-not-renewed") || note_open(fs, dir, manifest, true)?);
    fs.sync_dir(dir)?;
    Ok(is_noted)
}

/// Notes that the database is open from here on: what is done from then is acted upon. `false` where the disk has no
/// room for that and it says so already.
fn note_open(fs: &dyn FileSystem, dir: &Path, manifest: &mut Manifest, says_so: bool) -> Result<bool> {
    match manifest.tell(fs, dir) {
        Err(AppendError::Refused(error)) if says_so && error.is_no_space() => return Ok(false),
        noted => noted.map_err(AppendError::into_cause)?,
    }
    if says_so {
        // Damage to the last edit must not pass for a tear from here on. Not before: a `CURRENT` of a database that was
        // closed tells how long the manifest is, and its last edit is sealed.
        manifest.seal();
    }
    Ok(true)
}

/// Notes that the database is open from here on, and makes durable what the log has. If it was folded, notes where it
/// begins now; then what was folded goes. In this order: there is room for it unfolded where there is none for both.
fn take_over(
    reader: &Reader<'_>,
    replay: &mut Replay,
    manifest: &mut Manifest,
    read: &mut ReadBack,
    is_noted: bool,
) -> Result<()> {
    let LogFiles { fs, dir, .. } = reader.files;
    if !is_noted {
        note_open(fs, dir, manifest, reader.closed.is_none())?;
    }
    let folded = reader.keep(replay, read)?;
    if let (Some(first), false) = (read.pending.front(), folded.is_empty()) {
        debug_assert!(
            folded.iter().all(|extent| extent.id < first.id),
            "what is folded stands in later segments"
        );
        replay.log.begin_at(first.id);
        let log = Edit::Change(Change { log: Some(replay.log), ..Change::default() });
        manifest.append(&log).map_err(AppendError::into_cause)?;
        replay.lists.trash.reach(manifest.place());
        // At once, whoever reads them: nothing tells them from what is kept once more is flushed. Who has read them has
        // what they hold, and begins anew behind this edit.
        remove_all(fs, dir, folded.iter().map(|extent| names::log(dir, extent.id)))?;
    }
    Ok(())
}

/// The version set of what was replayed. No list is opened for it: there may be very many.
fn version_set_of(
    replay: &Replay,
    retained: BTreeMap<u64, RetainedSegment>,
    manifest: Option<Manifest>,
    owed_feed: Option<Feed>,
) -> VersionSet {
    let mut version_set = VersionSet {
        manifest,
        references: BTreeMap::new(),
        retired: Retired::default(),
        busy: BTreeMap::new(),
        log: replay.log,
        retained,
        log_is_ahead: false,
        next_table: replay.next_table,
        savepoints: replay.savepoints.clone(),
        rollbacks: 0,
        rolled_back: replay.rolled_back,
        clock_milliseconds: replay.clock_milliseconds,
        feed: replay.feed.clone(),
        owed_feed,
    };
    for table in replay.tables.values() {
        version_set.refer(table.version.files().into_iter().map(|file| (file, 1)).collect());
    }
    let kept = replay.savepoints.values().flat_map(|savepoint| savepoint.files());
    version_set.refer(kept.map(|file| (file, 1)).collect());
    version_set.references.values().for_each(|(file, _)| file.found());
    version_set
}
