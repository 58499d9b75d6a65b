//! What came in between: since a job was planned something may have been cut out of runs, have come other than by a
//! write buffer, or have left memory. Where that meets what the job merges, what it has read may be gone, or have
//! something newer in front of it.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::Range;

/// This many are remembered. Of a job that was planned before these, all that came since may meet it: of key ranges,
/// what other compactors evict meanwhile.
const BREAKS_KEPT: usize = 512;

/// All of them since the table was opened. No file has them: a job ends with the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaks {
    count: u64,
    /// The newest, oldest first.
    ranges: VecDeque<Arc<Range>>,
}

impl Breaks {
    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// One more, of this range.
    pub(super) fn note(&mut self, range: &Range) {
        self.count += 1;
        self.ranges.push_back(Arc::new(range.clone()));
        if self.ranges.len() > BREAKS_KEPT {
            self.ranges.pop_front();
        }
        debug_assert!(self.ranges.len() as u64 <= self.count, "what is remembered has been");
    }

    /// Whether any since the first `known` may meet one of these ranges.
    pub(super) fn meet<'a>(&self, known: u64, mut ranges: impl Iterator<Item = &'a Range>) -> bool {
        debug_assert!(known <= self.count, "what was planned knows of nothing that is still to come");
        let later = usize::try_from(self.count - known).unwrap_or(usize::MAX);
        let Some(first) = self.ranges.len().checked_sub(later) else { return true };
        ranges.any(|range| self.ranges.range(first..).any(|other| !other.intersect(range).is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Order;

    use super::*;

    fn range(low: u8, high: u8) -> Range {
        let bound = |key| Order::Lexical.bound(&[key]);
        Range { low: bound(low), high: Some(bound(high)) }
    }

    #[test]
    fn only_what_came_since_and_meets_it_ends_a_job() {
        let mut breaks = Breaks::default();
        breaks.note(&range(1, 5));
        let known = breaks.count();
        let meet = |breaks: &Breaks, ranges: &[Range]| breaks.meet(known, ranges.iter());
        assert!(!meet(&breaks, &[range(1, 5)]), "it was there before");
        breaks.note(&range(5, 7));
        assert!(!meet(&breaks, &[range(1, 5), range(7, 9)]) && meet(&breaks, &[range(1, 2), range(4, 6)]));
        assert!(breaks.meet(0, [range(1, 2)].iter()));
    }

    #[test]
    fn what_is_not_remembered_meets_everything() {
        let mut breaks = Breaks::default();
        (0..BREAKS_KEPT).for_each(|_| breaks.note(&range(1, 2)));
        assert!(!breaks.meet(0, [range(3, 4)].iter()));
        breaks.note(&range(1, 2));
        assert!(breaks.meet(0, [range(3, 4)].iter()) && !breaks.meet(1, [range(3, 4)].iter()));
    }
}
