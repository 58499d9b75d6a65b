//! When the entries of a file expire, as a list's footer or a tree's root tells it: so it is known to be over, or about
//! half over, without anything else being read.

use forebay_base::expiry::{self, NEVER};
use forebay_base::{Block, Kind, Record};

/// Counted while a file is written. All 0 in those of tables without a time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiries {
    /// How many entries expire at all.
    pub records: u64,
    /// When the first of those does, in milliseconds since 1970.
    pub first: u64,
    /// When the last of those does.
    pub last: u64,
}

impl Expiries {
    /// Counts a record that is written.
    pub fn add(&mut self, record: &Record<'_>) {
        let (_, expiry) = expiry::split(record.value);
        if record.kind == Kind::Delete || expiry == NEVER {
            return;
        }
        self.first = if self.records == 0 { expiry } else { self.first.min(expiry) };
        self.last = self.last.max(expiry);
        self.records += 1;
        debug_assert!(self.first <= self.last);
    }

    pub(crate) fn add_block(&mut self, block: &Block) {
        (0..block.len()).for_each(|index| self.add(&block.record(index)));
    }

    /// When this many entries have expired, if they do so evenly between the first and the last; `None` for never.
    pub fn until(&self, records: u64) -> Option<u64> {
        match records {
            0 => Some(0),
            all if all == self.records => Some(self.last),
            some if some > self.records => None,
            some => {
                let share = some as f64 / self.records as f64;
                Some(self.first + ((self.last - self.first) as f64 * share) as u64)
            }
        }
    }

    /// How many entries have expired by then, if they do so evenly.
    pub fn by(&self, now: u64) -> u64 {
        if now >= self.last {
            return self.records;
        }
        let share = now.saturating_sub(self.first) as f64 / (self.last - self.first).max(1) as f64;
        debug_assert!((0.0..=1.0).contains(&share));
        (self.records as f64 * share) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(expiries: &[u64]) -> Expiries {
        let mut sum = Expiries::default();
        for &expiry in expiries {
            let mut stored = Vec::new();
            expiry::join(b"v", expiry, &mut stored);
            sum.add(&Record::put(b"k", &stored));
        }
        sum.add(&Record::delete(b"k"));
        sum
    }

    #[test]
    fn entries_that_never_expire_and_tombstones_do_not_count() {
        assert_eq!(of(&[]), Expiries::default());
        assert_eq!(of(&[30, NEVER, 10]), Expiries { records: 2, first: 10, last: 30 });
    }

    #[test]
    fn what_lies_between_the_first_and_the_last_is_taken_to_be_even() {
        let even = of(&[100, 150, 200, 300]);
        assert_eq!((even.by(99), even.by(100), even.by(200), even.by(300)), (0, 0, 2, 4));
        assert_eq!(
            (even.until(0), even.until(2), even.until(4), even.until(5)),
            (Some(0), Some(200), Some(300), None)
        );
        let at_once = of(&[7, 7]);
        assert_eq!((at_once.by(6), at_once.by(7)), (0, 2));
        assert_eq!(of(&[NEVER]).until(1), None);
    }
}
