//! How far windows were rolled up and dropped, and what follows: where a value goes, and which windows have a range of
//! time. An entry beside the declaration keeps it.
//!
//! **Invariant:** of each time that is kept, a tier has all values, or it has none of them and a finer tier has all; but
//! of the window that is being rolled up the next tier has the keys up to one.
//!
//! **Invariant:** a window is dropped only once it was rolled up, if there is a coarser tier.

use std::ops::Range;

use forebay_base::wire::{Reader, put_bytes};
use forebay_base::{Error, Result};

use super::Tiers;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// What each tier has lies from here on: a window's beginning.
    pub(super) floors: Vec<u64>,
    /// Up to where each tier but the last was rolled up: a window's beginning.
    pub(super) rolled: Vec<u64>,
    pub(super) rolling: Option<Rolling>,
}

/// The window that is being rolled up: the first that was not yet, of its tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rolling {
    pub(super) tier: usize,
    pub(super) start: u64,
    /// The last key that the next tier has.
    pub(super) key: Vec<u8>,
}

/// Windows of a tier.
pub(super) type Piece = (usize, Range<u64>);

impl Marks {
    pub(super) fn new(tiers: &Tiers) -> Self {
        Self { floors: vec![0; tiers.len()], rolled: vec![0; tiers.len() - 1], rolling: None }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        debug_assert!(
            self.floors.is_sorted_by(|finer, coarser| finer >= coarser),
            "coarser tiers reach back farther"
        );
        debug_assert!(
            self.rolled.is_sorted_by(|finer, coarser| finer >= coarser),
            "finer tiers are rolled up first"
        );
        debug_assert!(
            self.floors.iter().zip(&self.rolled).all(|(floor, rolled)| floor <= rolled),
            "what is not rolled up is kept"
        );
        let mut out = Vec::new();
        self.floors.iter().chain(&self.rolled).for_each(|time| out.extend_from_slice(&time.to_le_bytes()));
        if let Some(Rolling { tier, start, key }) = &self.rolling {
            out.push(*tier as u8);
            out.extend_from_slice(&start.to_le_bytes());
            put_bytes(&mut out, key);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8], tiers: &Tiers) -> Result<Self> {
        Self::read(&mut Reader::new(bytes), tiers).ok_or_else(|| {
            Error::invalid(format!("what is kept of how far windows were rolled up is none: {bytes:?}"))
        })
    }

    fn read(reader: &mut Reader<'_>, tiers: &Tiers) -> Option<Self> {
        let mut times = |count: usize| (0..count).map(|_| reader.u64()).collect::<Option<Vec<_>>>();
        let (floors, rolled) = (times(tiers.len())?, times(tiers.len() - 1)?);
        let rolling = match reader.remaining() {
            0 => None,
            _ => {
                let tier = usize::from(reader.u8()?);
                let rolling = Rolling { tier, start: reader.u64()?, key: reader.bytes()?.to_vec() };
                Some(rolling).filter(|rolling| rolling.tier < rolled.len())
            }
        };
        (reader.remaining() == 0).then_some(Self { floors, rolled, rolling })
    }

    /// The marks for a key.
    pub(super) fn of_key(&self, tiers: &Tiers, key: &[u8]) -> Self {
        let (passed, others) = self.of_keys(tiers);
        match &self.rolling {
            Some(rolling) if key <= &rolling.key[..] => passed,
            _ => others,
        }
    }

    /// The marks for keys up to the one that is being rolled up, and for those behind it.
    pub(super) fn of_keys(&self, tiers: &Tiers) -> (Self, Self) {
        let others = Self { rolling: None, ..self.clone() };
        let mut passed = others.clone();
        if let Some(Rolling { tier, start, .. }) = self.rolling {
            debug_assert_eq!(passed.rolled[tier], start, "windows are rolled up in order");
            passed.rolled[tier] = tiers.period(tier).end(start);
        }
        (passed, others)
    }

    /// The windows to which the values of a window of the finest tier go, each as its tier and beginning: its own, if it
    /// is kept, and all to which it was rolled up.
    pub(super) fn targets(&self, tiers: &Tiers, start: u64) -> Vec<(usize, u64)> {
        let mut targets = Vec::new();
        for tier in 0..tiers.len() {
            let window = tiers.period(tier).start(start);
            if window >= self.floors[tier] {
                targets.push((tier, window));
            }
            if self.rolled.get(tier).is_none_or(|rolled| start >= *rolled) {
                break;
            }
        }
        targets
    }

