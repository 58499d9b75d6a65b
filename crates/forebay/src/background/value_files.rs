//! Value files: a buffer's segment of the log becomes one as the buffer is flushed, and merges empty those of which little
//! is alive.
//!
//! **Invariant:** a segment is durable, and nobody writes to it any more, before lists have pointers to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Result, planted};
use forebay_store::buffer::SortedTable;
use forebay_store::{ValueFile, WriteBuffer};

use crate::background::Background;
use crate::options::VALUES_SHARE_MIN;
use crate::versions::State;

/// Files of which a smaller share is alive are emptied, once there is a round.
const LIVE_SHARE_MIN: f64 = 0.75;
/// There is none before what is dead would fill this many files.
const FILES_MIN: f64 = 4.0;

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
        // Some table promises when old bytes of the log are gone.
        if self.versions.erases_old_log() {
            return Ok(());
        }
        let (context, lists) = (&self.context, &self.versions.lists);
        if !planted::is("values-not-synced") {
            context.log()?.sync_to(last_sequence)?;
        }
        let (id, segment, bytes) = (lists.new_id(), buffer.segment(), buffer.len() as u64);
        match lists.values.link(id, segment, bytes) {
            Ok(file) => buffer.set_value_file(file),
            Err(error) if error.is_no_space() || context.check_open().is_err() => return Err(error),
            // Some file systems have no second names. Values go with their keys.
            Err(_) => return Ok(()),
        }
        self.versions.give_back_reserve(segment, bytes);
        Ok(())
    }

    /// Once value files have more that is dead than alive, those of which not most is alive are emptied, by merges that
    /// come anyway and by some for that alone. Those that are being emptied do not count.
    pub(super) fn collect_values(&self) {
        let values = &self.versions.lists.values;
        let files: BTreeMap<u64, Arc<ValueFile>> =
            values.all().into_iter().map(|file| (file.id(), file)).collect();
        if files.is_empty() {
            return values.set_collecting(false);
        }
        // What only savepoints or snapshots have no merge can move.
        let live = self.versions.value_use();
        let used = |is_collected: bool| {
            let found = live.iter().filter_map(|(id, live_bytes)| Some((files.get(id)?, *live_bytes)));
            let sound = found.filter(|(file, _): &(&Arc<ValueFile>, f64)| !file.is_stuck());
            sound.filter(move |(file, _)| file.is_collected() == is_collected)
        };
        let rests = self.context.health.compactors_are_idle() && self.versions.state().sealed.is_empty();
        if values.is_collecting() && rests {
            // Nobody finds anything to do, and yet they are there: their nodes are set aside.
            used(true).for_each(|(file, _)| file.give_up());
        }
        let dead = |file: &ValueFile, live_bytes: f64| (file.bytes() as f64 - live_bytes).max(0.0);
        let dead_bytes: f64 = used(false).map(|(file, live)| dead(file, live)).sum();
        let live_bytes: f64 = used(false).map(|(file, live)| live.min(file.bytes() as f64)).sum();
        let longest = used(false).map(|(file, _)| file.bytes()).max().unwrap_or_default();
        let is_due = dead_bytes > f64::max(live_bytes, FILES_MIN * longest as f64);
        // What frees less than a block frees nothing, unless all of the file goes.
        let is_worth_it = |file: &ValueFile, live: f64| {
            let dead_bytes = dead(file, live);
            live == 0.0 || live < LIVE_SHARE_MIN * file.bytes() as f64 && dead_bytes >= BLOCK_BYTES as f64
        };
        let chosen = used(false).filter(|(file, live)| is_due && is_worth_it(file, *live));
        let chosen = chosen.map(|(file, _)| file.collect()).count();
        let is_wanted = used(true).next().is_some();
        // A rollback brings files back that were chosen before.
        let begins = is_wanted && !values.is_collecting();
        values.set_collecting(is_wanted);
        if chosen > 0 || begins {
            // That they found nothing was before there was this.
            self.context.health.forget_idle();
            self.context.env.jobs.wake();
        }
    }
}

/// Whether most of a buffer are values that their tables keep apart.
fn has_long_values(state: &State, buffer: &WriteBuffer, tables: &VecDeque<SortedTable>) -> bool {
    let long_bytes = |sorted: &SortedTable| {
        let bytes_min = state.tables.get(&sorted.table)?.options.flush_leaves_bytes_min()?;
        Some(sorted.contents.bytes as f64 * sorted.run.long_share(buffer, bytes_min))
    };
    let bytes: f64 = tables.iter().filter_map(long_bytes).sum();
    bytes > 0.0 && bytes >= VALUES_SHARE_MIN * buffer.len() as f64
}
