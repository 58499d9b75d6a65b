//! The space that a table takes: what is of use, what is dead, and who holds the rest.

mod bound;
mod reclaim;
mod trouble;

use std::fmt;
use std::sync::Arc;

use forebay_env::sync::atomic::Ordering;
use forebay_layouts::Usage;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::versions::{TableState, Versions};

/// Sees to the bounds of tables' space.
pub(crate) struct Space {
    context: Arc<Context>,
    versions: Arc<Versions>,
}

impl Space {
    pub(crate) fn new(versions: &Arc<Versions>) -> Self {
        Self { context: Arc::clone(&versions.context), versions: Arc::clone(versions) }
    }
}

/// What a table's list files take on disk. Its records in write buffers and the log are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableSpaceStats {
    /// All of them: the five that follow.
    pub disk_bytes: u64,
    /// Files that lists refer to.
    pub live_file_bytes: u64,
    /// Files that nothing refers to any more, but that snapshots, scans or jobs still read.
    pub held_bytes: u64,
    /// What of files nothing but savepoints refers to.
    pub savepoint_bytes: u64,
    /// Files that jobs are writing or have just written.
    pub writing_bytes: u64,
    /// Files that are about to be removed.
    pub leaving_bytes: u64,
    /// Those of `held_bytes` that snapshots see.
    pub snapshot_bytes: u64,
    /// Those parts of live files that no list stands for any more.
    pub dead_bytes: u64,
    /// About what live files would take if each key that is there were in them once: estimated from samples.
    pub live_bytes: u64,
    /// `disk_bytes` by `live_bytes`.
    pub space_amplification: f64,
    /// What `disk_bytes` may come to, where
    /// [`max_space_amplification`](crate::TableBuilder::max_space_amplification) bounds it.
    pub limit_bytes: Option<u64>,
}

impl fmt::Display for TableSpaceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk_bytes, live_bytes, space_amplification, .. } = self;
        writeln!(f, "  {disk_bytes} bytes on disk, {space_amplification:.2} for each of {live_bytes} live")?;
        let Self {
            live_file_bytes,
            dead_bytes,
            held_bytes,
            snapshot_bytes,
            savepoint_bytes,
            writing_bytes,
            leaving_bytes,
            ..
        } = self;
        if let Some(limit_bytes) = self.limit_bytes {
            writeln!(f, "    {limit_bytes} allowed")?;
        }
        writeln!(f, "    {live_file_bytes} in lists' files, {dead_bytes} of them dead")?;
        writeln!(f, "    {held_bytes} in files held for readers, {snapshot_bytes} of them by snapshots")?;
        if *savepoint_bytes > 0 {
            writeln!(f, "    {savepoint_bytes} for savepoints only")?;
        }
        writeln!(f, "    {writing_bytes} being written, {leaving_bytes} being removed")
    }
}

impl Space {
    /// What a table takes.
    pub(crate) fn space_of(&self, table: &TableState) -> TableSpaceStats {
        let disk = &table.space.disk;
        let usage = Usage::of(&*table.version);
        let (held_bytes, leaving_bytes) = (disk.held_bytes(), disk.leaving_bytes());
        let savepoint_bytes = table.space.kept_bytes.load(Ordering::Relaxed);
        let known_bytes = usage.file_bytes + held_bytes + savepoint_bytes + leaving_bytes;
        let disk_bytes = disk.bytes().max(known_bytes);
        TableSpaceStats {
            disk_bytes,
            live_file_bytes: usage.file_bytes,
            held_bytes,
            savepoint_bytes,
            writing_bytes: disk_bytes - known_bytes,
            leaving_bytes,
            snapshot_bytes: self.versions.bytes_held_by_snapshots(table.id).min(held_bytes),
            dead_bytes: usage.dead_bytes,
            live_bytes: usage.live_bytes,
            space_amplification: match usage.live_bytes {
                0 => 0.0,
                live_bytes => disk_bytes as f64 / live_bytes as f64,
            },
            limit_bytes: self.room(table).map(|room| room.limit),
        }
    }
}