    /// The windows that together have a range of time, each of the coarsest tier that has it. What was dropped of all
    /// tiers is left out.
    pub(super) fn cover(&self, tiers: &Tiers, times: &Range<u64>) -> Result<Vec<Piece>> {
        let kept_from = self.floors.last().map_or(0, |floor| times.start.max(*floor));
        let mut gaps: Vec<Range<u64>> =
            Vec::from_iter((kept_from < times.end).then_some(kept_from..times.end));
        let mut pieces = Vec::new();
        for tier in (0..tiers.len()).rev() {
            let period = tiers.period(tier);
            // From here on only finer tiers have all.
            let limit = if tier == 0 { u64::MAX } else { self.rolled[tier - 1] };
            for gap in std::mem::take(&mut gaps) {
                let start = period.ceil(gap.start).max(self.floors[tier]);
                let end = if limit <= gap.end { limit } else { period.start(gap.end) };
                if start >= end {
                    gaps.push(gap);
                    continue;
                }
                gaps.extend([gap.start..start, end..gap.end].into_iter().filter(|gap| !gap.is_empty()));
                pieces.push((tier, start..end));
            }
        }
        match gaps.first() {
            None => Ok(pieces),
            Some(gap) => Err(self.not_kept(tiers, gap)),
        }
    }

    fn not_kept(&self, tiers: &Tiers, gap: &Range<u64>) -> Error {
        let tier = self.floors.iter().position(|floor| gap.start >= *floor).unwrap_or_default();
        let (period, whole) = (tiers.period(tier), tiers.period(tier).around(gap.start));
        Error::invalid(format!(
            "from {} to {} is no whole number of windows; there, they are by {period}, such as that from {} to {}",
            gap.start, gap.end, whole.start, whole.end
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;

    fn tiers() -> Tiers {
        Tiers::new(Period::milliseconds(1), 2)
            .then(Period::milliseconds(4), 3)
            .then(Period::milliseconds(16), 3)
    }

    #[test]
    fn marks_come_back_and_other_bytes_do_not() {
        let mut marks = Marks { floors: vec![9, 8, 0], rolled: vec![11, 8], rolling: None };
        for rolling in [None, Some(Rolling { tier: 1, start: 8, key: b"key".to_vec() })] {
            marks.rolling = rolling;
            let bytes = marks.encode();
            assert_eq!(Marks::decode(&bytes, &tiers()).unwrap(), marks);
            for end in (0..bytes.len()).filter(|end| *end != 40) {
                assert!(Marks::decode(&bytes[..end], &tiers()).is_err(), "cut at {end}");
            }
        }
    }

    /// Every time of every range is had by exactly one window that it is in, or the range is refused.
    #[test]
    fn a_range_is_covered_once() {
        let tiers = tiers();
        let marks = Marks { floors: vec![29, 20, 0], rolled: vec![31, 28], rolling: None };
        for (start, end) in (0..40_u64).flat_map(|start| (start..40).map(move |end| (start, end))) {
            let Ok(pieces) = marks.cover(&tiers, &(start..end)) else {
                let is_odd = |time: u64| match time {
                    0..20 => !time.is_multiple_of(16),
                    20..29 => !time.is_multiple_of(4),
                    _ => false,
                };
                assert!(
                    is_odd(start) || is_odd(end) || start < 29 && end < 31,
                    "{start} to {end} is refused"
                );
                continue;
            };
            for time in 0..48 {
                let has = |(tier, piece): &&Piece| {
                    let window = tiers.period(*tier).start(time);
                    // Of a coarser tier a window has what was rolled up to it.
                    piece.contains(&window) && (*tier == 0 || time < marks.rolled[tier - 1])
                };
                let windows = pieces.iter().filter(has).count();
                assert_eq!(
                    windows,
                    usize::from((start..end).contains(&time)),
                    "{time} of {start} to {end}: {pieces:?}"
                );
            }
        }
        assert!(marks.cover(&tiers, &(0..u64::MAX)).is_ok());
    }

    #[test]
    fn a_range_that_is_refused_is_told_the_length_of_windows() {
        let marks = Marks { floors: vec![29, 20, 0], rolled: vec![31, 28], rolling: None };
        let told = marks.cover(&tiers(), &(1..2)).unwrap_err().to_string();
        assert!(told.contains("there, they are by 16 ms, such as that from 0 to 16"), "{told}");
    }

    #[test]
    fn a_value_goes_wherever_its_window_went() {
        let marks = Marks { floors: vec![29, 20, 0], rolled: vec![31, 28], rolling: None };
        assert_eq!(marks.targets(&tiers(), 40), [(0, 40)]);
        assert_eq!(marks.targets(&tiers(), 30), [(0, 30), (1, 28)]);
        assert_eq!(marks.targets(&tiers(), 25), [(1, 24), (2, 16)]);
        assert_eq!(marks.targets(&tiers(), 5), [(2, 0)]);
        let marks = Marks { floors: vec![29, 20, 16], ..marks };
        assert!(marks.targets(&tiers(), 5).is_empty());
    }
}
