//! Versions: what there is, how it is replaced, and who holds what of before. All changes of files go through the
//! version set, which makes them durable before they are seen.
//!
//! The version set's lock serialises edits: what needs it is a method of [`VersionSetGuard`]. `state` is replaced whole,
//! under write locks held for an assignment. The order of locks is that of [`Rank`](forebay_env::sync::Rank).

mod aside;
mod damage;
mod feed;
mod followers;
mod pins;
mod reads;
mod replay;
mod retained;
mod savepoint;
mod space;
mod state;
mod tables;
mod version_set;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Rank, RwLock, Striped};
use forebay_layouts::{Trees, value_use};
use forebay_store::list::{Kept, ListStore};

use crate::context::Context;

use aside::Aside;
pub(crate) use damage::{ends, told_keys};
pub(crate) use followers::{Following, is_being_sorted};
pub use pins::SnapshotStats;
pub(crate) use pins::{Pin, Pins};
pub(crate) use reads::Reads;
pub(crate) use replay::{Replay, store_for, table_state};
pub(crate) use retained::{RetainedSegment, SegmentFile, measure_kept, retained_segments};
pub(crate) use savepoint::{Savepoint, excess, longest};
pub(crate) use space::{Helped, TableSpace, UnderWay};
pub(crate) use state::{State, TableState};
pub(crate) use tables::Tables;
pub(crate) use version_set::{Commit, Finished, Pending, Retired, VersionSet, VersionSetGuard};
pub(crate) use view::{Own, View};

pub(crate) struct Versions {
    pub(crate) context: Arc<Context>,
    version_set: Mutex<VersionSet>,
    /// The newest version, once for each of several threads. All are the same whenever one can be read.
    state: Striped<RwLock<Arc<State>>>,
    /// Held while the next version is made of it.
    changing: Mutex<()>,
    /// What tables' lists have in common: cache, counters, ids, retired files.
    pub(crate) lists: ListStore,
    /// What their trees have in common.
    pub(crate) trees: Trees,
    /// Snapshots that are held.
    pins: Mutex<Pins>,
    /// What background work has set aside, by table.
    aside: Mutex<BTreeMap<u32, Aside>>,
    /// Tables that are being given another order.
    followers: Mutex<BTreeMap<u32, Following>>,
    /// Ingested entries are brought in, a table is dropped, a rewrite into another order begins, or a savepoint is taken, one
    /// at a time.
    pub(crate) bringing_in: Mutex<()>,
    /// Savepoints that are to be taken as soon as a buffer is flushed, and what came of them.
    wanted: Mutex<BTreeMap<String, Option<Result<u64>>>>,
    /// A retired log segment that can be renamed rather than a new one allocated.
    spare_segment: Mutex<Option<u64>>,
    /// Bytes that nodes hold above their limits.
    debt_bytes: AtomicU64,
    /// Bytes of debt that no writer has caused: they were there before, or a change of layout made them count.
    inherited_bytes: AtomicU64,
    /// Bytes of records that tables keep in memory and files do not have.
    resident_bytes: AtomicU64,
    /// Whether something is still to be said of the feed: see [`VersionSet::owed_feed`].
    owes_feed: AtomicBool,
}

impl Versions {
    pub(crate) fn new(
        context: Arc<Context>,
        version_set: VersionSet,
        state: State,
        lists: ListStore,
        trees: Trees,
    ) -> Self {
        debug_assert!(state.has_buffers_in_order(), "write buffers are read back newest first");
        let state = Arc::new(state);
        Self {
            owes_feed: AtomicBool::new(version_set.owed_feed.is_some()),
            context,
            version_set: Mutex::ranked(Rank::VersionSet, version_set),
            state: Striped::new(|| RwLock::new(Arc::clone(&state))),
            changing: Mutex::ranked(Rank::State, ()),
            lists,
            trees,
            pins: Mutex::ranked(Rank::Leaf, Pins::default()),
            aside: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            followers: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            bringing_in: Mutex::ranked(Rank::Unordered, ()),
            wanted: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            spare_segment: Mutex::ranked(Rank::Leaf, None),
            debt_bytes: AtomicU64::new(0),
            inherited_bytes: AtomicU64::new(u64::MAX),
            resident_bytes: AtomicU64::new(0),
        }
    }

