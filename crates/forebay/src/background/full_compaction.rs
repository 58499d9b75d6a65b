//! Full compactions, of a table or of a range of its keys: users ask for them, compactors do them, and one says when
//! nothing is left to merge.
//!
//! **Invariant:** whoever waits for a compaction is told that it is done only by a compactor that has looked since
//! they asked, and found the table with nothing to merge and nobody else at work on it; or, where others write
//! meanwhile, which may leave no such moment, or where a range was asked for, has come round all of that since they
//! asked. One range of a table is compacted after the other, as they were asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forebay_base::{Error, Range, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{NodeKey, Place, Plan, Planned, stale_files};

use crate::background::Background;
use crate::background::rewriting::{Scope, left_of};
use crate::context::FLUSH;
use crate::versions::{State, TableState};

/// What users ask of a table, and how far that is done.
#[derive(Default)]
pub(crate) struct FullCompaction {
    /// How often it was asked for.
    asked: u64,
    /// How many of those times are over.
    over: u64,
    /// Who waits, by the number of the time that they asked, and what came of it once that is over: an error where it
    /// could not be done.
    waiting: BTreeMap<u64, Option<Result<()>>>,
    /// What is wanted and not over: the first is under way, and the others come after it.
    wanted: VecDeque<Wanted>,
    pass: Option<Pass>,
}

/// What one or more have asked for together.
struct Wanted {
    /// How often a compaction had been asked for with the last of them.
    asked: u64,
    scope: Scope,
    /// How many buffers had been flushed into the table when it was asked for.
    flushes: u64,
}

impl FullCompaction {
    /// Whether somebody waits for it, and the table has grown since; or for a part of it.
    fn is_pass_due(&self, table: &TableState) -> bool {
        let grows = |wanted: &Wanted| wanted.flushes != table.flushes.load(Ordering::Relaxed);
        self.wanted.front().is_some_and(|wanted| !wanted.scope.is_whole() || grows(wanted))
    }

    /// One more waits for a part of a table, into which so many buffers were flushed: with those who have asked for the
    /// same, if nobody has asked for another one since: else whoever that was might wait for ever.
    fn ask(&mut self, scope: &Scope, flushes: u64) -> u64 {
        self.asked += 1;
        match self.wanted.back_mut().filter(|wanted| wanted.scope == *scope) {
            Some(wanted) => wanted.asked = self.asked,
            None => self.wanted.push_back(Wanted { asked: self.asked, scope: scope.clone(), flushes }),
        }
        self.waiting.insert(self.asked, None);
        self.asked
    }

    /// Whoever asked at that time waits no more. What nobody else wants is not done, unless it is under way. Returns what
    /// came of it.
    fn leave(&mut self, ticket: u64) -> Option<Result<()>> {
        let outcome = self.waiting.remove(&ticket).flatten();
        let place = self.wanted.partition_point(|wanted| wanted.asked < ticket);
        if let (Some(before), Some(own)) = (place.checked_sub(1), self.wanted.get(place)) {
            let mut others = self.waiting.range(self.wanted[before].asked + 1..=own.asked);
            if others.next().is_none() {
                self.wanted.remove(place);
            }
        }
        outcome
    }

    /// It is over for those who had asked by then.
    fn end(&mut self, asked: u64, refused: Option<Error>) {
        debug_assert!(self.over < asked && asked <= self.asked, "what is over was asked for");
        (self.over, self.pass) = (asked, None);
        for (_, outcome) in self.waiting.range_mut(..=asked).filter(|(_, outcome)| outcome.is_none()) {
            *outcome = Some(refused.clone().map_or(Ok(()), Err));
        }
        if self.wanted.front().is_some_and(|wanted| wanted.asked <= asked) {
            self.wanted.pop_front();
        }
    }
}

/// Once round a table that grows, or a range.
struct Pass {
    /// How often a compaction had been asked for when it began.
    asked: u64,
    /// Of the table then.
    generation: u64,
    /// Where it goes on.
    at: At,
    /// It was its turn to be planned the last time, and not what exceeds its limits.
    had_turn: bool,
    /// The last of it was planned.
    is_planned: bool,
}

/// How far a pass has come.
#[derive(Clone)]
enum At {
    Place(Option<Place>),
    /// All of a range is merged, or about to be. What is left are files that others have something of, too: those that
    /// are there once that is done, with ids below this. Or files were asked for.
    Files(Option<u64>),
}

