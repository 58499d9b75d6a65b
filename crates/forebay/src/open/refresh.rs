//! A reader goes on to what is there by now: the edits that the manifest has got since are applied by the functions that
//! replay it, and the log is read on from where it was left. So it costs what has changed. Where that does not suffice,
//! as behind a manifest that was written anew, all is looked at once more.
//!
//! 1. Edits of the manifest, then the log, until the manifest has no more edits once the log is read. So what is seen was
//!    the case at one moment: the last record that was read, and all that edits had done by then.
//! 2. It is published: a state, and behind it the bytes of the buffer that grows.
//! 3. The lease moves on: up to where the manifest was read, or to where what is still read of before was let go of.
//!
//! **Invariant:** the lease never says more than that: files that a state has which somebody holds are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::sync::{Arc, Weak};

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_env::{SteadyClock, yield_point};
use forebay_layouts::{DataFile, WeakFile};
use forebay_store::log::{LogTail, ReadOn};
use forebay_store::manifest::{Current, Edit, Followed, Manifest};
use forebay_store::{Place, WriteBuffer};

use crate::engine::Engine;
use crate::open::beside::look_beside;
use crate::open::left::Left;
use crate::open::{Found, Listing, Looking};
use crate::versions::{Replay, RetainedSegment, SegmentFile, State, VersionSetGuard, retained_segments};

/// How often edits may come while the log is read, until what was read is good enough.
const ROUNDS_MAX: usize = 100;

/// What a reader knows of who writes.
pub(crate) struct Refresher {
    manifest: Followed,
    replay: Replay,
    clock: Arc<SteadyClock>,
    log: LogTail,
    /// Buffers that are not flushed and have records, newest first.
    buffers: Vec<Arc<WriteBuffer>>,
    /// What was let go of and may still be read.
    left: Vec<Left>,
    /// How far the manifest was read for what is published.
    published: Place,
    /// Segments that are kept, where all was looked at anew.
    retained: Option<BTreeMap<u64, RetainedSegment>>,
    /// From where on it is not known yet which are.
    retained_to: (u64, u64),
    /// The number up to which records are known to be durable.
    durable: u64,
    /// Whether what was read fits what is published: not after an error in its midst.
    is_whole: bool,
}

impl Refresher {
    /// Goes on where opening has ended. `buffers` are those that it has read, newest first.
    pub(crate) fn new(
        manifest: Manifest,
        mut replay: Replay,
        clock: Arc<SteadyClock>,
        buffers: Vec<Arc<WriteBuffer>>,
        last_sequence: u64,
    ) -> Result<Self> {
        let manifest = Followed::of(manifest)?;
        replay.begin_to_count();
        let log = LogTail::behind(buffers.first(), replay.log.flushed, last_sequence);
        let (published, retained_to) = (manifest.place(), replay.log.low);
        let (left, retained, durable, is_whole) = (Vec::new(), None, 0, true);
        Ok(Self {
            manifest,
            replay,
            clock,
            log,
            buffers,
            left,
            published,
            retained,
            retained_to,
            durable,
            is_whole,
        })
    }

    /// Has the lease say how far it was read. Where that fails more is kept than need be, and the next one tells.
    fn tell(&self, engine: &Engine) {
        let least = self.left.iter().map(|left| left.place).fold(self.published, Place::min);
        debug_assert!(least <= self.published, "a lease never says more than what was read");
        if let Some(lease) = &engine.context.lease {
            let _ = lease.move_to(least);
        }
    }

    /// See the module. Returns the number of the last record that is seen.
    pub(crate) fn refresh(&mut self, engine: &Engine) -> Result<u64> {
        let context = &engine.context;
        context.check_open()?;
        let mut is_anew = !std::mem::replace(&mut self.is_whole, false);
        if let Some(lease) = &context.lease {
            is_anew |= lease.renew(&*context.env.entropy)?;
        }
        if is_anew {
            self.begin_anew(engine)?;
        }
        let mut is_read = is_anew;
        for _ in 0..ROUNDS_MAX {
            let edits = match self.counts(engine)? {
                true => self.manifest.read_on()?,
                false => None,
            };
            if is_read && edits.as_ref().is_some_and(Vec::is_empty) {
                self.publish(engine, is_anew);
                self.is_whole = true;
                self.tell(engine);
                return Ok(self.log.last_sequence());
            }
            if !self.apply(edits)? || self.read_log(engine)? == ReadOn::Changed {
                self.begin_anew(engine)?;
                is_anew = true;
            }
            is_read = true;
        }
        let (kind, reason) =
            (ErrorKind::WouldBlock, "it grows while the log is read, each time; try again".into());
        Err(Error::Io { operation: "follow", path: self.manifest.path().to_path_buf(), kind, reason })
    }

