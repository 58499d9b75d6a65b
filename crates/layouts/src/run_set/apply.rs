//! Applying an edit: live work and recovery alike. It looks at no file, and needs nothing but the value before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::{Fragment, NodeId, Portion};

use super::set::{Edit, Part, RangeDrop, Replace, Reside, Run, RunSet, Taken, Underway};

/// How many parts more or fewer refer to each fragment.
type References<F> = Vec<(F, i32)>;

/// How many write buffers' bytes it takes until most of what was known of their length is forgotten.
const UNITS_KNOWN: u128 = 8;

/// How long write buffers are, as of one more. A longer one counts at once. By shorter ones it falls, by each as much as
/// it brings: a few that were flushed early are not what a level is made of.
fn unit_bytes(known: u64, flushed: u64) -> u64 {
    let Some(shorter_by) = known.checked_sub(flushed) else { return flushed };
    let falls = u128::from(shorter_by) * u128::from(flushed) / (UNITS_KNOWN * u128::from(known.max(1)));
    known - falls as u64
}

impl<F: Fragment> RunSet<F> {
    /// The value after an edit.
    pub fn apply(&self, edit: &Edit<F>) -> Result<(Self, References<F>)> {
        let mut set = self.clone();
        let mut references = Vec::new();
        match edit {
            Edit::Replace(replace) => set.replace(replace, &mut references)?,
            Edit::Reside(reside) => set.reside(reside, &mut references)?,
            Edit::RangeDrop(dropped) => set.take_range_out(dropped, &mut references)?,
            Edit::Relabel { run, level } => {
                let at = set.place(*run)?;
                Arc::make_mut(&mut set.runs[at]).level = *level;
            }
        }
        set.check_changed(self)
            .map_err(|reason| Error::bug(format!("an edit does not fit its table: {reason}")))?;
        if cfg!(invariants) {
            assert_eq!(set.check(), Ok(()), "an edit that fits leaves sound runs");
            assert_eq!(set.counts(), self.counts_after(&references), "each part refers to its fragment");
        }
        debug_assert_eq!(
            set.parts().count() as i64 - self.parts().count() as i64,
            references.iter().map(|(_, by)| i64::from(*by)).sum(),
            "each part more or fewer is a reference"
        );
        // More before fewer: what goes on under another part must not be taken for unneeded in between.
        references.sort_by_key(|(_, by)| std::cmp::Reverse(*by));
        Ok((set, references))
    }

    /// As [`check`](Self::check), of what is not the same as before.
    fn check_changed(&self, before: &Self) -> Result<(), String> {
        let known: BTreeSet<_> = before.runs.iter().map(Arc::as_ptr).collect();
        let mut changed = self.runs.iter().filter(|run| !known.contains(&Arc::as_ptr(run)));
        changed.try_for_each(|run| run.check())?;
        self.check_runs()
    }

    /// How often parts refer to each fragment.
    fn counts(&self) -> BTreeMap<u64, i64> {
        let mut counts = BTreeMap::new();
        self.parts().for_each(|part| *counts.entry(part.fragment.id()).or_insert(0) += 1);
        counts
    }

    /// The same by what changes.
    fn counts_after(&self, references: &References<F>) -> BTreeMap<u64, i64> {
        let mut counts = self.counts();
        for (fragment, by) in references {
            *counts.entry(fragment.id()).or_insert(0) += i64::from(*by);
        }
        counts.retain(|_, count| *count != 0);
        counts
    }

    fn place(&self, run: NodeId) -> Result<usize> {
        let place = self.runs.iter().position(|other| other.id == run);
        place.ok_or_else(|| Error::bug(format!("an edit is about run {}, which is not there", run.0)))
    }

    fn replace(&mut self, edit: &Replace<F>, references: &mut References<F>) -> Result<()> {
        self.unit_bytes = unit_bytes(self.unit_bytes, edit.flushed_bytes);
        let mut behind = 0;
        if edit.is_ingest {
            let hull = edit.parts.first().zip(edit.parts.last());
            hull.iter().for_each(|(first, last)| {
                self.breaks.note(&Range { low: first.range.low.clone(), high: last.range.high.clone() });
            });
        } else {
            self.let_go(&edit.range, edit.below, references);
            behind = self.runs.iter().position(|run| !run.is_resident).unwrap_or(self.runs.len());
        }
        for taken in &edit.taken {
            let at = self.place(taken.run)?;
            behind = behind.max(at + 1);
            Arc::make_mut(&mut self.runs[at]).take_off(taken, references);
        }
        let at = match self.place(edit.into) {
            Ok(at) => at,
            Err(_) => {
                self.next_id = self.next_id.max(edit.into.0.saturating_add(1));
                let below = if edit.is_ingest { edit.below } else { 0 };
                let (id, level) = (edit.into, edit.level);
                let run = Run { id, level, is_resident: false, below, parts: Vec::new() };
                self.runs.insert(behind, Arc::new(run));
                behind
            }
        };
        references.extend(edit.parts.iter().map(|part| (part.fragment.clone(), 1)));
        let run = Arc::make_mut(&mut self.runs[at]);
        if let Some(first) = edit.parts.first() {
            let place = run.parts.partition_point(|part| part.range.low < first.range.low);
            run.parts.splice(place..place, edit.parts.iter().cloned().map(Arc::new));
        }
        self.underway.retain(|merge| merge.into != edit.into);
        if edit.goes_on {
            let inputs = edit.taken.iter().map(|taken| taken.run).collect();
            self.underway.push(Underway { inputs, into: edit.into, level: edit.level });
        }
        self.forget_empty();
        Ok(())
    }