impl Pass {
    /// Whether it has still to wait for the merges that began before it.
    fn begins(&self) -> bool {
        let At::Place(place) = &self.at else { return false };
        !self.is_planned && place.as_ref().is_none_or(Place::is_beginning)
    }
}

/// How far a pass has come once what it plans has begun.
pub(super) struct Progress {
    at: At,
    is_planned: bool,
}

/// What a pass plans.
struct Found {
    plan: Option<Plan>,
    /// Where it goes on then.
    at: At,
    /// Nothing may be done now, but is to be.
    is_left: bool,
    /// That is the last of it.
    is_last: bool,
}

/// What is next of a compaction of files.
fn find_of_files(table: &TableState, busy: &BTreeSet<NodeKey>, files: &BTreeSet<u64>) -> Found {
    let plan = table.version.next_rewrite_of(busy, files);
    let is_last = plan.is_none();
    // Only then: it looks at all that the table has.
    let is_left = is_last && !left_of(&*table.version, files).is_empty();
    Found { plan, at: At::Files(None), is_left, is_last }
}

impl Background {
    /// Merges every leaf of a table that meets a range to one list. Files that have old records of the range are gone
    /// then, also where others have something of them; those of a whole table go by themselves. Or what
    /// it has of some files is written anew.
    pub(crate) fn compact(&self, table: u32, scope: &Scope) -> Result<()> {
        // Nothing of it is merged before that is known.
        self.versions.view().table(table)?.rule()?;
        let flushed = self.writer.flush();
        let passed_over = self.take_up(table);
        match flushed {
            // It may have been kept from it by just what was taken up.
            Err(error) if error.is_lasting() => self.writer.flush()?,
            flushed => flushed?,
        }
        let flushes = self.versions.view().table(table)?.flushes.load(Ordering::Relaxed);
        let is_there = || self.versions.state().tables.contains_key(&table);
        let ticket = self.compacting.lock().entry(table).or_default().ask(scope, flushes);
        self.context.env.jobs.wake();
        let is_over =
            || self.compacting.lock().get(&table).is_some_and(|compaction| compaction.over >= ticket);
        // What compactors fail at of this table is told with the outcome, and of others it is not this one's
        // affair.
        let trouble = || self.space.passing_trouble(FLUSH);
        let waited = self.context.wait_for(trouble, || is_over() || !is_there());
        if !is_there() {
            self.compacting.lock().remove(&table);
            return Err(Error::NotFound("the table was dropped while it was compacted".into()));
        }
        let outcome = self.compacting.lock().get_mut(&table).and_then(|compaction| compaction.leave(ticket));
        waited?;
        outcome.unwrap_or(Ok(()))?;
        // What is damaged is left as it is, and that must be said.
        self.versions.why_aside(table).or(passed_over).map_or(Ok(()), Err)
    }

    /// What there was to be done for a table has failed. Who waited for a compaction of it when that was begun is told:
    /// it had been asked for so often by then.
    pub(crate) fn note_failed_compaction(&self, table: u32, asked: Option<u64>, error: &Error) {
        if let Some(compaction) = self.compacting.lock().get_mut(&table)
            && let Some(asked) = asked.filter(|asked| compaction.over < *asked)
        {
            compaction.end(asked, Some(error.clone()));
        }
        self.context.env.jobs.wake();
    }

    /// The tables that compactions are asked of, and how often they were by those for whom one is under way.
    pub(crate) fn compactions(&self) -> BTreeMap<u32, u64> {
        let compacting = self.compacting.lock();
        let under_way = |(table, compaction): (&u32, &FullCompaction)| {
            compaction.wanted.front().map(|wanted| (*table, wanted.asked))
        };
        compacting.iter().filter_map(under_way).collect()
    }

    /// Nothing of a table could be planned for a compaction that was asked for so often before somebody looked, and nobody
    /// was at work on it.
    pub(crate) fn found_compact(&self, table: u32, asked: u64) {
        let version_set = self.versions.lock();
        let state = self.versions.state();
        let Some(table) = state.tables.get(&table) else { return };
        let nothing = BTreeSet::new();
        let busy = version_set.busy.get(&table.id).unwrap_or(&nothing);
        let is_left = || {
            let left = |scope: Scope| scope.next_left(&*table.version, busy);
            table.version.next_work(busy).is_some()
                || self.next_of_whole(table, busy).is_some()
                || self.scope_of(table.id).filter(|scope| !scope.is_whole()).and_then(left).is_some()
        };
        if table.space.found_no_room() && !self.versions.lacks_room(table) && is_left() {
            // Readers have let go of what there was no room beside: it is planned anew.
            self.context.env.jobs.wake();
            return;
        }
        drop(version_set);
        self.note_compaction(table, asked);
    }

