//! Opening: make a database if there is none, else read the superblock, replay the manifest, read the log
//! back, clear away what a crash left. Opening after any crash needs no flags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::sync::{Mutex, RwLock};
use forebay_env::{Access, Arena, Env, FileLock, FileSystem, LockMode};
use forebay_store::buffer::ArenaPool;
use forebay_store::log::recover::{Recovered, Segment, recover};
use forebay_store::log::{Log, PrepareError, Rotation, frame};
use forebay_store::manifest::{AppendError, Current, Edit, LogMark, Manifest, Snapshot, Superblock};
use forebay_store::{Metrics, WriteBuffer, names};

use crate::Options;
use crate::engine::{Engine, State};
use crate::filters::bits_per_key;
use crate::held::{Held, is_kept, kept_segments};
use crate::ledger::Ledger;
use crate::pace::Pace;
use crate::replay::Replay;

/// The id of a new database's manifest.
const FIRST_MANIFEST: u64 = 1;
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Opens or makes the database at `dir`.
pub(crate) fn open(dir: &Path, options: Options) -> Result<Arc<Engine>> {
    options.validate()?;
    let env = options.env.clone().unwrap_or_else(Env::real);
    // Whatever becomes the working directory later.
    let dir = &*env.fs.absolute(dir)?;
    let lock = enter(&env, dir, &options)?;
    let (fs, metrics) = (&*env.fs, Arc::<Metrics>::default());
    let superblock = Superblock::read(fs, dir)?;
    let current = Current::read(fs, dir)?;
    let (manifest, edits) = Manifest::open(fs, dir, &current, !options.read_only, Arc::clone(&metrics))?;
    let mut replay = Replay::new(&env, dir, &options, superblock.hash_seed, &metrics);
    let applied = edits.into_iter().try_for_each(|edit| replay.apply(edit)).and_then(|()| replay.finish());
    applied.map_err(|error| Error::corruption(manifest.path(), 0, error.to_string()))?;
    let listing = Listing::read(fs, dir)?;
    replay.lists.next_id.store(replay.next_id.max(listing.highest_id() + 1), Ordering::Relaxed);

    let LogMark { low: (log_low, before), absorbed, .. } = replay.log;
    let known_durable = current.closed.map_or(absorbed.1, |closed| closed.last_sequence);
    let recovered = recover(fs, dir, &listing.logs_from(log_low), before, known_durable)?;
    let pool = ArenaPool::new(options.buffer_bytes() as usize, options.write_buffers);
    let (old, fresh): (Vec<&Segment>, _) = recovered.segments.iter().partition(|found| found.id < absorbed.0);
    old.iter().try_for_each(|segment| replay.recall(&buffer_of(segment, &pool)))?;
    let sealed = fresh.into_iter().rev().map(|segment| buffer_of(segment, &pool)).collect();
    let (log, active) = if options.read_only {
        (None, Arc::new(WriteBuffer::new(u64::MAX, Arena::new(0).0, None)))
    } else {
        clear_away(fs, dir, &listing, &replay, &recovered, manifest.id())?;
        mark_open(fs, dir, manifest.id())?;
        let first = first_segment(fs, dir, &replay, &pool)?;
        let active = Arc::clone(first.buffer());
        (Some(Log::new(first, recovered.last_sequence, Arc::clone(&metrics))), active)
    };
    // A first guess, so that filters need not be read into memory whole before they are made thinner.
    let keys = replay.tables.values().map(|table| table.catalog.records()).sum();
    replay.lists.filter_bits_max.store(bits_per_key(options.filter_bytes(), keys), Ordering::Relaxed);
    let ledger = ledger_of(&replay, &listing, &old, (!options.read_only).then_some(manifest))?;
    let state = State { active, sealed, tables: replay.tables, frozen: BTreeSet::new(), is_frozen: false };
    let engine = Arc::new(Engine {
        dir: dir.to_path_buf(),
        superblock,
        log,
        ledger: Mutex::new(ledger),
        state: RwLock::new(Arc::new(state)),
        pool,
        lists: replay.lists,
        trees: replay.trees,
        metrics,
        pace: Pace::default(),
        debt_bytes: AtomicU64::new(0),
        inherited_bytes: AtomicU64::new(u64::MAX),
        resident_bytes: AtomicU64::new(0),
        next_segment: Mutex::default(),
        spare_segment: Mutex::default(),
        troubles: Mutex::default(),
        rotating: Mutex::default(),
        compacting: Mutex::default(),
        wanted: Mutex::default(),
        rewriting: Mutex::default(),
        damage: Mutex::default(),
        help: Mutex::default(),
        merger_rests: AtomicBool::new(true),
        resting: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        pins: Mutex::default(),
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        env,
        options,
        lock: Mutex::new(Some(lock)),
    });
    engine.weigh();
    engine.weigh_savepoints(&engine.ledger.lock());
    engine.tend_filters();
    Ok(engine)
}

