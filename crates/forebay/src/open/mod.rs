//! Opening: make a database if there is none, else read the superblock, replay the manifest, read the log back; then
//! see to it that what was read is durable, clear away what a crash left, and only then make anything new. So an
//! opening that fails leaves no more than it found, and a full disk is cleared before it is asked for room. Opening
//! after any crash needs no flags.

mod clear;
mod destroy;
mod dump;
mod enter;
mod evidence;
mod read_back;
mod reload;
mod renewing;
mod salvage;
mod start;
mod verify;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::fs::{BoundedFs, GatedFs};
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::{Env, FileLock, FileSystem, SteadyClock};
use forebay_layouts::DataFile;
use forebay_store::buffer::ArenaPool;
use forebay_store::log::recover::{Extent, LogFiles};
use forebay_store::log::{Log, PreparedSegment, Writes};
use forebay_store::manifest::{AppendError, Change, Current, Edit, Manifest, Superblock};
use forebay_store::salvage::Gaps;
use forebay_store::{Metrics, WriteBuffer, names};

use crate::context::{CLOSED, Context, Health, unlock};
use crate::engine::Engine;
use crate::options::Options;
use crate::pool::Limit;
use crate::versions::{Replay, RetainedSegment, Retired, State, VersionSet, Versions, retained_segments};

pub(crate) use clear::{Listing, clear_away, is_ours, remove_all};
pub(crate) use destroy::{Made, destroy, remove_files};
pub(crate) use dump::dump;
pub use dump::{Dumped, DumpedEntry};
pub(crate) use enter::enter;
use enter::of_path;
pub(crate) use evidence::{Evidence, live_files};
pub(crate) use read_back::{ReadBack, Reader, SURPLUS_BUFFERS, load_buffer};
pub(crate) use salvage::salvage;
pub(crate) use start::start;
pub(crate) use verify::verify;
pub use verify::{Damage, VerifyReport};

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Where the database's files are, if options agree with each other: behind a gate, and few are open at a time. Its wall
/// clock never goes back.
fn environment(dir: &Path, options: &Options) -> Result<(Env, Arc<GatedFs>, Arc<SteadyClock>)> {
    options.validate()?;
    let env = match &options.pool {
        Some(pool) => pool.environment(options.env.clone(), &dir.display().to_string()),
        None => options.env.clone().unwrap_or_else(Env::real),
    };
    let gate = GatedFs::new(Arc::clone(&env.fs), CLOSED);
    let files_max = options.open_files(env.fs.process_files_max());
    let clock = Arc::new(SteadyClock::new(Arc::clone(&env.clock)));
    let env = Env { fs: BoundedFs::new(gate.clone(), files_max), clock: clock.clone(), ..env };
    Ok((env, gate, clock))
}

/// A database that was opened, and is at rest yet.
pub(crate) struct Opened {
    pub(crate) engine: Arc<Engine>,
    /// What its log has that is to be read back yet.
    pub(crate) pending: VecDeque<Extent>,
    pub(crate) lock: Option<FileLock>,
    pub(crate) made: Made,
}

/// Opens or makes the database at `dir`.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<Opened> {
    let (env, gate, clock) = environment(dir, &options)?;
    options.fit_to(env.jobs.parallelism());
    // Whatever becomes the working directory later.
    let dir = &*env.fs.absolute(dir).map_err(|error| of_path(&*env.fs, dir, error))?;
    let (lock, made) = enter(&env, dir, &options)?;
    debug_assert!(lock.is_some() || options.salvage, "only what is damaged may lack its lock");
    debug_assert!(made == Made::Nothing || options.create_if_missing, "only what was wanted is made");
    let (engine, pending) = read(&env, gate.clone(), &clock, dir, options)
        .inspect_err(|_| drop(made.take_back(gate.behind(), dir)))?;
    Ok(Opened { engine, pending, lock, made })
}

/// Reads what the directory has, and makes what work begins with.
fn read(
    env: &Env,
    gate: Arc<GatedFs>,
    clock: &SteadyClock,
    dir: &Path,
    options: Options,
) -> Result<(Arc<Engine>, VecDeque<Extent>)> {
    let gaps = Arc::new(Gaps::default());
    let superblock = superblock(&*env.fs, dir, &options, &gaps)?;
    let (env, encryption) = unlock(env, dir, &options, &superblock)?;
    let env = &env;
    let limit = Limit::new(&options, dir, &env.jobs)?;
    let (fs, metrics) = (&*env.fs, Arc::new(Metrics::within(limit.bytes())));
    let (closed, manifest, mut replay) = roots(env, dir, &options, &superblock, &metrics, &gaps)?;
    clock.raise(replay.clock_milliseconds);
    let listing = Listing::read(fs, dir)?;
    replay.lists.next_id.store(replay.next_id.max(listing.highest_id() + 1), Ordering::Relaxed);

    let keeps_records = replay.tables.values().any(|table| table.options.layout.keeps_in_memory());
    let buffers = options.divided(limit.bytes()).buffers(keeps_records);
    let pool = ArenaPool::new(buffers.bytes as usize, buffers.count);
    let files = LogFiles { fs, dir, secret: superblock.log_secret, jobs: &env.jobs };
    let reader = Reader { env, files, pool: &pool, buffers, options: &options, closed };
    let live = live_files(&replay);
    let mut read = read_log(&reader, &mut replay, &listing, &live, manifest.as_ref())?;
    let retained =
        retained_segments(&replay.lists, &listing.logs, &replay.log, &read.retained, superblock.log_secret)?;
    read.recovered.gaps.drain(..).for_each(|gap| gaps.note(gap));
    let (log, active, manifest) = if options.read_only {
        (None, WriteBuffer::never_filled(), None)
    } else {
        let mut manifest = manifest.ok_or_else(|| Error::bug("a salvaged database is read-only"))?;
        let is_noted = make_manifest_durable(fs, dir, &mut manifest, closed.is_none())?;
        clear_away(fs, dir, &listing, &live, (replay.log.low.0, &read.needs(&retained)), manifest.id())?;
        superblock.keep_spare(fs, dir)?;
        take_over(&reader, &mut replay, &mut manifest, &mut read, is_noted)?;
        let (log, active) = begin(&reader, &replay, &superblock, read.recovered.last_sequence)?;
        manifest.keep_tail();
        (Some(log), active, Some(manifest))
    };
    let (sealed, pending) = (read.buffers.into_iter().rev().collect(), read.pending);
    let version_set = version_set_of(&replay, retained, manifest);
    let state = State { active, sealed, tables: replay.tables, frozen: BTreeSet::new(), is_frozen: false };
    let context = Context {
        dir: dir.to_path_buf(),
        superblock,
        encryption,
        log,
        pool,
        metrics,
        gaps,
        gate,
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        closing: AtomicBool::new(false),
        keeps_records: AtomicBool::new(keeps_records),
        health: Health::new(options.compactors()),
        env: env.clone(),
        options,
        limit,
    };
    let versions = Versions::new(Arc::new(context), version_set, state, replay.lists, replay.trees);
    let engine = Arc::new(Engine::new(versions));
    // Before any filter is read, so that none need stay in memory whole before it is made thinner.
    engine.memory.begin();
    engine.versions.weigh();
    engine.versions.lock().weigh_savepoints();
    Ok((engine, pending))
}

