//! What of the log is not needed any more, by range of keys. Where a table keeps records in memory, its files do not
//! have all that was flushed: for each range, they have what the log's segments below a mark brought.

use std::sync::Arc;

use forebay_base::{Bound, Range, planted};

/// Ranges side by side, in order, and their marks. Elsewhere the mark is 0. Versions of a table share what is alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(pub(super) Vec<Arc<(Range, u64)>>);

impl Marks {
    /// Files have all that segments below `mark` brought of a range. A higher mark stays: what a newer segment brought
    /// may be in files, or deleted, while an older one still waits.
    pub(super) fn raise(&mut self, range: &Range, mark: u64) {
        debug_assert!(!range.is_empty(), "something is marked");
        let before = if cfg!(invariants) { self.clone() } else { Self::default() };
        let below = Range { low: Bound::least(), high: Some(range.low.clone()) };
        let above = range.high.as_ref().map(|high| Range { low: high.clone(), high: None });
        let marked = |piece: Range, mark: u64| Arc::new((piece, mark));
        let within = |part: &Range| -> Vec<Arc<(Range, u64)>> {
            let pieces = self.0.iter().map(|piece| match piece.0.intersect(part) {
                inside if inside == piece.0 => Arc::clone(piece),
                inside => marked(inside, piece.1),
            });
            pieces.filter(|piece| !piece.0.is_empty()).collect()
        };
        let mut pieces = within(&below);
        let mut gap = Some(range.low.clone());
        for piece in within(range) {
            let (inside, known) = &*piece;
            pieces.extend(gap.map(|low| marked(Range { low, high: Some(inside.low.clone()) }, mark)));
            gap = inside.high.clone();
            let mark = if planted::is("mark-lowered") { mark } else { mark.max(*known) };
            pieces.push(if mark == *known { piece } else { marked(inside.clone(), mark) });
        }
        pieces.extend(gap.map(|low| marked(Range { low, high: range.high.clone() }, mark)));
        pieces.extend(above.iter().flat_map(within));
        pieces.retain(|piece| !piece.0.is_empty());
        pieces.dedup_by(|next, before| {
            let joins = next.1 == before.1 && before.0.high.as_ref() == Some(&next.0.low);
            if joins {
                Arc::make_mut(before).0.high = next.0.high.clone();
            }
            joins
        });
        self.0 = pieces;
        debug_assert_eq!(self.check(), Ok(()), "ranges lie side by side");
        if cfg!(invariants) && !planted::is("mark-lowered") {
            assert!(before.0.iter().all(|piece| self.reaches(&piece.0, piece.1)), "no mark falls");
            assert!(self.reaches(range, mark), "all of the range is marked");
        }
    }

    /// Whether the mark of a range is nowhere lower than this.
    fn reaches(&self, range: &Range, mark: u64) -> bool {
        mark == 0 || self.lacking(mark - 1).iter().all(|lacking| lacking.intersect(range).is_empty())
    }

    /// Says what is wrong with them, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_behind =
            |pair: &[Arc<(Range, u64)>]| pair[0].0.high.as_ref().is_some_and(|high| *high <= pair[1].0.low);
        match self.0.iter().all(|piece| !piece.0.is_empty()) && self.0.windows(2).all(is_behind) {
            true => Ok(()),
            false => Err("marked ranges overlap, or have nothing".into()),
        }
    }

    /// The ranges of which files lack what a segment brought.
    pub(super) fn lacking(&self, segment: u64) -> Vec<Range> {
        let mut ranges = Vec::new();
        let mut low = Some(Bound::least());
        for (piece, _) in self.0.iter().map(|piece| &**piece).filter(|(_, mark)| *mark > segment) {
            let gap = low.map(|low| Range { low, high: Some(piece.low.clone()) });
            ranges.extend(gap.filter(|gap| !gap.is_empty()));
            low = piece.high.clone();
            if low.is_none() {
                return ranges;
            }
        }
        ranges.extend(low.map(|low| Range { low, high: None }));
        debug_assert!(
            ranges.is_sorted_by(|one, next| one.high.as_ref().is_some_and(|high| *high < next.low)),
            "ranges lie in order, with something marked between them"
        );
        ranges
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::Rng;

    use super::*;

    /// Against a mark for every prefix. Marks come in any order, and the highest stays.
    #[test]
    fn marks_are_those_of_every_place() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut marks = Marks::default();
            let mut model = [0; 32];
            for _ in 0..20 {
                let mark = 1 + rng.below(20);
                let (low, length) = (rng.below(32), 1 + rng.below(31));
                let high = (low + length < 32).then(|| Bound::at_prefix(low + length));
                let low_bound = if low == 0 { Bound::least() } else { Bound::at_prefix(low) };
                marks.raise(&Range { low: low_bound, high }, mark);
                let end = (low + length).min(32) as usize;
                model[low as usize..end].iter_mut().for_each(|known| *known = mark.max(*known));
                for segment in 0..=20 {
                    let lacking = marks.lacking(segment);
                    for (prefix, mark) in model.iter().enumerate() {
                        let is_in = lacking.iter().any(|range| range.contains(prefix as u64, b""));
                        assert_eq!(
                            is_in,
                            *mark <= segment,
                            "seed {seed}, prefix {prefix}, segment {segment}"
                        );
                    }
                    assert!(lacking.windows(2).all(|pair| pair[0].high.as_ref() < Some(&pair[1].low)));
                }
            }
        }
    }
}