/// Notes which manifest counts, and that from here on the database is open.
fn mark_open(fs: &dyn FileSystem, dir: &Path, manifest: u64) -> Result<()> {
    Current { manifest, closed: None }.write(fs, dir).map_err(AppendError::into_cause)
}

/// The segment that is filled first.
fn first_segment(
    fs: &dyn FileSystem,
    dir: &Path,
    replay: &Replay,
    pool: &Arc<ArenaPool>,
) -> Result<Rotation> {
    let first = Rotation::prepare(fs, dir, replay.lists.new_id(), pool, 0, None);
    first.map_err(PrepareError::into_cause)
}

/// The write buffer that a log's segment mirrors.
fn buffer_of(segment: &Segment, pool: &Arc<ArenaPool>) -> Arc<WriteBuffer> {
    let (arena, mut appender) = pool.take(segment.bytes.len());
    appender.append(&segment.bytes);
    appender.publish();
    let buffer = WriteBuffer::new(segment.id, arena, Some(Arc::clone(pool)));
    buffer.set_cuts(segment.cuts.clone());
    Arc::new(buffer)
}

/// Segments that are absorbed and there: those that are kept for their changes, and those that were read.
fn held_of(replay: &Replay, listing: &Listing, read: &[&Segment]) -> Result<BTreeMap<u64, Held>> {
    let mut held = kept_segments(&replay.lists, &listing.logs, &replay.log)?;
    let mut before = replay.log.low.1;
    for segment in read {
        let bytes = segment.bytes.len() as u64;
        held.insert(segment.id, Held::new(&replay.lists, segment.id, before, bytes));
        before += frame::records_of(&segment.bytes);
    }
    Ok(held)
}

/// The ledger of what was replayed. Opens every list file, so that filters are in memory; a file that cannot
/// be opened answers its own lookups with the reason.
fn ledger_of(
    replay: &Replay,
    listing: &Listing,
    old: &[&Segment],
    manifest: Option<Manifest>,
) -> Result<Ledger> {
    let mut ledger = Ledger {
        manifest,
        references: BTreeMap::new(),
        busy: BTreeMap::new(),
        log: replay.log,
        held: held_of(replay, listing, old)?,
        log_is_ahead: false,
        next_table: replay.next_table,
        savepoints: replay.savepoints.clone(),
        rollbacks: 0,
    };
    for table in replay.tables.values() {
        let files = table.catalog.files();
        files.iter().for_each(|file| file.open_early());
        ledger.refer(files.into_iter().map(|file| (file, 1)).collect());
    }
    // Theirs are opened when somebody reads them.
    let kept = replay.savepoints.values().flat_map(|savepoint| savepoint.files());
    ledger.refer(kept.map(|file| (file, 1)).collect());
    ledger.references.values().for_each(|(file, _)| file.found());
    Ok(ledger)
}

/// Takes the lock, and makes the database if there is none and that is wanted.
fn enter(env: &Env, dir: &Path, options: &Options) -> Result<FileLock> {
    let fs = &*env.fs;
    let exists = fs.exists(&dir.join(names::SUPERBLOCK))?;
    if !exists {
        let names = if fs.exists(dir)? { fs.list(dir)? } else { Vec::new() };
        if names.iter().any(|name| !is_ours(name)) {
            return Err(Error::NotFound(format!(
                "{} is not a forebay database; it holds other files",
                dir.display()
            )));
        }
        // Making a database that a crash cut short leaves its first manifest at the most.
        if names
            .iter()
            .any(|name| names::parse(name).is_some_and(|file| file != (FIRST_MANIFEST, "manifest")))
        {
            let reason = "the superblock is missing, and there are lists, logs or manifests of a database";
            return Err(Error::corruption(&dir.join(names::SUPERBLOCK), 0, reason));
        }
        if !options.create_if_missing {
            return Err(Error::NotFound(format!("there is no database at {}", dir.display())));
        }
        create_dir_durably(fs, dir)?;
    }
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    let lock = fs.lock(&dir.join(names::LOCK), mode)?;
    if !fs.exists(&dir.join(names::SUPERBLOCK))? {
        let first = Edit::Snapshot(Snapshot { next_id: 2, next_table: 1, ..Snapshot::default() });
        Manifest::create(fs, dir, FIRST_MANIFEST, &first, Arc::default()).map_err(AppendError::into_cause)?;
        mark_open(fs, dir, FIRST_MANIFEST)?;
        // Last of all: from here on the directory is a database.
        Superblock { database_id: (env.entropy)(), hash_seed: (env.entropy)() }.write(fs, dir)?;
    }
    Ok(lock)
}