    /// The newest version.
    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.own().read())
    }

    /// Looks at the newest version, which stays that meanwhile. `look` must be short and wait for nothing. Threads that
    /// look do not meet; those that take the version for longer do, at the count of who has it.
    #[inline]
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.own().read())
    }

    /// Replaces the version by one made from it.
    pub(crate) fn update_state(&self, change: impl FnOnce(&mut State)) {
        let changing = self.changing.lock();
        let mut next = State::clone(&self.state());
        change(&mut next);
        debug_assert!(next.has_buffers_in_order(), "write buffers stand newest first");
        #[cfg(invariants)]
        next.check();
        let next = Arc::new(next);
        // Once one thread can see the next version, no other sees the one before.
        let mut all: Vec<_> = self.state.all().map(|state| state.write()).collect();
        let before: Vec<_> =
            all.iter_mut().map(|state| std::mem::replace(&mut **state, Arc::clone(&next))).collect();
        drop(all);
        // Nobody waits while what only that version had goes: buffers, lists.
        drop(changing);
        drop(before);
    }

    /// The same of a change to what tables hold that no record tells of: whoever writes because of what was read looks
    /// again.
    pub(crate) fn update_beside_log(&self, change: impl FnOnce(&mut State)) {
        match &self.context.log {
            Some(log) => log.change_epoch(|| self.update_state(change)),
            None => self.update_state(change),
        }
    }

    /// The version set, once nobody else has it.
    pub(crate) fn lock(&self) -> VersionSetGuard<'_> {
        VersionSetGuard { versions: self, set: self.version_set.lock() }
    }

    /// Bytes of work that writers have caused and that is not done, under the newest version.
    pub(crate) fn debt(&self, newest: &State) -> u64 {
        let sealed: usize = newest.sealed.iter().map(|buffer| buffer.len()).sum();
        sealed as u64 + self.debt_bytes.load(Ordering::Relaxed)
    }

    /// About how many bytes of each value file tables have pointers to.
    pub(crate) fn value_use(&self) -> BTreeMap<u64, f64> {
        let mut live = BTreeMap::new();
        for table in self.state().tables.values() {
            value_use(&*table.version, &mut |file, bytes| *live.entry(file).or_default() += bytes);
        }
        live
    }

    /// Bytes of records that tables keep in memory and files do not have.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of a table's files that nothing refers to any more, and that stay because somebody reads them, here or in
    /// another process.
    pub(crate) fn held_bytes(&self, table: &TableState) -> u64 {
        table.space.disk.held_bytes() + self.leased_bytes(table)
    }

    /// Those that readers of other processes hold.
    pub(crate) fn leased_bytes(&self, table: &TableState) -> u64 {
        if self.lists.trash.is_held() { table.space.disk.leaving_bytes() } else { 0 }
    }

    /// Whether there is work for a bounded table, and no room for it. Where readers hold nothing there always is.
    pub(crate) fn lacks_room(&self, table: &TableState) -> bool {
        table.space.found_no_room() && self.held_bytes(table) > 0
    }

    /// Notes how much waits in lists above their limits, and in memory. Call while nobody else edits.
    pub(crate) fn weigh(&self) {
        let state = self.state();
        let versions = || state.tables.values().map(|table| &table.version);
        let debt: u64 = versions().map(|version| version.debt_bytes()).sum();
        let inherited = self.inherited_bytes.load(Ordering::Relaxed).min(debt);
        self.inherited_bytes.store(inherited, Ordering::Relaxed);
        self.debt_bytes.store(debt - inherited, Ordering::Relaxed);
        let resident = || versions().filter_map(|version| version.resident());
        // What no merge can make room of is not waited for by other tables.
        let moves = |table: &&Arc<TableState>| self.why_aside(table.id).is_none() && !self.lacks_room(table);
        let moving = state.tables.values().filter(moves).filter_map(|table| table.version.resident());
        let kept = moving.fold(Kept::default(), |sum, resident| sum.plus(resident.kept));
        self.lists.resident.note_kept(kept);
        let memory_bytes = resident().map(|resident| resident.kept.memory_bytes).sum();
        self.resident_bytes.store(memory_bytes, Ordering::Relaxed);
    }

    /// Why the oldest sealed buffer is not flushed: the rule of one of its tables is not known, which has records in it
    /// or loses ranges by records. It is asked of what is there, whenever somebody wants to know, so it ends when that
    /// does.
    pub(crate) fn lacks_rule(&self) -> Option<Error> {
        let state = self.state();
        let buffer = state.sealed.last()?;
        let sorted = buffer.sorted()?;
        let written = sorted.iter().filter_map(|sorted| state.tables.get(&sorted.table));
        let deletes = buffer.range_deletes(usize::MAX);
        let cut = deletes.iter().filter_map(|delete| {
            let table = state.tables.get(&delete.table)?;
            table.version.drop_range(&delete.range).is_none().then_some(table)
        });
        written.chain(cut).filter_map(|table| table.rule().err()).next()
    }
}

/// The error of a layout that has no use for what the last one has left.
pub(crate) fn has_other_files() -> Error {
    Error::invalid("the table has files that the new layout cannot use; try again")
}