    /// Applies edits, if there are any that can be followed.
    fn apply(&mut self, edits: Option<Vec<Edit>>) -> Result<bool> {
        let Some(edits) = edits else { return Ok(false) };
        for edit in edits {
            // It was durable before this one was written.
            self.durable = self.durable.max(self.replay.log.flushed.1);
            let applied = self.replay.read_on(edit);
            if !applied.map_err(|error| error.read_from(self.manifest.path()))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is still the manifest that counts.
    fn counts(&self, engine: &Engine) -> Result<bool> {
        let current =
            Current::read(&*engine.context.env.fs, &engine.context.dir).map_err(Error::or_missing)?;
        Ok(current.manifest == self.manifest.place().manifest)
    }

    fn read_log(&mut self, engine: &Engine) -> Result<ReadOn> {
        let (context, flushed) = (&engine.context, self.replay.log.flushed);
        let listing = Listing::read(&*context.env.fs, &context.dir)?;
        let ids = listing.logs_from(flushed.0);
        self.log.read_on(&context.log_files(), &ids, flushed, &context.pool)
    }

    /// Looks at all once more.
    fn begin_anew(&mut self, engine: &Engine) -> Result<()> {
        let context = &engine.context;
        let looking = Looking {
            env: &context.env,
            dir: &context.dir,
            options: &context.options,
            superblock: &context.superblock,
            limit: &context.limit,
            metrics: &context.metrics,
            gaps: &context.gaps,
            before: Some((&self.replay, &context.pool)),
        };
        let Found { manifest, mut replay, read, retained, durable, .. } = look_beside(&looking)?;
        let manifest = manifest.ok_or_else(|| Error::bug("a database that is followed is salvaged"))?;
        self.manifest = Followed::of(manifest)?;
        replay.begin_to_count();
        self.buffers = read.buffers.into_iter().rev().filter(|buffer| !buffer.is_empty()).collect();
        let last_sequence = read.recovered.last_sequence;
        self.log = LogTail::behind(self.buffers.first(), replay.log.flushed, last_sequence);
        self.durable = self.durable.max(durable);
        (self.retained_to, self.retained) = (replay.log.low, Some(retained));
        self.replay = replay;
        Ok(())
    }

    /// Lets everybody see what was read.
    fn publish(&mut self, engine: &Engine, is_anew: bool) {
        // Before any merge is seen that has left out what had expired.
        self.clock.raise(self.replay.clock_milliseconds);
        let versions = &engine.versions;
        let mut version_set = versions.lock();
        let counted = self.replay.take_counted();
        let references = match is_anew {
            true => self.all_references(&versions.state(), &version_set),
            false => counted,
        };
        let mut known = BTreeSet::new();
        for (file, by) in &references {
            let is_there = version_set.references.contains_key(&file.id());
            let is_new = *by > 0 && !is_there && known.insert(file.id());
            // Of a tree more may be there, also where one version of it takes the place of another, or of a last one.
            let may_be_longer = file.tree().is_some() && (*by > 0 || is_there);
            if is_new || may_be_longer {
                file.found();
            }
        }
        self.gather_buffers();
        let mut sealed = self.buffers.clone();
        let active = match self.log.active() {
            Some(_) => sealed.remove(0),
            None => WriteBuffer::never_filled(),
        };
        let (tables, flushed) = (self.replay.tables.clone(), self.replay.log.flushed.0);
        debug_assert!(
            sealed.iter().all(|buffer| buffer.segment() >= flushed),
            "what is flushed is in files, and in no buffer"
        );
        self.log.publish_full();
        versions.update_state(|state| {
            *state = State { active, sealed, tables, frozen: BTreeSet::new(), is_frozen: false };
        });
        yield_point("a reader's state is shown");
        self.log.publish();
        let segments = self.keep_segments(engine, &mut version_set);
        version_set.savepoints = self.replay.savepoints.clone();
        (version_set.log, version_set.rolled_back) = (self.replay.log, self.replay.rolled_back);
        version_set.next_table = self.replay.next_table;
        version_set.clock_milliseconds = self.replay.clock_milliseconds;
        version_set.feed = self.replay.feed.clone();
        // Also of a file that was met once more: whoever reads it may have the other object.
        let gone: Vec<DataFile> = references
            .iter()
            .filter(|(_, by)| *by < 0)
            .flat_map(|(file, _)| {
                let known = version_set.references.get(&file.id()).map(|(known, _)| known);
                [Some(file), known].into_iter().flatten().cloned()
            })
            .collect();
        version_set.refer(references);
        let ids = (!is_anew).then(|| gone.iter().map(DataFile::id).collect());
        self.replay.forget(ids, |id| version_set.references.contains_key(&id));
        self.leave(gone, segments, &version_set);
        versions.weigh();
        version_set.weigh_savepoints();
        drop(version_set);
        let durable = self.durable.max(self.log.durable_sequence());
        engine.context.seen_durable.fetch_max(durable, Ordering::Relaxed);
        engine.memory.tend_filters();
        engine.memory.tell_held();
    }

    /// All that is referred to now, and before.
    fn all_references(&self, before: &State, version_set: &VersionSetGuard<'_>) -> Vec<(DataFile, i32)> {
        let savepoints = self.replay.savepoints.values().flat_map(|savepoint| savepoint.files());
        let now = self.replay.tables.values().flat_map(|table| table.version.files()).chain(savepoints);
        let kept = version_set.savepoints.values().flat_map(|savepoint| savepoint.files());
        let before = before.files().chain(kept);
        now.map(|file| (file, 1)).chain(before.map(|file| (file, -1))).collect()
    }

    /// What was read on takes the place of what was there of the same segments; what is flushed goes.
    fn gather_buffers(&mut self) {
        let flushed = self.replay.log.flushed.0;
        let mut buffers: Vec<Arc<WriteBuffer>> = self.log.buffers().cloned().collect();
        let oldest = buffers.last().map_or(u64::MAX, |buffer| buffer.segment());
        let older = self.buffers.drain(..).filter(|buffer| (flushed..oldest).contains(&buffer.segment()));
        buffers.extend(older);
        debug_assert!(
            buffers.is_sorted_by(|newer, older| newer.segment() > older.segment()),
            "each segment has one buffer"
        );
        self.buffers = buffers;
    }

    /// Notes which segments are kept for their changes. Gives those that are not any more, and are read.
    fn keep_segments(
        &mut self,
        engine: &Engine,
        version_set: &mut VersionSetGuard<'_>,
    ) -> Vec<Weak<SegmentFile>> {
        let mark = self.replay.log;
        let mut kept = match self.retained.take() {
            Some(retained) => retained,
            None => {
                let fresh = self.fresh_segments(engine, version_set);
                let mut kept = std::mem::take(&mut version_set.retained);
                if let Ok(fresh) = fresh {
                    kept.extend(fresh);
                    self.retained_to = mark.low;
                }
                kept
            }
        };
        let staying = kept.split_off(&mark.kept.0);
        let before = std::mem::replace(&mut version_set.retained, staying);
        debug_assert!(
            version_set.retained.keys().all(|&segment| segment < mark.flushed.0),
            "what is retained is flushed"
        );
        let left = before.into_values().chain(kept.into_values());
        left.filter(|segment| Arc::strong_count(&segment.file) > 1)
            .map(|segment| Arc::downgrade(&segment.file))
            .collect()
    }

    /// Segments that are kept and were not, behind the last one that was.
    fn fresh_segments(
        &self,
        engine: &Engine,
        version_set: &VersionSetGuard<'_>,
    ) -> Result<BTreeMap<u64, RetainedSegment>> {
        let (context, mark) = (&engine.context, &self.replay.log);
        if mark.kept.0 >= mark.low.0 || mark.low == self.retained_to {
            return Ok(BTreeMap::new());
        }
        let last = version_set.retained.last_key_value().map(|(&last, _)| last);
        let ids = Listing::read(&*context.env.fs, &context.dir)?.logs_from(last.map_or(0, |last| last + 1));
        // Without them the feed says that it does not go back so far; they are looked for again.
        retained_segments(&self.replay.lists, &ids, mark, &[], context.superblock.log_secret)
    }

    /// Notes what is not referred to any more, and may be read.
    fn leave(
        &mut self,
        gone: Vec<DataFile>,
        segments: Vec<Weak<SegmentFile>>,
        version_set: &VersionSetGuard<'_>,
    ) {
        let is_current = |file: &DataFile| {
            version_set
                .references
                .get(&file.id())
                .is_some_and(|(newest, _)| newest.version() == file.version())
        };
        let is_absent = |file: &&DataFile| !version_set.references.contains_key(&file.id());
        debug_assert!(
            gone.iter().filter(is_absent).all(DataFile::is_retired),
            "what nothing refers to is retired, whichever object it is"
        );
        let retired = gone.iter().filter(is_absent).map(DataFile::downgrade);
        // A later version of a tree may need fewer value files.
        let trees = gone.iter().filter(|file| file.tree().is_some() && !file.value_shares().is_empty());
        let versions = trees.filter(|file| !is_current(file)).map(WeakFile::of_version);
        let files: Vec<WeakFile> = retired.chain(versions).collect();
        drop(gone);
        let before = std::mem::replace(&mut self.published, self.manifest.place());
        // Where edits were lost that had been read, what they named may be removed by any later one.
        let place = if self.published < before { Place::default() } else { before };
        self.left.push(Left { place, files, segments });
        self.left.retain(Left::is_read);
    }
}

impl fmt::Debug for Refresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refresher({:?})", self.published)
    }
}
