//! The bound on a table's space, `max_space_amplification` (A). Its files take at most A times what lives of them, and
//! an allowance:
//!
//! 1. What counts is what is *claimed*: all files of the table, and once more those records that are not merged with
//!    everything older yet. Merging them is what frees space, and until it is done they are there twice.
//! 2. Halfway from what lives to the bound, background work begins to go round the table, slice by slice or leaf by
//!    leaf; from there on writers wait for a growing share of that work, and at the bound for all of it. Room for that
//!    is left by 1., so it never has to wait for writers.
//! 3. What write buffers hold by then may still come, as may a slice that is being merged: that is the allowance.
//! 4. What snapshots and scans hold cannot be freed, nor what readers of other processes may need. Once no merge has room
//!    any more, a write gets an error that names them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Range, Result, planted};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{NodeKey, Place, Planned};

use crate::context::{COMPACT, FLUSH};
use crate::space::Space;
use crate::versions::{State, TableState};

/// How a table stands, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    disk: u64,
    live: u64,
    claimed: u64,
    /// What may be claimed before writers stop.
    pub(crate) bound: u64,
    /// What the files may take at any time.
    pub(crate) limit: u64,
}

/// Where a round goes on behind what it planned: `None` for the end of the table.
pub(crate) struct Onward(Option<Place>);

/// The allowance for merges, in files or nodes.
const ALLOWED_FILES: u64 = 8;
/// Bytes of background work for each that is written, where half of the way is gone from where reclaiming begins.
const PACE: f64 = 4.0;
/// How long readers that are no snapshots may hold files before writers are told.
const PATIENCE: Duration = Duration::from_secs(1);

impl Room {
    /// How far it is from where reclaiming begins (0) to where writers stop (1).
    fn pressure(&self) -> f64 {
        let excess = self.claimed.saturating_sub(self.live) as f64;
        2.0 * excess / self.bound.saturating_sub(self.live).max(1) as f64 - 1.0
    }
}

impl Space {
    /// How a table stands; `None` where nothing bounds it.
    pub(crate) fn room(&self, table: &TableState) -> Option<Room> {
        let most = table.options.max_space_amplification?;
        // What savepoints keep was asked for, and is not to go.
        let kept_bytes = table.space.kept_bytes.load(Ordering::Relaxed);
        let disk = table.space.disk.bytes().saturating_sub(kept_bytes);
        let usage = table.space.reclaim.measure(&*table.version, (disk, table.space.disk.leaving_bytes()));
        let buffers = self.context.buffers();
        // Bounds and nodes may be as large as anybody likes.
        let bound = ((usage.live_bytes as f64 * most) as u64).saturating_add(buffers.bytes);
        let nodes_bytes = ALLOWED_FILES.saturating_mul(table.options.tree.node_bytes);
        let allowance = buffers.total_bytes().saturating_add(nodes_bytes);
        let (claimed, limit) = (disk + usage.unmerged_bytes, bound.saturating_add(allowance));
        debug_assert!(
            usage.live_bytes < bound && bound <= limit,
            "what lives is within the bound, and merges have room beyond it"
        );
        Some(Room { disk, live: usage.live_bytes, claimed, bound, limit })
    }

    /// Whether space should be got back.
    pub(crate) fn wants_space(&self, table: &TableState) -> bool {
        self.room(table).is_some_and(|room| room.pressure() > 0.0)
    }

    /// Plans for a table that wants space, or a round: what moves no data, then what frees some. The round has come past
    /// that only once it is told so.
    pub(crate) fn plan_space(
        &self,
        table: &TableState,
        busy: &BTreeSet<NodeKey>,
    ) -> (Option<Planned>, Option<Onward>) {
        let next = table.version.next_work(busy);
        if matches!(next, Some(Planned::Edit(_))) {
            return (next, None);
        }
        let from = table.space.reclaim.place.lock().clone();
        let next_from = |from: Option<&Place>| table.version.next_reclaim(busy, from, &Range::all());
        let found = next_from(from.as_ref()).or_else(|| from.as_ref().and_then(|_| next_from(None)));
        if let Some((plan, then)) = found {
            return (Some(Planned::Job(plan)), Some(Onward(then)));
        }
        *table.space.reclaim.place.lock() = None;
        if !self.versions.is_worked_on(table.id, busy) {
            table.space.reclaim_passes.note_nothing_left();
            if next.is_none() {
                self.note_stuck(table, false);
            }
        }
        (next, None)
    }

