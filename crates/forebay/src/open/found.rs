//! What a directory has: what its manifest says, and what its log has beyond that. Nothing is changed by looking.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::{Error, Result};
use forebay_env::{Access, Env, FileSystem};
use forebay_layouts::DataFile;
use forebay_store::buffer::ArenaPool;
use forebay_store::log::recover::LogFiles;
use forebay_store::manifest::{Current, Edit, Manifest, Superblock};
use forebay_store::salvage::Gaps;
use forebay_store::{Metrics, names};

use crate::context::{Encryption, unlock};
use crate::open::{Evidence, Listing, ReadBack, Reader, live_files, salvage};
use crate::options::{Buffers, Options};
use crate::pool::Limit;
use crate::versions::{Replay, RetainedSegment, measure_kept, retained_segments};

/// From here on ids are those of lists that a reader has in memory.
const READERS_IDS: u64 = 1 << 62;

/// Where a database is read.
pub(super) struct Unlocked {
    pub(super) superblock: Superblock,
    /// Its files by their keys, where they are encrypted.
    pub(super) env: Env,
    pub(super) encryption: Option<Encryption>,
    pub(super) gaps: Arc<Gaps>,
}

/// The database of `dir`, by the keys that options give.
pub(super) fn unlocked(env: &Env, dir: &Path, options: &Options) -> Result<Unlocked> {
    let gaps = Arc::new(Gaps::default());
    let superblock = superblock(&*env.fs, dir, options, &gaps)?;
    let (env, encryption) = unlock(env, dir, options, &superblock, &gaps)?;
    debug_assert_eq!(encryption.is_some(), superblock.is_encrypted, "without its keys nothing of it is read");
    Ok(Unlocked { superblock, env, encryption, gaps })
}

/// Who looks, and where.
pub(crate) struct Looking<'a> {
    pub(crate) env: &'a Env,
    pub(crate) dir: &'a Path,
    pub(crate) options: &'a Options,
    pub(crate) superblock: &'a Superblock,
    pub(crate) limit: &'a Limit,
    pub(crate) metrics: &'a Arc<Metrics>,
    pub(crate) gaps: &'a Arc<Gaps>,
    /// Whoever has looked before shares what is the same by now.
    pub(crate) before: Option<(&'a Replay, &'a Arc<ArenaPool>)>,
}

impl<'a> Looking<'a> {
    /// Looks for the first time.
    pub(super) fn first(
        unlocked: &'a Unlocked,
        dir: &'a Path,
        options: &'a Options,
        limit: &'a Limit,
        metrics: &'a Arc<Metrics>,
    ) -> Self {
        let Unlocked { superblock, env, gaps, .. } = unlocked;
        Self { env, dir, options, superblock, limit, metrics, gaps, before: None }
    }
}

/// See the module.
pub(crate) struct Found {
    /// The last record, if the database was closed in order.
    pub(crate) closed: Option<u64>,
    /// None where it is salvaged.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) replay: Replay,
    pub(crate) listing: Listing,
    pub(crate) live: BTreeMap<u64, DataFile>,
    pub(crate) read: ReadBack,
    pub(crate) retained: BTreeMap<u64, RetainedSegment>,
    pub(crate) pool: Arc<ArenaPool>,
    /// Whether tables keep records in memory.
    pub(crate) keeps_records: bool,
    /// The number up to which records are known to survive a power loss.
    pub(crate) durable: u64,
    buffers: Buffers,
}

impl Found {
    /// How its log is read.
    pub(crate) fn reader<'a>(&self, looking: &Looking<'a>) -> Reader<'a> {
        let Looking { env, dir, options, .. } = *looking;
        let files = LogFiles { fs: &*env.fs, dir, secret: looking.superblock.log_secret, jobs: &env.jobs };
        let (pool, closed) = (Arc::clone(&self.pool), self.closed);
        Reader { env, files, pool, buffers: self.buffers, options, closed, is_live: false }
    }
}