/// Makes a directory and its missing ancestors, whose names survive a power loss from then on.
pub(crate) fn create_dir_durably(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let parent_of = |dir: &Path| match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
        None => dir.to_path_buf(),
    };
    // Its own parent also where the directory is there already: a crash may have come before its sync.
    let mut parents = vec![parent_of(dir)];
    for ancestor in dir.ancestors().skip(1).filter(|ancestor| !ancestor.as_os_str().is_empty()) {
        if fs.exists(ancestor)? {
            break;
        }
        parents.push(parent_of(ancestor));
    }
    fs.create_dir_all(dir)?;
    parents.iter().try_for_each(|parent| fs.sync_dir(parent))
}

/// Whether a file of this name may stand in a database's directory.
pub(crate) fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".tmp").unwrap_or(name);
    matches!(stem, names::SUPERBLOCK | names::CURRENT | names::LOCK) || names::parse(stem).is_some()
}

/// The numbered files of a directory.
#[derive(Default)]
struct Listing {
    lists: Vec<u64>,
    trees: Vec<u64>,
    logs: Vec<u64>,
    manifests: Vec<u64>,
    temporary: Vec<String>,
}

impl Listing {
    fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let mut listing = Self::default();
        for name in fs.list(dir)? {
            match names::parse(&name) {
                Some((id, "list")) => listing.lists.push(id),
                Some((id, "tree")) => listing.trees.push(id),
                Some((id, "log")) => listing.logs.push(id),
                Some((id, _)) => listing.manifests.push(id),
                None if name.ends_with(".tmp") && is_ours(&name) => listing.temporary.push(name),
                None => {}
            }
        }
        listing.logs.sort_unstable();
        Ok(listing)
    }

    fn logs_from(&self, low: u64) -> Vec<u64> {
        self.logs.iter().copied().filter(|&id| id >= low).collect()
    }

    fn highest_id(&self) -> u64 {
        let Self { lists, trees, logs, manifests, .. } = self;
        [lists, trees, logs, manifests].into_iter().flatten().copied().max().unwrap_or(0)
    }
}

/// Removes what a crash left over, cuts the log's torn tail, and makes what was read back durable.
fn clear_away(
    fs: &dyn FileSystem,
    dir: &Path,
    listing: &Listing,
    replay: &Replay,
    recovered: &Recovered,
    manifest: u64,
) -> Result<()> {
    let files = replay.tables.values().flat_map(|table| table.catalog.files());
    let kept = replay.savepoints.values().flat_map(|savepoint| savepoint.files());
    let live: BTreeSet<u64> = files.chain(kept).map(|file| file.id()).collect();
    let lists = listing.lists.iter().filter(|id| !live.contains(id)).map(|&id| names::list(dir, id));
    let trees = listing.trees.iter().filter(|id| !live.contains(id)).map(|&id| names::tree(dir, id));
    let used: BTreeSet<u64> = recovered.segments.iter().map(|segment| segment.id).collect();
    let stays = |id: &u64| used.contains(id) || is_kept(&replay.log, *id);
    let logs = listing.logs.iter().filter(|id| !stays(id)).map(|&id| names::log(dir, id));
    let manifests =
        listing.manifests.iter().filter(|&&id| id != manifest).map(|&id| names::manifest(dir, id));
    let temporary = listing.temporary.iter().map(|name| dir.join(name));
    let leftover: Vec<PathBuf> = lists.chain(trees).chain(logs).chain(manifests).chain(temporary).collect();
    leftover.iter().try_for_each(|path| fs.remove(path))?;
    // Segments behind the log's end must be gone before anything numbers on from that end.
    fs.sync_dir(dir)?;
    for segment in &recovered.segments {
        let file = fs.open(&names::log(dir, segment.id), Access::Buffered)?;
        if let Some((_, end)) = recovered.cut.filter(|(id, _)| *id == segment.id) {
            file.set_len(end)?;
        }
        file.sync()?;
    }
    Ok(())
}