    /// A round has come past what it planned.
    pub(crate) fn advance(&self, table: &TableState, Onward(then): Onward) {
        if then.is_none() {
            table.space.reclaim_passes.note_pass_end();
        }
        *table.space.reclaim.place.lock() = then;
    }

    /// Whether there is room for a job. While nobody holds what it frees there always is for one: it frees as much.
    pub(crate) fn has_room_for(&self, table: &TableState, planned: &Planned) -> bool {
        let Planned::Job(plan) = planned else { return true };
        let starves = table.space.reclaim.starves.load(Ordering::Relaxed);
        let is_alone = table.space.at_work.is_none();
        let fits =
            self.fits(table, plan.bytes) || is_alone && (self.versions.held_bytes(table) == 0 || starves);
        if !fits && is_alone {
            debug_assert!(table.is_bounded(), "only a bound leaves no room");
            self.note_stuck(table, true);
        }
        fits
    }

    /// Whether this much more on disk is within the limit, also once all that is buffered or being merged is there.
    pub(crate) fn fits(&self, table: &TableState, bytes: u64) -> bool {
        let state = self.versions.state();
        let buffers = state.sealed.iter().chain([&state.active]);
        let buffered: usize = buffers.map(|buffer| buffer.len()).sum();
        let coming = bytes + buffered as u64 + table.space.at_work.bytes();
        self.room(table).is_none_or(|room| room.disk + coming <= room.limit)
    }

    /// Why what there is to do for a bounded table is not done, if so.
    pub(crate) fn refuses(&self, table: &TableState) -> Option<Error> {
        let room = self.room(table).filter(|_| self.versions.lacks_room(table))?;
        Some(self.no_space(table, &room))
    }

    fn note_stuck(&self, table: &TableState, no_room: bool) {
        if table.space.note_stuck(no_room) {
            self.versions.weigh();
            self.context.env.jobs.wake();
        }
    }

    /// Why the flush waits for a bounded table, where snapshots are to blame and it has done so for a while. It is
    /// asked of what is there: a snapshot that is let go of is blamed no more.
    pub(crate) fn refuses_flush(&self) -> Option<Error> {
        let state = self.versions.state();
        let waited_for = |table: &&Arc<TableState>| table.space.reclaim.is_waited_for.load(Ordering::Relaxed);
        let is_blamed = |table: &&Arc<TableState>| {
            self.versions.bytes_held_by_snapshots(table.id) > 0 || self.versions.leased_bytes(table) > 0
        };
        state.tables.values().filter(waited_for).filter(is_blamed).find_map(|table| self.refuses(table))
    }

    /// Whether background work will do nothing more for a bounded table.
    pub(crate) fn is_stuck(&self, table: &TableState) -> bool {
        table.is_bounded() && table.space.stuck().is_some()
    }

    /// Waits until a bounded table may take more, or says who keeps it from that. The caller holds no version.
    pub(crate) fn wait_for_space(&self, id: u32) -> Result<()> {
        if let Some(verdict) = self.verdict(id, true) {
            return verdict;
        }
        let started = self.context.env.clock.now();
        let mut verdict = None;
        let mut look = |is_patient| {
            verdict = self.verdict(id, is_patient);
            verdict.is_some()
        };
        let _waiter = self.context.begin_wait();
        self.context.env.jobs.wake();
        if !self.context.env.jobs.wait_until(started + PATIENCE, &mut || look(true)) {
            self.context.env.jobs.wait(&mut || look(false));
        }
        self.context.stalled_since(started);
        verdict.unwrap_or(Ok(()))
    }

