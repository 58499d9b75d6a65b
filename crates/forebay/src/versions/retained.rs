//! Retained segments: flushed segments of the log that stay, for resident runs and for the feed of changes.
//!
//! **Invariant:** what the manifest counts as flushed is durable: in lists, or in a segment that is synced and
//! retained.
//!
//! **Invariant:** a segment's file stays what it is for as long as somebody reads it.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result, planted};
use forebay_env::Access;
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_store::list::{ListStore, ResidentLimit, Strangers, Trash};
use forebay_store::log::Frames;
use forebay_store::log::frame::Secret;
use forebay_store::log::recover::Extent;
use forebay_store::manifest::{Change, Edit, LogMark};
use forebay_store::{WriteBuffer, names};

use crate::versions::{VersionSet, VersionSetGuard, Versions};

/// A log segment that is flushed and not removed.
pub(crate) struct RetainedSegment {
    /// The last record before it.
    pub(crate) before: u64,
    /// How long it is.
    pub(crate) bytes: u64,
    /// Whether its file is longer, by what it has reserved and nobody could give back so far.
    has_reserve: bool,
    pub(crate) file: Arc<SegmentFile>,
}

/// The file of a segment, which goes once it is retired and nobody reads it any more.
pub(crate) struct SegmentFile {
    pub(crate) path: PathBuf,
    trash: Arc<Trash>,
    is_retired: AtomicBool,
}

impl RetainedSegment {
    pub(crate) fn new(lists: &ListStore, segment: u64, before: u64, bytes: u64) -> Self {
        let (path, trash) = (names::log(&lists.dir, segment), Arc::clone(&lists.trash));
        Self {
            before,
            bytes,
            has_reserve: false,
            file: Arc::new(SegmentFile { path, trash, is_retired: AtomicBool::new(false) }),
        }
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if self.is_retired.load(Ordering::Acquire) {
            self.trash.add(std::mem::take(&mut self.path));
        }
    }
}

/// Segments that are flushed and there: those that are kept for their changes, and those that were read.
pub(crate) fn retained_segments(
    lists: &ListStore,
    segments: &[u64],
    mark: &LogMark,
    read: &[Extent],
    secret: Secret,
) -> Result<BTreeMap<u64, RetainedSegment>> {
    let mut retained = kept_segments(lists, segments, mark, secret)?;
    for extent in read {
        retained.insert(extent.id, RetainedSegment::new(lists, extent.id, extent.before, extent.bytes));
    }
    Ok(retained)
}

/// The segments that are kept for their changes alone, of those that there are. All that is read is where each begins.
fn kept_segments(
    lists: &ListStore,
    segments: &[u64],
    mark: &LogMark,
    secret: Secret,
) -> Result<BTreeMap<u64, RetainedSegment>> {
    let mut kept = BTreeMap::new();
    // Where one has no sound frame at its front, it ends where it begins, as far as is known.
    let mut before = mark.low.1;
    for &segment in segments.iter().rev().filter(|&&id| is_kept(mark, id)) {
        let (first, bytes) = match Frames::first(&*lists.fs, &lists.dir, secret, segment) {
            // A bad sector is damage like any other: the feed tells of it, and nothing else needs the segment.
            Err(error) if matches!(error, Error::Io { .. }) && !error.is_not_found() => {
                let file = lists.fs.open_read(&names::log(&lists.dir, segment), Access::Buffered);
                // Nobody knows how long it is where it cannot even be opened.
                (None, file.and_then(|file| file.len()).unwrap_or(0))
            }
            found => found?,
        };
        if first.is_some_and(|header| header.sequence > mark.flushed.1) {
            // Folded into later ones, and not removed before a crash.
            continue;
        }
        before = match first {
            _ if segment == mark.kept.0 => mark.kept.1,
            Some(header) => header.sequence.saturating_sub(1),
            None => before,
        };
        kept.insert(segment, RetainedSegment::new(lists, segment, before, bytes));
    }
    Ok(kept)
}

/// Counts what is kept for its changes alone up to its last record, where that decides what stays: where more is there
/// than may be kept, and files are as long as a reserve makes them, for a reader of another process, or a crash, has kept
/// that from being given back. Such files are read, newest first, until that much is found.
pub(crate) fn measure_kept(
    lists: &ListStore,
    mark: &LogMark,
    secret: Secret,
    keep_bytes: u64,
    retained: &mut BTreeMap<u64, RetainedSegment>,
) {
    let kept: u64 = retained.range(..mark.low.0).map(|(_, held)| held.bytes).sum();
    if kept <= keep_bytes {
        return;
    }
    let (mut last, mut counted) = (mark.low.1, 0);
    for (&segment, held) in retained.range_mut(..mark.low.0).rev() {
        if counted > keep_bytes {
            // What is older goes.
            return;
        }
        let may_have_reserve = held.bytes > 0 && held.bytes.is_multiple_of(BLOCK_BYTES as u64);
        // Where it is damaged nothing tells where its records end: all of it counts, and nothing is cut.
        if may_have_reserve
            && let Ok(Some(end)) = Frames::end_of(&*lists.fs, &lists.dir, secret, segment, last)
        {
            debug_assert!(end <= held.bytes, "frames end within their file");
            (held.has_reserve, held.bytes) = (end < held.bytes, end);
        }
        (last, counted) = (held.before, counted.saturating_add(held.bytes));
    }
}