    /// A resident run takes its place among the others: in front of all that have nothing of its segment or newer ones.
    fn reside(&mut self, edit: &Reside<F>, references: &mut References<F>) -> Result<()> {
        references.extend(edit.parts.iter().map(|part| (part.fragment.clone(), 1)));
        let parts: Vec<_> = edit.parts.iter().cloned().map(Arc::new).collect();
        let (id, below) = (NodeId(self.next_id), edit.below);
        self.next_id += 1;
        let at = self.runs.iter().position(|run| run.below < below).unwrap_or(self.runs.len());
        self.runs.insert(at, Arc::new(Run { id, level: 0, is_resident: true, below, parts }));
        self.forget_empty();
        match self.residents().is_sorted_by(|newer, older| newer.below > older.below) {
            true => Ok(()),
            false => Err(Error::bug("resident runs would not lie as their segments do")),
        }
    }

    /// Resident runs lose what files have by now of a range.
    fn let_go(&mut self, range: &Range, below: u64, references: &mut References<F>) {
        if below == 0 || range.is_empty() {
            return;
        }
        self.marks.raise(range, below);
        let mut lets_go = false;
        for at in 0..self.runs.len() {
            let run = &self.runs[at];
            if run.is_resident && run.below <= below && !run.overlapping(range).is_empty() {
                let taken = self.taken(run.id, range);
                Arc::make_mut(&mut self.runs[at]).take_off(&taken, references);
                debug_assert!(self.runs[at].overlapping(range).is_empty(), "it has let go of the range");
                lets_go = true;
            }
        }
        if lets_go {
            // A key range and a write buffer may be on their way with the same resident runs.
            self.breaks.note(range);
        }
    }

    fn take_range_out(&mut self, edit: &RangeDrop, references: &mut References<F>) -> Result<()> {
        self.let_go(&edit.range, edit.below, references);
        for taken in &edit.taken {
            let at = self.place(taken.run)?;
            Arc::make_mut(&mut self.runs[at]).take_off(taken, references);
        }
        self.breaks.note(&edit.range);
        self.forget_empty();
        Ok(())
    }

    /// Drops runs without parts, and merges of nothing.
    fn forget_empty(&mut self) {
        self.runs.retain(|run| !run.parts.is_empty());
        let runs = &self.runs;
        for merge in &mut self.underway {
            merge.inputs.retain(|&id| runs.iter().any(|run| run.id == id));
        }
        self.underway.retain(|merge| merge.inputs.iter().any(|&id| id != merge.into));
    }
}

impl<F: Fragment> Run<F> {
    fn take_off(&mut self, taken: &Taken, references: &mut References<F>) {
        let parts = self.overlapping(&taken.range);
        references.extend(self.parts[parts.clone()].iter().map(|part| (part.fragment.clone(), -1)));
        let piece = |part: &Part<F>, range: Range, portion: Portion| {
            let piece = Part { range, fragment: part.fragment.clone(), portion, is_bottom: part.is_bottom };
            (!piece.range.is_empty()).then(|| Arc::new(piece))
        };
        let below = self.parts[parts.clone()].first().zip(taken.below).and_then(|(part, portion)| {
            let range = Range { low: part.range.low.clone(), high: Some(taken.range.low.clone()) };
            piece(part, range, portion)
        });
        let above = self.parts[parts.clone()].last().zip(taken.above).zip(taken.range.high.as_ref());
        let above = above.and_then(|((part, portion), high)| {
            piece(part, Range { low: high.clone(), high: part.range.high.clone() }, portion)
        });
        let pieces: Vec<_> = below.into_iter().chain(above).collect();
        references.extend(pieces.iter().map(|part| (part.fragment.clone(), 1)));
        self.parts.splice(parts, pieces);
        debug_assert!(self.overlapping(&taken.range).is_empty(), "all of the range is taken off");
    }
}
