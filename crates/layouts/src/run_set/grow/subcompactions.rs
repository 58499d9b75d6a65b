//! Which worker does which subcompaction of an inter-level merge.
//!
//! **Invariant:** no two claimed subcompactions have the same target file, because a file has one tail. Once the job is
//! over and no subcompaction is claimed, none of the files is written to any more.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::Range;
use forebay_buffer_tree::Fragment;
use forebay_env::sync::Mutex;

use super::super::set::{Part, Run};

/// The subcompactions of one slice, and what has come of them.
pub(super) struct SubcompactionQueue<F, D>(Mutex<State<F, D>>);

struct State<F, D> {
    /// How many there are.
    count: usize,
    waiting: VecDeque<Arc<Subcompaction<F>>>,
    claimed: Vec<Arc<Subcompaction<F>>>,
    done: Vec<(usize, D)>,
    /// Nobody wants the rest.
    is_over: bool,
    /// A worker beside the job has failed: the job does the rest, and says why.
    is_jobs_own: bool,
}

/// A stretch of the range: a part of the run below, or what lies between two.
pub(super) struct Subcompaction<F> {
    number: usize,
    pub(super) range: Range,
    pub(super) target: Option<Arc<Part<F>>>,
}

/// A subcompaction that a worker has claimed. If it is dropped undone, it waits for another worker.
pub(super) struct Claimed<F, D> {
    subcompactions: Arc<SubcompactionQueue<F, D>>,
    subcompaction: Arc<Subcompaction<F>>,
}

impl<F: Fragment, D> SubcompactionQueue<F, D> {
    /// The parts of a run inside a range, and what lies between them.
    pub(super) fn new(run: &Run<F>, range: &Range) -> Arc<Self> {
        let mut waiting = VecDeque::new();
        let mut add = |range, target| {
            waiting.push_back(Arc::new(Subcompaction { number: waiting.len(), range, target }))
        };
        let mut low = Some(range.low.clone());
        for part in &run.parts()[run.overlapping(range)] {
            let current = part.range.intersect(range);
            if let Some(low) = low.take().filter(|low| *low < current.low) {
                add(Range { low, high: Some(current.low.clone()) }, None);
            }
            low = current.high.clone();
            add(current, Some(Arc::clone(part)));
        }
        let rest = low.map(|low| Range { low, high: range.high.clone() }).filter(|rest| !rest.is_empty());
        if let Some(rest) = rest {
            add(rest, None);
        }
        debug_assert!(
            waiting
                .iter()
                .map(|next| &next.range)
                .is_sorted_by(|one, next| one.high.as_ref() == Some(&next.low))
                && waiting.front().is_some_and(|first| first.range.low == range.low)
                && waiting.back().is_some_and(|last| last.range.high == range.high),
            "all of the range is some subcompaction's"
        );
        let (count, claimed, done) = (waiting.len(), Vec::new(), Vec::new());
        let state = State { count, waiting, claimed, done, is_over: false, is_jobs_own: false };
        Arc::new(Self(Mutex::new(state)))
    }

    /// The next subcompaction that can be done beside those that are claimed.
    pub(super) fn take(self: &Arc<Self>) -> Option<Claimed<F, D>> {
        let mut state = self.0.lock();
        let subcompaction = state.next().and_then(|next| state.waiting.remove(next))?;
        let has_same_tail = |other: &Arc<Subcompaction<F>>| {
            subcompaction.target.is_some() && other.file() == subcompaction.file()
        };
        debug_assert!(!state.claimed.iter().any(has_same_tail), "a file has one tail");
        state.claimed.push(Arc::clone(&subcompaction));
        Some(Claimed { subcompactions: Arc::clone(self), subcompaction })
    }

    /// Whether there is something to claim for one more worker beside the job.
    pub(super) fn wants_worker(&self) -> bool {
        let state = self.0.lock();
        !state.is_jobs_own && state.next().is_some()
    }

    /// Leaves what is not claimed to the job.
    pub(super) fn leave_to_job(&self) {
        self.0.lock().is_jobs_own = true;
    }

    /// Whether there is nothing to do until somebody is done with a subcompaction.
    pub(super) fn wait(&self) -> bool {
        let state = self.0.lock();
        !state.claimed.is_empty() && state.next().is_none()
    }

    /// Whether any is claimed.
    pub(super) fn are_claimed(&self) -> bool {
        !self.0.lock().claimed.is_empty()
    }

    /// What has come of all of them, in order, once they are done.
    pub(super) fn finish(&self) -> Option<impl Iterator<Item = D> + use<F, D>> {
        let mut state = self.0.lock();
        let is_done = !state.is_over && state.waiting.is_empty() && state.claimed.is_empty();
        let mut done = if is_done { std::mem::take(&mut state.done) } else { return None };
        done.sort_by_key(|(number, _)| *number);
        debug_assert!(
            done.iter().map(|(number, _)| *number).eq(0..state.count),
            "each subcompaction is done once"
        );
        state.is_over = true;
        Some(done.into_iter().map(|(_, done)| done))
    }

    /// Ends the job: no subcompaction begins any more, and outcomes are discarded.
    pub(super) fn abandon(&self) {
        let mut state = self.0.lock();
        state.is_over = true;
        state.done.clear();
    }

    pub(super) fn are_over(&self) -> bool {
        self.0.lock().is_over
    }
}

impl<F: Fragment, D> State<F, D> {
    fn next(&self) -> Option<usize> {
        let is_taken = |subcompaction: &Subcompaction<F>| {
            subcompaction
                .file()
                .is_some_and(|file| self.claimed.iter().any(|other| other.file() == Some(file)))
        };
        self.waiting.iter().position(|subcompaction| !is_taken(subcompaction)).filter(|_| !self.is_over)
    }
}

impl<F: Fragment> Subcompaction<F> {
    /// The file of its target.
    fn file(&self) -> Option<u64> {
        self.target.as_ref().map(|part| part.fragment.id())
    }
}

impl<F, D> Claimed<F, D> {
    pub(super) fn subcompaction(&self) -> &Subcompaction<F> {
        &self.subcompaction
    }

    pub(super) fn done(self, done: D) {
        let mut state = self.subcompactions.0.lock();
        let claimed = state.claimed.len();
        state.claimed.retain(|subcompaction| !Arc::ptr_eq(subcompaction, &self.subcompaction));
        debug_assert_eq!(state.claimed.len() + 1, claimed, "what is done was claimed, once");
        if !state.is_over {
            state.done.push((self.subcompaction.number, done));
        }
    }
}

impl<F, D> Drop for Claimed<F, D> {
    fn drop(&mut self) {
        let mut state = self.subcompactions.0.lock();
        if let Some(place) =
            state.claimed.iter().position(|subcompaction| Arc::ptr_eq(subcompaction, &self.subcompaction))
        {
            let undone = state.claimed.swap_remove(place);
            state.waiting.push_front(undone);
        }
    }
}

#[cfg(test)]
mod tests;
