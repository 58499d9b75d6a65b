//! Who does which leg of an inter-level merge.
//!
//! **Invariant:** of the legs in hand no two have the same file as target, as a file has one tail. Whoever sees that no
//! leg is in hand, once all is over, may be sure that none of the files is written to any more.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::Range;
use forebay_buffer_tree::Fragment;
use forebay_env::sync::Mutex;

use super::super::set::{Part, Run};

/// The legs of one slice, and what has come of them.
pub(super) struct Legs<F, D>(Mutex<State<F, D>>);

struct State<F, D> {
    waiting: VecDeque<Arc<Leg<F>>>,
    in_hand: Vec<Arc<Leg<F>>>,
    done: Vec<(usize, D)>,
    /// Nobody wants the rest.
    is_over: bool,
}

/// A stretch of the range: a part of the run below, or what lies between two.
pub(super) struct Leg<F> {
    number: usize,
    pub(super) range: Range,
    pub(super) target: Option<Arc<Part<F>>>,
}

/// A leg in somebody's hands. It waits again if it is dropped undone.
pub(super) struct InHand<F, D> {
    legs: Arc<Legs<F, D>>,
    leg: Arc<Leg<F>>,
}

impl<F: Fragment, D> Legs<F, D> {
    /// The parts of a run inside a range, and what lies between them.
    pub(super) fn new(run: &Run<F>, range: &Range) -> Arc<Self> {
        let mut waiting = VecDeque::new();
        let mut add =
            |range, target| waiting.push_back(Arc::new(Leg { number: waiting.len(), range, target }));
        let mut low = Some(range.low.clone());
        for part in &run.parts()[run.overlapping(range)] {
            let here = part.range.intersect(range);
            if let Some(low) = low.take().filter(|low| *low < here.low) {
                add(Range { low, high: Some(here.low.clone()) }, None);
            }
            low = here.high.clone();
            add(here, Some(Arc::clone(part)));
        }
        let rest = low.map(|low| Range { low, high: range.high.clone() }).filter(|rest| !rest.is_empty());
        if let Some(rest) = rest {
            add(rest, None);
        }
        let state = State { waiting, in_hand: Vec::new(), done: Vec::new(), is_over: false };
        Arc::new(Self(Mutex::new(state)))
    }

    /// The next leg that can be done beside those in hand.
    pub(super) fn take(self: &Arc<Self>) -> Option<InHand<F, D>> {
        let mut state = self.0.lock();
        let leg = state.next().and_then(|next| state.waiting.remove(next))?;
        state.in_hand.push(Arc::clone(&leg));
        Some(InHand { legs: Arc::clone(self), leg })
    }

    /// Whether there is nothing to do until somebody is done with a leg.
    pub(super) fn wait(&self) -> bool {
        let state = self.0.lock();
        !state.in_hand.is_empty() && state.next().is_none()
    }

    /// Whether any is in somebody's hands.
    pub(super) fn are_in_hand(&self) -> bool {
        !self.0.lock().in_hand.is_empty()
    }

    /// What has come of all of them, in order, once they are done.
    pub(super) fn finish(&self) -> Option<impl Iterator<Item = D> + use<F, D>> {
        let mut state = self.0.lock();
        let is_done = state.waiting.is_empty() && state.in_hand.is_empty();
        let mut done = if is_done { std::mem::take(&mut state.done) } else { return None };
        done.sort_by_key(|(number, _)| *number);
        Some(done.into_iter().map(|(_, done)| done))
    }

    /// No leg is begun any more, and what is made is for nobody.
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
        let is_taken = |leg: &Leg<F>| {
            leg.file().is_some_and(|file| self.in_hand.iter().any(|other| other.file() == Some(file)))
        };
        self.waiting.iter().position(|leg| !is_taken(leg)).filter(|_| !self.is_over)
    }
}

impl<F: Fragment> Leg<F> {
    /// The file of its target.
    fn file(&self) -> Option<u64> {
        self.target.as_ref().map(|part| part.fragment.id())
    }
}

impl<F, D> InHand<F, D> {
    pub(super) fn leg(&self) -> &Leg<F> {
        &self.leg
    }

    pub(super) fn done(self, done: D) {
        let mut state = self.legs.0.lock();
        state.in_hand.retain(|leg| !Arc::ptr_eq(leg, &self.leg));
        if !state.is_over {
            state.done.push((self.leg.number, done));
        }
    }
}

impl<F, D> Drop for InHand<F, D> {
    fn drop(&mut self) {
        let mut state = self.legs.0.lock();
        if let Some(place) = state.in_hand.iter().position(|leg| Arc::ptr_eq(leg, &self.leg)) {
            let undone = state.in_hand.swap_remove(place);
            state.waiting.push_front(undone);
        }
    }
}

#[cfg(test)]
mod tests;
