//! Value files: a buffer's segment of the log becomes one as the buffer is flushed, and merges empty those of which little
//! is alive.
//!
//! **Invariant:** a segment is durable, and nobody writes to it any more, before lists have pointers to it.
//!
//! **Invariant:** what merges move at a time, beside what it is moved from, is bounded by how much lives in the files when
//! they are chosen, until those are gone from all tables.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Result, planted};
use forebay_store::buffer::SortedTable;
use forebay_store::{ValueFile, WriteBuffer};

use crate::background::Background;
use crate::context::Context;
use crate::options::VALUES_SHARE_MIN;
use crate::versions::State;

/// Files of which a smaller share is alive are emptied, once there is a round.
const LIVE_SHARE_MIN: f64 = 0.75;
/// There is none before what is dead would fill this many files.
const FILES_MIN: f64 = 4.0;
/// Once there is one, files are chosen until no more than this share of that is dead.
const GO_ON_SHARE: f64 = 0.75;
/// This share of what lives is moved at a time, or as much as the longest file has.
const MOVING_SHARE: f64 = 0.125;

const _: () = assert!(
    LIVE_SHARE_MIN * (1.0 + GO_ON_SHARE) > 1.0,
    "where as much is dead as begins or keeps up a round, some file is emptied"
);

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

    /// Once value files have more that is dead than alive, those of which least is alive are emptied, by merges that come
    /// anyway and by some for that alone: as many as there is room for. Those that are being emptied do not count. Where
    /// a table promises when old bytes are gone, all that may have some of the log are emptied.
    pub(super) fn collect_values(&self) {
        let values = &self.versions.lists.values;
        let files: BTreeMap<u64, Arc<ValueFile>> =
            values.all().into_iter().map(|file| (file.id(), file)).collect();
        if files.is_empty() {
            return values.set_collecting(false);
        }
        // What only savepoints or snapshots have no merge can move.
        let live = self.versions.value_use();
        // Merges go on with pointers while there is no room for values. And what a rollback brings back is chosen anew.
        let pauses = self.pauses_for_space();
        let resting = files.values().filter(|file| pauses || !live.contains_key(&file.id()));
        resting.for_each(|file| file.rest());
        if pauses {
            return values.set_collecting(false);
        }
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
        let longest = used(false).map(|(file, _)| file.bytes() as f64).fold(0.0, f64::max);
        // What begins just where it ends would have lists written anew for little.
        let share = if values.is_collecting() { GO_ON_SHARE } else { 1.0 };
        let is_due = dead_bytes > share * f64::max(live_bytes, FILES_MIN * longest);
        let erases = self.versions.erases_old_log();
        // What frees less than a block frees nothing, unless all of the file goes.
        let is_worth_it = |file: &ValueFile, live: f64| {
            let dead_bytes = dead(file, live);
            let frees_much = live < LIVE_SHARE_MIN * file.bytes() as f64 && dead_bytes >= BLOCK_BYTES as f64;
            is_due && (live == 0.0 || frees_much) || erases && dead_bytes > 0.0 && file.may_be_segment()
        };
        let worth = used(false).filter(|(file, live)| is_worth_it(file, *live)).collect();
        let moving: f64 = used(true).map(|(file, _)| file.moving_bytes() as f64).sum();
        let chosen = self.choose(worth, moving, f64::max(MOVING_SHARE * live_bytes, longest));
        let is_collecting = used(true).next().is_some();
        if values.is_collecting() && !is_collecting {
            self.collection.lock().shortages = 0;
        }
        values.set_collecting(is_collecting);
        if chosen > 0 {
            // That they found nothing was before there was this.
            self.context.health.forget_idle();
            self.context.env.jobs.wake();
        }
    }

    /// Has those of these files emptied, beside which so much is being moved already, that there is room for: what frees
    /// most first. Returns how many.
    fn choose(&self, mut worth: Vec<(&Arc<ValueFile>, f64)>, mut moving: f64, most: f64) -> usize {
        if worth.is_empty() {
            return 0;
        }
        // Others need room, too. Where nobody knows how much there is, merges find out.
        let Context { env, dir, .. } = &*self.context;
        let most = env.fs.free_bytes(dir).map_or(most, |free| most.min(free as f64 / 2.0));
        // Keys in random order have each list point to all files, so that each choice may have all lists written anew.
        if moving > most / 2.0 {
            return 0;
        }
        let share = |(file, live): &(&Arc<ValueFile>, f64)| live / file.bytes().max(1) as f64;
        worth.sort_by(|one, other| share(one).total_cmp(&share(other)));
        let mut chosen = 0;
        for (file, live) in worth {
            if moving + live <= most {
                moving += live;
                file.collect(live as u64);
                chosen += 1;
            }
        }
        debug_assert!(moving <= most, "what is chosen fits: {moving} of {most} bytes");
        chosen
    }

    /// Whether work fails because the disk is full, or did so a while ago, amid collection: that may have filled it, and
    /// would again with what came free as it failed. Each time it pauses twice as long.
    fn pauses_for_space(&self) -> bool {
        let trouble = |machine| self.context.health.trouble_at(machine);
        let machines = [super::COMPACT, super::FLUSH, super::HOUSEKEEP];
        let is_short = machines.into_iter().filter_map(trouble).any(|error| error.is_no_space());
        let mut collection = self.collection.lock();
        let now = self.context.env.clock.now();
        if is_short && self.versions.lists.values.is_collecting() {
            let pause = PAUSE.saturating_mul(1 << collection.shortages.min(16)).min(PAUSE_MAX);
            *collection =
                Collection { shortages: collection.shortages.saturating_add(1), rests_until: now + pause };
        }
        is_short || now < collection.rests_until
    }
}

/// How long it pauses behind the first shortage, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// When collection goes on.
#[derive(Default)]
pub(super) struct Collection {
    /// How often it met a full disk since it last came to an end.
    shortages: u32,
    rests_until: Duration,
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
