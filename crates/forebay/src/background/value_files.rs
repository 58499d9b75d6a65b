//! Value files: a buffer's segment of the log becomes one as the buffer is flushed, and merges empty those of which little
//! is alive.
//!
//! **Invariant:** a segment is durable, and nobody writes to it any more, before lists have pointers to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use forebay_base::{Result, planted};
use forebay_env::Access;
use forebay_store::buffer::SortedTable;
use forebay_store::{ValueFile, WriteBuffer, names};

use crate::background::Background;
use crate::versions::State;

/// A segment stays for its values where they are this share of it at least.
const VALUES_SHARE_MIN: f64 = 0.5;
/// Files of which a smaller share is alive are emptied, once there is a round.
const LIVE_SHARE_MIN: f64 = 0.75;
/// There is none before what is dead would fill this many files.
const FILES_MIN: u64 = 4;

const _: () = assert!(LIVE_SHARE_MIN > 0.5, "where half of all is dead, some file is emptied");

impl Background {
    /// Makes a buffer's segment a value file, where tables that keep values apart have most of it.
    pub(super) fn keep_values(
        &self,
        buffer: &WriteBuffer,
        last_sequence: u64,
        tables: &VecDeque<SortedTable>,
    ) -> Result<()> {
        if buffer.value_file().is_some() || !has_long_values(&self.versions.state(), buffer, tables) {
            return Ok(());
        }
        let (context, lists) = (&self.context, &self.versions.lists);
        if !planted::is("values-not-synced") {
            context.log()?.sync_to(last_sequence)?;
        }
        let (id, segment, bytes) = (lists.new_id(), buffer.segment(), buffer.len() as u64);
        if !lists.trash.has_strangers() {
            // What it has reserved and not used. If that cannot be given back now, it goes with the file.
            let file = context.env.fs.open(&names::log(&context.dir, segment), Access::Buffered);
            let _ = file.and_then(|file| file.set_len(bytes));
        }
        buffer.set_value_file(lists.values.link(id, segment, bytes)?);
        Ok(())
    }

    /// Begins a round of collection once value files have more that is dead than alive: those of which not most is alive
    /// are emptied, by merges that come anyway and by some for that alone. Ends it once none of them is left.
    pub(super) fn collect_values(&self) {
        let values = &self.versions.lists.values;
        let files: BTreeMap<u64, Arc<ValueFile>> =
            values.all().into_iter().map(|file| (file.id(), file)).collect();
        if files.is_empty() {
            return values.set_collecting(false);
        }
        // What only savepoints or snapshots have no merge can move.
        let live = self.versions.value_use();
        let used =
            || live.iter().filter_map(|(id, live_bytes): (&u64, &f64)| Some((files.get(id)?, *live_bytes)));
        if values.is_collecting() && used().any(|(file, _)| file.is_collected()) {
            return;
        }
        let share = |file: &ValueFile, live_bytes: f64| live_bytes / file.bytes().max(1) as f64;
        let file_bytes: u64 = used().map(|(file, _)| file.bytes()).sum();
        let longest = used().map(|(file, _)| file.bytes()).max().unwrap_or_default();
        let live_bytes: f64 = used().map(|(file, bytes)| bytes.min(file.bytes() as f64)).sum();
        let dead_bytes = file_bytes as f64 - live_bytes;
        let is_due = dead_bytes > f64::max(live_bytes, (FILES_MIN * longest) as f64);
        let chosen = used().filter(|(file, bytes)| is_due && share(file, *bytes) < LIVE_SHARE_MIN);
        let chosen = chosen.filter(|(file, _)| file.collect()).count();
        values.set_collecting(chosen > 0);
        if chosen > 0 {
            self.context.env.jobs.wake();
        }
    }
}

/// Whether most of a buffer are values that their tables keep apart.
fn has_long_values(state: &State, buffer: &WriteBuffer, tables: &VecDeque<SortedTable>) -> bool {
    let long_bytes = |sorted: &SortedTable| {
        let table = state.tables.get(&sorted.table)?;
        let bytes_min = u64::from(table.options.apart_bytes_min?);
        let contents = &sorted.contents;
        (contents.bytes >= bytes_min * contents.records).then_some(contents.bytes)
    };
    let bytes: u64 = tables.iter().filter_map(long_bytes).sum();
    bytes > 0 && bytes as f64 >= VALUES_SHARE_MIN * buffer.len() as f64
}