    /// It is over for those who had asked by then.
    fn note_compaction(&self, table: &TableState, asked: u64) {
        let refused = self.space.refuses(table);
        // What it failed at meanwhile is not forgotten.
        let mut compacting = self.compacting.lock();
        if let Some(compaction) = compacting.get_mut(&table.id).filter(|compaction| compaction.over < asked) {
            compaction.end(asked, refused);
            if let Some(wanted) = compaction.wanted.front_mut() {
                wanted.flushes = table.flushes.load(Ordering::Relaxed);
            }
        }
        drop(compacting);
        self.context.env.jobs.wake();
    }

    /// Plans for a table that is compacted. Where it grows meanwhile, what is there goes once round it, for what comes
    /// from above may leave no moment with nothing to merge; and in turns with that what exceeds its limits, or
    /// writers would wait. The round has come past its job only once that has begun.
    pub(super) fn plan_full_compaction(
        &self,
        table: &TableState,
        busy: &BTreeSet<NodeKey>,
    ) -> (Option<Planned>, Option<Progress>) {
        let next = table.version.next_work(busy);
        let Some(turn) = self.turn_of_pass(table, next.as_ref()) else { return (next, None) };
        let (scope, at) = turn;
        let found = match &scope {
            Scope::Range(range) => self.find_of_pass(table, busy, range, at),
            Scope::Files(files) => find_of_files(table, busy, files),
        };
        // Where there is no room for it, the round does not pass it by.
        let planned = found.plan.map(Planned::Job);
        if planned.as_ref().is_some_and(|planned| !self.space.has_room_for(table, planned)) {
            return (next, None);
        }
        debug_assert!(planned.is_none() || !found.is_left, "what can be done now is not waited for");
        // What comes next may make room for the rest of a round, but for what is damaged.
        let gets_on = || next.is_some() && self.versions.why_aside(table.id).is_none();
        let waits = found.is_left && (self.versions.is_worked_on(table.id, busy) || gets_on());
        let progress = Progress { at: found.at, is_planned: found.is_last && !waits };
        if planned.is_some() {
            return (planned, Some(progress));
        }
        self.advance_pass(table.id, progress);
        (next, None)
    }

    /// What the round of a table planned has begun.
    pub(super) fn advance_pass(&self, table: u32, progress: Progress) {
        let mut compacting = self.compacting.lock();
        let pass = compacting.get_mut(&table).and_then(|compaction| compaction.pass.as_mut());
        if let Some(pass) = pass {
            (pass.at, pass.is_planned) = (progress.at, progress.is_planned);
        }
    }

    fn find_of_pass(&self, table: &TableState, busy: &BTreeSet<NodeKey>, range: &Range, at: At) -> Found {
        let version = &table.version;
        let is_whole = *range == Range::all();
        let below = match at {
            At::Place(place) => {
                if let Some((plan, then)) = version.next_reclaim(busy, place.as_ref(), range) {
                    let is_end = then.is_none();
                    let at = if is_end && !is_whole { At::Files(None) } else { At::Place(then) };
                    return Found { plan: Some(plan), at, is_left: false, is_last: is_end && is_whole };
                }
                let is_left = version.round_waits(place.as_ref(), range);
                if is_whole || is_left {
                    return Found { plan: None, at: At::Place(place), is_left, is_last: true };
                }
                None
            }
            At::Files(below) => below,
        };
        let below = below.unwrap_or_else(|| self.versions.lists.next_id.load(Ordering::Relaxed));
        let stale = stale_files(&**version, range, below);
        let plan = version.next_rewrite_of(busy, &stale);
        let is_last = plan.is_none();
        Found { plan, at: At::Files(Some(below)), is_left: is_last && !stale.is_empty(), is_last }
    }

    /// Plans what is left of a compaction of all of a table.
    pub(crate) fn next_of_whole(&self, table: &TableState, busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        let is_whole = self.scope_of(table.id).is_some_and(|scope| scope.is_whole());
        if is_whole { table.version.next_full_compaction(busy).map(Planned::Job) } else { None }
    }