    /// Whether a write to a table goes on or ends, if that is known. Of lookups and short scans it is not said that
    /// they hold files before they have had some time to end.
    fn verdict(&self, id: u32, is_patient: bool) -> Option<Result<()>> {
        let state = self.versions.state();
        let Some(table) = state.tables.get(&id) else { return Some(Ok(())) };
        // A table that is sorted anew is there twice until it is done, and what reads it holds files of others, too.
        let is_alone = || !self.versions.reorders_any() || planted::is("refused-while-rewritten");
        let is_over = |room: &Room| room.claimed > room.bound && is_alone();
        let Some(room) = self.room(table).filter(is_over) else { return Some(Ok(())) };
        // Of a disk that fails as a whole the flush may be the only one to know: what it gave up cannot be removed
        // then.
        let trouble = || [COMPACT, FLUSH].into_iter().find_map(|machine| self.passing_trouble(machine));
        if let Some(error) =
            self.context.fatal().or_else(trouble).or_else(|| self.versions.lists.trash.trouble())
        {
            return Some(Err(error));
        }
        if self.context.is_closing() {
            return Some(Err(Error::closed()));
        }
        let (disk, stuck) = (&table.space.disk, table.space.stuck()?);
        let held_bytes = self.versions.held_bytes(table);
        if held_bytes > 0 && (stuck.no_room || room.claimed.saturating_sub(held_bytes) <= room.bound) {
            let is_known = !is_patient || self.versions.bytes_held_by_snapshots(id) > 0;
            return is_known.then(|| Err(self.no_space(table, &room)));
        }
        // Where nothing leaves either, nothing can be done, and nobody is to blame. What other processes hold stays.
        (disk.leaving_bytes() <= self.versions.leased_bytes(table)).then_some(Ok(()))
    }

    /// Bytes of background work that a write of this many owes to the bound of a table.
    pub(crate) fn owed_for_space(&self, id: u32, bytes: u64) -> u64 {
        let room = self.versions.state().tables.get(&id).and_then(|table| self.room(table));
        let pressure = room.map_or(0.0, |room| room.pressure()).clamp(0.0, 1.0);
        (bytes as f64 * PACE * pressure / (1.02 - pressure)) as u64
    }

    fn no_space(&self, table: &TableState, room: &Room) -> Error {
        let snapshots: Vec<String> = self
            .versions
            .snapshots(Some(table.id))
            .iter()
            .filter(|snapshot| snapshot.held_bytes > 0)
            .map(|held| {
                format!("snapshot {} of {} s: {} bytes", held.number, held.age_seconds, held.held_bytes)
            })
            .collect();
        let leases = self.versions.lists.trash.held_by_readers(&*self.context.env.fs).into_iter();
        let leases = leases.filter(|(_, bytes)| *bytes > 0 && self.versions.leased_bytes(table) > 0);
        let processes = leases.map(|(held, bytes)| match held.trouble {
            Some(trouble) => format!("a process that may be reading the database: {bytes} bytes ({trouble})"),
            None => {
                format!(
                    "process {}, which reads the database: {bytes} bytes until it refreshes",
                    held.process
                )
            }
        });
        let who: Vec<String> = snapshots.into_iter().chain(processes).collect();
        let who = if who.is_empty() { "scans".to_string() } else { who.join(", ") };
        Error::NoSpace(format!(
            "table `{}` takes {} bytes on disk and needs {} more to merge them; its max_space_amplification of {} allows {}; \
             readers hold {} of them ({who}); drop those, and write again",
            table.name,
            room.disk,
            room.claimed - room.disk,
            table.options.max_space_amplification.unwrap_or_default(),
            room.bound,
            self.versions.held_bytes(table),
        ))
    }

    /// Removes what bounded tables have given up at one go, rather than leave it to the housekeeper, where it is
    /// needed: a device may take its time for that, and writers wait for merges to get on.
    pub(crate) fn empty_trash_for_space(&self, state: &State) {
        let is_tight = |table: &Arc<TableState>| {
            table.space.disk.leaving_bytes() > 0
                && self.room(table).is_some_and(|room| room.claimed.max(room.disk) > room.bound)
        };
        if state.tables.values().any(is_tight) && self.versions.lists.trash.empty(&*self.context.env.fs) {
            self.context.env.jobs.wake();
        }
    }
}