/// What the manifest says, and the last record, if the database was closed in order. Where it is salvaged there is no
/// manifest to go on with.
fn roots(
    env: &Env,
    dir: &Path,
    options: &Options,
    superblock: &Superblock,
    metrics: &Arc<Metrics>,
    gaps: &Arc<Gaps>,
) -> Result<(Option<u64>, Option<Manifest>, Replay)> {
    let fs = &*env.fs;
    let mut replay = Replay::new(env, dir, options, superblock.hash_seed, metrics);
    if options.salvage {
        replay.lists.salvage = Some(Arc::clone(gaps));
        let ids = Listing::read(fs, dir)?.manifests;
        return salvage(fs, dir, ids, &mut replay, gaps).map(|closed| (closed, None, replay));
    }
    let current = Current::read(fs, dir).map_err(Error::or_missing)?;
    let opened = Manifest::open(fs, dir, &current, !options.read_only, Arc::clone(metrics));
    let (manifest, edits) = opened.map_err(Error::or_missing)?;
    let applied = edits.into_iter().try_for_each(|edit| replay.apply(edit)).and_then(|()| replay.finish());
    applied.map_err(|error| error.read_from(manifest.path()))?;
    Ok((current.closed.map(|closed| closed.last_sequence), Some(manifest), replay))
}

/// The superblock; where it is salvaged, its spare at need. Both are written by who makes the database, and never
/// again: with another database's, all checksums of the log and all hashes of keys are other ones, and what is whole
/// looks damaged, or is not found.
fn superblock(fs: &dyn FileSystem, dir: &Path, options: &Options, gaps: &Gaps) -> Result<Superblock> {
    let (path, spare_path) = (dir.join(names::SUPERBLOCK), dir.join(names::SUPERBLOCK_SPARE));
    let spare = Superblock::read_spare(fs, dir);
    let superblock = match Superblock::read(fs, dir) {
        Err(error) if options.salvage && gaps.pass_over(&path, &error, None) => return spare,
        read => read?,
    };
    match spare {
        Ok(spare) if spare != superblock => {
            let (name, reason) = (
                names::SUPERBLOCK_SPARE,
                "belong to two databases; move away the one that does not belong here",
            );
            Err(Error::corruption(&path, 0, format!("this superblock and {name} {reason}")))
        }
        Err(error) if options.salvage && !error.is_not_found() => {
            gaps.pass_over(&spare_path, &error, None);
            Ok(superblock)
        }
        _ => Ok(superblock),
    }
}

/// What the log has, if nothing tells that the manifest has lost edits.
fn read_log(
    reader: &Reader<'_>,
    replay: &mut Replay,
    listing: &Listing,
    live: &BTreeMap<u64, DataFile>,
    manifest: Option<&Manifest>,
) -> Result<ReadBack> {
    let unclean = manifest.filter(|_| reader.closed.is_none());
    let evidence = unclean.map(|manifest| Evidence { manifest, next_table: replay.next_table });
    evidence.iter().try_for_each(|evidence| evidence.of_files(live, listing))?;
    let read = reader.read(replay, &listing.logs_from(replay.log.low.0))?;
    evidence.iter().try_for_each(|evidence| evidence.of_tables(read.last_table))?;
    Ok(read)
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
    match manifest.tell(fs, dir).map_err(AppendError::into_cause) {
        Err(error) if says_so && error.is_no_space() => return Ok(false),
        noted => noted?,
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
        remove_all(fs, dir, folded.iter().map(|extent| names::log(dir, extent.id)))?;
    }
    Ok(())
}

/// The version set of what was replayed. No list is opened for it: there may be very many.
fn version_set_of(
    replay: &Replay,
    retained: BTreeMap<u64, RetainedSegment>,
    manifest: Option<Manifest>,
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
    };
    for table in replay.tables.values() {
        version_set.refer(table.version.files().into_iter().map(|file| (file, 1)).collect());
    }
    let kept = replay.savepoints.values().flat_map(|savepoint| savepoint.files());
    version_set.refer(kept.map(|file| (file, 1)).collect());
    version_set.references.values().for_each(|(file, _)| file.found());
    version_set
}