    /// What of a table is compacted, if anything is.
    fn scope_of(&self, table: u32) -> Option<Scope> {
        let compacting = self.compacting.lock();
        compacting.get(&table)?.wanted.front().map(|wanted| wanted.scope.clone())
    }

    /// Whether a round of a table waits for the moment that nobody is at work on it, as one of a range does all the time:
    /// nothing new is to be begun.
    pub(crate) fn round_waits(&self, table: u32) -> bool {
        let compacting = self.compacting.lock();
        let Some(compaction) = compacting.get(&table) else { return false };
        let is_part = || compaction.wanted.front().is_some_and(|wanted| !wanted.scope.is_whole());
        compaction.pass.as_ref().is_some_and(|pass| pass.begins() || is_part())
    }

    /// Whether a compaction goes round a table: it grows.
    pub(crate) fn is_in_pass(&self, table: &TableState) -> bool {
        self.compacting.lock().get(&table.id).is_some_and(|compaction| compaction.is_pass_due(table))
    }

    /// Of what, and where, the round of a table goes on, if there is one and it is the round's turn.
    fn turn_of_pass(&self, table: &TableState, next: Option<&Planned>) -> Option<(Scope, At)> {
        let mut compacting = self.compacting.lock();
        let compaction = compacting.get_mut(&table.id).filter(|compaction| compaction.is_pass_due(table))?;
        let FullCompaction { wanted, pass, .. } = compaction;
        let Wanted { asked, scope, .. } = wanted.front()?;
        pass.take_if(|pass| pass.generation != table.generation);
        let (asked, generation) = (*asked, table.generation);
        let at = || if matches!(scope, Scope::Files(_)) { At::Files(None) } else { At::Place(None) };
        let fresh = || Pass { asked, generation, at: at(), had_turn: false, is_planned: false };
        let pass = pass.get_or_insert_with(fresh);
        // What exceeds its limits might never leave a round the moment that it has to begin with.
        let had_turn = pass.had_turn && !pass.begins();
        pass.had_turn = next.is_none() || !(had_turn || matches!(next, Some(Planned::Edit(_))));
        pass.had_turn.then(|| (scope.clone(), pass.at.clone()))
    }

    /// What was planned last for a table did not come in: a round begins anew.
    pub(crate) fn lose_pass(&self, table: u32) {
        if let Some(compaction) = self.compacting.lock().get_mut(&table) {
            compaction.pass = None;
        }
    }

    /// Notes the rounds that are over: those whose last job is done, and nobody is at work on their tables.
    pub(crate) fn end_passes(&self, state: &State) {
        if !self.compacting.lock().values().any(|compaction| compaction.pass.is_some()) {
            return;
        }
        // Under the lock under which the last job is planned: it is under way once that is free.
        let version_set = self.versions.lock();
        let ended = |(table, compaction): (&u32, &mut FullCompaction)| {
            let table = state.tables.get(table)?;
            let is_over = |pass: &mut Pass| pass.is_planned && table.space.at_work.is_none();
            Some((table, compaction.pass.take_if(is_over)?.asked))
        };
        let ended: Vec<_> = self.compacting.lock().iter_mut().filter_map(ended).collect();
        drop(version_set);
        ended.into_iter().for_each(|(table, asked)| self.note_compaction(table, asked));
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Order;

    use super::*;

    /// Who asked for all before others had done joined them, and who wanted a range waited for as long as that went on.
    #[test]
    fn a_range_has_its_turn_while_others_ask_for_all_again_and_again() {
        let of_range = Scope::Range(Range { low: Order::Lexical.bound(b"k"), high: None });
        let (of_all, mut compaction) = (Scope::default(), FullCompaction::default());
        let is_of = |compaction: &FullCompaction, scope: &Scope| {
            compaction.wanted.front().is_some_and(|wanted| wanted.scope == *scope)
        };
        let asked = [&of_all, &of_all, &of_range, &of_all].map(|scope| compaction.ask(scope, 0));
        assert_eq!(asked, [1, 2, 3, 4]);
        compaction.end(1, None);
        assert!(is_of(&compaction, &of_all), "the second of them still waits");
        compaction.end(2, None);
        assert!(is_of(&compaction, &of_range));
        assert_eq!(compaction.ask(&of_all, 0), 5);
        compaction.end(3, None);
        assert!(is_of(&compaction, &of_all));
        compaction.end(5, None);
        assert!(compaction.wanted.is_empty() && compaction.over == compaction.asked);
    }
}