/// Looks. Where somebody may be writing, what is only half there is no damage.
pub(crate) fn look(looking: &Looking<'_>, is_live: bool) -> Result<Found> {
    let Looking { env, dir, options, superblock, limit, metrics, gaps, before } = *looking;
    let fs = &*env.fs;
    if before.is_some() && Superblock::read(fs, dir)? != *superblock {
        let dir = dir.display();
        return Err(Error::NotFound(format!("{dir} has another database by now; open that")));
    }
    let mut replay = match before {
        Some((before, _)) => before.anew(),
        None => Replay::new(env, dir, options, superblock.hash_seed, metrics),
    };
    let (closed, manifest, mut durable) = roots(looking, &mut replay)?;
    let listing = Listing::read(fs, dir)?;
    // What a reader has in memory alone must not be taken for what the writer makes.
    let least = if options.read_only { READERS_IDS } else { listing.highest_id() + 1 };
    let next_id = replay.next_id.max(least).max(replay.lists.next_id.load(Ordering::Relaxed));
    debug_assert!(!options.read_only || next_id >= READERS_IDS, "a reader's ids are none of the writer's");
    replay.lists.next_id.store(next_id, Ordering::Relaxed);

    if limit.seat().is_some() && !options.read_only {
        limit.ask_for_log(log_bytes(fs, dir, &listing.logs_from(replay.log.flushed.0)));
        metrics.memory.set_limit(limit.bytes());
    }
    let keeps_records = replay.tables.values().any(|table| table.options.layout.keeps_in_memory());
    let buffers = options.divided(limit.bytes()).buffers(keeps_records);
    let pool = match before {
        Some((_, pool)) => Arc::clone(pool),
        None => ArenaPool::new(buffers.bytes as usize, buffers.count),
    };
    let files = LogFiles { fs, dir, secret: superblock.log_secret, jobs: &env.jobs };
    let reader = Reader { env, files, pool: Arc::clone(&pool), buffers, options, closed, is_live };
    let live = live_files(&replay);
    let mut read = read_log(&reader, &mut replay, &listing, &live, manifest.as_ref())?;
    let secret = superblock.log_secret;
    let mut retained = retained_segments(&replay.lists, &listing.logs, &replay.log, &read.retained, secret)?;
    if !options.read_only {
        let keep_bytes = options.keep_changes_bytes.unwrap_or(replay.feed.keep_bytes);
        measure_kept(&replay.lists, &replay.log, secret, keep_bytes, &mut retained);
    }
    read.recovered.gaps.drain(..).for_each(|gap| gaps.note(gap));
    durable = durable.max(replay.log.vouched);
    Ok(Found {
        closed,
        manifest,
        replay,
        listing,
        live,
        read,
        retained,
        pool,
        keeps_records,
        durable,
        buffers,
    })
}

/// What the manifest says; the last record, if the database was closed in order; and the number up to which records are
/// known to be durable. Where it is salvaged there is no manifest to go on with.
fn roots(looking: &Looking<'_>, replay: &mut Replay) -> Result<(Option<u64>, Option<Manifest>, u64)> {
    let Looking { env, dir, options, metrics, gaps, .. } = *looking;
    let fs = &*env.fs;
    if options.salvage {
        replay.lists.salvage = Some(Arc::clone(gaps));
        let ids = Listing::read(fs, dir)?.manifests;
        return salvage(fs, dir, ids, replay, gaps).map(|closed| (closed, None, 0));
    }
    let current = Current::read(fs, dir).map_err(Error::or_missing)?;
    let opened = Manifest::open(fs, dir, &current, !options.read_only, Arc::clone(metrics));
    let (manifest, edits) = opened.map_err(Error::or_missing)?;
    // Each edit was durable before the next one was written; of the last one that is not known, unless all is as it was.
    let mut durable = current.closed.map_or(0, |closed| closed.last_sequence);
    let applied = edits.into_iter().try_for_each(|edit| {
        durable = durable.max(replay.log.flushed.1);
        let is_all = matches!(edit, Edit::Snapshot(_));
        replay.apply(edit)?;
        durable = if is_all { durable.max(replay.log.flushed.1) } else { durable };
        Ok(())
    });
    let applied = applied.and_then(|()| replay.finish());
    applied.map_err(|error| error.read_from(manifest.path()))?;
    Ok((current.closed.map(|closed| closed.last_sequence), Some(manifest), durable))
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

/// How long these segments are. What cannot be read is told of once it is read.
fn log_bytes(fs: &dyn FileSystem, dir: &Path, segments: &[u64]) -> u64 {
    let length = |id: u64| fs.open_read(&names::log(dir, id), Access::Buffered)?.len();
    segments.iter().map(|id| length(*id).unwrap_or(0)).sum()
}

/// What the log has, if nothing tells that the manifest has lost edits.
fn read_log(
    reader: &Reader<'_>,
    replay: &mut Replay,
    listing: &Listing,
    live: &BTreeMap<u64, DataFile>,
    manifest: Option<&Manifest>,
) -> Result<ReadBack> {
    let unclean = manifest.filter(|_| reader.closed.is_none() && !reader.is_live);
    let evidence = unclean.map(|manifest| Evidence { manifest, next_table: replay.next_table });
    evidence.iter().try_for_each(|evidence| evidence.of_files(live, listing))?;
    let read = reader.read(replay, &listing.logs_from(replay.log.low.0))?;
    evidence.iter().try_for_each(|evidence| evidence.of_tables(read.last_table))?;
    Ok(read)
}