/// Whether a segment is kept for its changes alone.
fn is_kept(mark: &LogMark, segment: u64) -> bool {
    (mark.kept.0..mark.low.0).contains(&segment)
}

impl Versions {
    /// Makes durable what log segments hold that stay: the manifest is about to count it as flushed.
    pub(crate) fn sync_retained(&self, mark: &LogMark) -> Result<()> {
        match &self.context.log {
            Some(log) if mark.kept < mark.flushed => {
                log.sync_to(mark.flushed.1)?;
                debug_assert!(log.durable_sequence() >= mark.flushed.1, "what stays in the log is durable");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes what log segments hold that stay, where nobody has asked for that so far: their buffers go.
    pub(crate) fn write_retained(&self, mark: &LogMark) -> Result<()> {
        match &self.context.log {
            Some(log) if mark.kept < mark.flushed => log.write_up_to(mark.flushed.1),
            _ => Ok(()),
        }
    }

    /// Makes the log durable up to a record. The next edit tells that it is: lists are about to rest on what it has.
    pub(crate) fn vouch(&self, sequence: u64) -> Result<()> {
        if planted::is("cut-not-vouched") {
            return Ok(());
        }
        let log = self.context.log()?;
        log.sync_to(sequence)?;
        debug_assert!(log.durable_sequence() >= sequence, "what is vouched for is durable");
        let mut version_set = self.lock();
        if version_set.log.vouched < sequence {
            version_set.log.vouched = sequence;
            version_set.log_is_ahead = true;
        }
        Ok(())
    }

    /// Lets go of what is kept of the log beyond what is wanted by now, unless the database is open for reading only.
    pub(crate) fn trim_log(&self) -> Result<()> {
        if self.context.log.is_none() {
            return Ok(());
        }
        let mut version_set = self.lock();
        // What was in memory may have expired since, and then nothing came of reading it.
        let first_needed = self.state().first_needed();
        let log = version_set.log_after(first_needed, None, version_set.feed.keep_bytes);
        if log.kept > version_set.log.kept || log.low > version_set.log.low {
            // More may be flushed than the manifest knows of, and not be durable yet.
            self.sync_retained(&log)?;
            version_set.append(&Edit::Change(Change { log: Some(log), ..Change::default() }))?;
            version_set.log_is_ahead = false;
            version_set.retain_segments(log, None);
        }
        Ok(())
    }

    /// Keeps one retired log segment for recycling and removes the others; all where somebody may still read what it
    /// held.
    pub(crate) fn retire_segment(&self, segment: u64) {
        self.retire_beside(&self.lists.trash.strangers(), segment);
    }

    /// The same, where it was looked who is there after the manifest had let it go.
    fn retire_beside(&self, strangers: &Strangers, segment: u64) {
        let surplus = match self.erases_old_log() || strangers.is_any() {
            false => {
                let other = self.spare_segment.lock().replace(segment);
                debug_assert_ne!(other, Some(segment), "a segment is retired once");
                other
            }
            true => Some(segment),
        };
        if let Some(surplus) = surplus {
            let path = names::log(&self.context.dir, surplus);
            self.lists.trash.remove_beside(strangers, &*self.context.env.fs, path);
        }
    }

    /// Gives back what a segment that stays has reserved and not used. `false` where that cannot be done now: then it is done
    /// later, or goes with the file.
    pub(crate) fn give_back_reserve(&self, segment: u64, bytes: u64) -> bool {
        if self.lists.trash.strangers().is_any() {
            return false;
        }
        let path = names::log(&self.context.dir, segment);
        let file = self.context.env.fs.open(&path, Access::Buffered);
        file.and_then(|file| if file.len()? > bytes { file.set_len(bytes) } else { Ok(()) }).is_ok()
    }

    /// The same of all that is kept for its changes alone: readers may have kept that from being done when it was flushed.
    pub(crate) fn give_back_kept(&self) {
        let mut version_set = self.lock();
        let low = version_set.log.low.0;
        for (segment, held) in version_set.retained.range_mut(..low).filter(|(_, held)| held.has_reserve) {
            held.has_reserve = !self.give_back_reserve(*segment, held.bytes);
        }
    }

    /// Whether old bytes of the log must go.
    pub(crate) fn erases_old_log(&self) -> bool {
        self.state().tables.values().any(|table| table.options.reclaim_interval.is_some())
    }

    /// What the log takes: what is not in lists and trees yet, and what is kept of it besides.
    pub(crate) fn log_bytes_on_disk(&self) -> u64 {
        let state = self.state();
        let buffers = state.sealed.iter().chain([&state.active]).map(|buffer| buffer.len() as u64);
        buffers.sum::<u64>() + self.lock().flushed_and_kept().1
    }

    /// Takes the segment that is kept for recycling, if there is one.
    pub(crate) fn take_spare_segment(&self) -> Option<u64> {
        self.spare_segment.lock().take()
    }
}

impl VersionSetGuard<'_> {
    /// Tells the manifest which log segments are flushed, where it knows of fewer.
    pub(crate) fn tell_mark(&mut self) -> Result<()> {
        if self.log_is_ahead {
            self.versions.sync_retained(&self.log)?;
            let log = Some(self.log);
            self.append(&Edit::Change(Change { log, ..Change::default() }))?;
            self.log_is_ahead = false;
        }
        Ok(())
    }

    /// Holds a segment that was just flushed, of which the manifest knows, for as long as its mark says; and lets go of
    /// what it says no more.
    pub(crate) fn retain_segments(&mut self, log: LogMark, flushed: Option<&WriteBuffer>) {
        let Versions { context, lists, .. } = self.versions;
        if let Some(buffer) = flushed {
            let (segment, bytes) = (buffer.segment(), buffer.len() as u64);
            let mut retained = RetainedSegment::new(lists, segment, self.log.flushed.1, bytes);
            let is_kept = self.feed.keep_bytes > 0 && segment >= log.kept.0;
            retained.has_reserve = is_kept && !self.versions.give_back_reserve(segment, bytes);
            let last = self.retained.last_key_value().map(|(&last, _)| last);
            debug_assert!(last.is_none_or(|last| last < segment), "segments are flushed in order");
            self.retained.insert(segment, retained);
        }
        let last = self.retained.last_key_value().map(|(&last, _)| last);
        debug_assert!(last.is_none_or(|last| last < log.flushed.0), "what is retained is flushed");
        self.set.log = log;
        let written_to = context.log.as_ref().and_then(|log_of| log_of.forget(log.kept));
        let staying = self.retained.split_off(&log.kept.0);
        let strangers = LazyCell::new(|| lists.trash.strangers());
        for (segment, retained) in std::mem::replace(&mut self.retained, staying) {
            match Arc::try_unwrap(retained.file) {
                Ok(unread) if written_to == Some(segment) => {
                    lists.trash.remove_beside(&strangers, &*lists.fs, unread.path.clone())
                }
                Ok(_nobody_reads) => self.versions.retire_beside(&strangers, segment),
                Err(read) => read.is_retired.store(true, Ordering::Release),
            }
        }
    }
}

impl VersionSet {
    /// The number of the last record that is flushed, and the bytes of the log that are kept all the same.
    pub(crate) fn flushed_and_kept(&self) -> (u64, u64) {
        (self.log.flushed.1, self.retained.values().map(|retained| retained.bytes).sum())
    }

    /// The first of the log's segments that may still be held for what tables keep in memory.
    pub(crate) fn due_below(&self, limit: &ResidentLimit) -> u64 {
        let retained = || self.retained.range(self.log.low.0..);
        let over = retained().count().saturating_sub(limit.room().buffers_max as usize);
        if over == 0 || planted::is("log-held-for-ever") {
            0
        } else {
            retained().nth(over).map_or(0, |(&segment, _)| segment)
        }
    }

    /// The log's marks after a flush, if there is one: from where the log is needed, as resident runs need it from
    /// `first_needed` on, and from where it is kept, with at most `keep_bytes` beyond what is needed.
    pub(crate) fn log_after(
        &self,
        first_needed: Option<u64>,
        flushed: Option<&(Arc<WriteBuffer>, u64)>,
        keep_bytes: u64,
    ) -> LogMark {
        let mut log = self.log;
        let fresh = flushed.map(|(buffer, sequence)| {
            let fresh = (buffer.segment(), log.flushed.1, buffer.len() as u64);
            let before = log.flushed;
            debug_assert!(
                before <= (buffer.segment(), *sequence),
                "buffers are flushed in order, from {before:?} on"
            );
            log.flushed = (buffer.segment() + 1, *sequence);
            // What lists rest on is in them by now.
            log.vouched = if log.vouched > *sequence { log.vouched } else { 0 };
            fresh
        });
        let retained = self
            .retained
            .iter()
            .map(|(&segment, retained)| (segment, retained.before, retained.bytes))
            .chain(fresh);
        (log.low, log.kept) = (log.flushed, log.flushed);
        let mut left: u64 = retained.clone().map(|(.., bytes)| bytes).sum();
        for (segment, before, bytes) in retained {
            if first_needed.is_some_and(|first| segment >= first) {
                log.low = log.low.min((segment, before));
            }
            if left > 0 && left <= keep_bytes {
                log.kept = log.kept.min((segment, before));
            }
            left -= bytes;
        }
        log.kept = log.kept.min(log.low);
        debug_assert_eq!(left, 0, "each segment's bytes are counted once");
        debug_assert!(log.low <= log.flushed, "what is not flushed is needed: {log:?}");
        debug_assert!(log.kept.0 >= self.log.kept.0, "what was given up is not kept again: {log:?}");
        log
    }
}
