//! Periods of time, and the tiers by which windows are kept. Times are milliseconds since 1970, in UTC.
//!
//! **Invariant:** periods of a tier lie side by side, from time 0 on, and where one of a coarser tier begins, so does one
//! of each finer tier.

use std::fmt;
use std::ops::Range;

use forebay_base::{Error, Result};

const DAY_MILLISECONDS: u64 = 24 * 3600 * 1000;
/// The first of January 1970 was a Thursday: the first Monday came four days later.
const FIRST_MONDAY: u64 = 4 * DAY_MILLISECONDS;
/// The shortest month.
const MONTH_MILLISECONDS_MIN: u64 = 28 * DAY_MILLISECONDS;

/// How long the windows of a tier are. The first of them begins in 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(Length);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Of that many milliseconds; from `offset` on if it is not 0, and what is before that is one of its own.
    Fixed {
        milliseconds: u64,
        offset: u64,
    },
    Months(u64),
}

impl Period {
    /// A minute.
    pub const MINUTE: Self = Self::fixed(60 * 1000, 0);
    /// An hour.
    pub const HOUR: Self = Self::fixed(3600 * 1000, 0);
    /// A day in UTC.
    pub const DAY: Self = Self::fixed(DAY_MILLISECONDS, 0);
    /// A week, from Monday on.
    pub const WEEK: Self = Self::fixed(7 * DAY_MILLISECONDS, FIRST_MONDAY);
    /// A month of the calendar.
    pub const MONTH: Self = Self(Length::Months(1));
    /// Three months: from January, April, July and October on.
    pub const QUARTER: Self = Self(Length::Months(3));
    /// A year of the calendar.
    pub const YEAR: Self = Self(Length::Months(12));

    const fn fixed(milliseconds: u64, offset: u64) -> Self {
        Self(Length::Fixed { milliseconds, offset })
    }

    /// So many milliseconds, at least one.
    pub fn milliseconds(milliseconds: u64) -> Self {
        Self::fixed(milliseconds.max(1), 0)
    }

    /// The window in which a time is, from its first millisecond to that of the next one.
    pub fn around(self, time: u64) -> Range<u64> {
        let start = self.start(time);
        start..self.end(start)
    }

    /// Where the window of a time begins.
    pub(super) fn start(self, time: u64) -> u64 {
        match self.0 {
            Length::Fixed { milliseconds, offset } => match time.checked_sub(offset) {
                Some(behind) => time - behind % milliseconds,
                None => 0,
            },
            Length::Months(months) => {
                let month = month_of(time);
                month_start(month - month % months)
            }
        }
    }

    /// Where the window ends that begins here.
    pub(super) fn end(self, start: u64) -> u64 {
        debug_assert_eq!(self.start(start), start, "a window begins here");
        match self.0 {
            Length::Fixed { offset, .. } if start < offset => offset,
            Length::Fixed { milliseconds, .. } => start.saturating_add(milliseconds),
            Length::Months(months) => month_start(month_of(start) + months),
        }
    }

    /// Where the first window begins that begins at a time or later.
    pub(super) fn ceil(self, time: u64) -> u64 {
        let start = self.start(time);
        if start == time { time } else { self.end(start) }
    }

    /// Where the window begins that is so many before the one that begins here. `u32::MAX` is all of them.
    pub(super) fn back(self, start: u64, windows: u32) -> u64 {
        let windows = match windows {
            u32::MAX => return 0,
            windows => u64::from(windows),
        };
        match self.0 {
            Length::Fixed { milliseconds, .. } => {
                self.start(start.saturating_sub(milliseconds.saturating_mul(windows)))
            }
            Length::Months(months) => month_start(month_of(start).saturating_sub(months * windows)),
        }
    }

    /// Whether windows of a longer period begin only where one of these does.
    fn divides(self, coarser: Self) -> bool {
        match (self.0, coarser.0) {
            (
                Length::Fixed { milliseconds, offset },
                Length::Fixed { milliseconds: longer, offset: of_longer },
            ) => {
                let behind = of_longer.checked_sub(offset);
                longer > milliseconds
                    && longer.is_multiple_of(milliseconds)
                    && behind.is_some_and(|behind| behind.is_multiple_of(milliseconds))
            }
            (Length::Fixed { milliseconds, offset }, Length::Months(_)) => {
                offset == 0 && DAY_MILLISECONDS.is_multiple_of(milliseconds)
            }
            (Length::Months(months), Length::Months(more)) => more > months && more.is_multiple_of(months),
            (Length::Months(_), Length::Fixed { .. }) => false,
        }
    }

    /// How long so many of them are at least, and at most.
    fn span(self, windows: u32) -> (u128, u128) {
        let windows = match windows {
            u32::MAX => return (u128::MAX, u128::MAX),
            windows => u128::from(windows),
        };
        match self.0 {
            Length::Fixed { milliseconds, .. } => {
                let all = u128::from(milliseconds) * windows;
                (all, all)
            }
            Length::Months(months) => {
                let months = u128::from(months) * windows;
                (months * u128::from(MONTH_MILLISECONDS_MIN), months * 31 * u128::from(DAY_MILLISECONDS))
            }
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.0) {
            (Self::MINUTE, _) => f.write_str("minute"),
            (Self::HOUR, _) => f.write_str("hour"),
            (Self::DAY, _) => f.write_str("day"),
            (Self::WEEK, _) => f.write_str("week"),
            (Self::MONTH, _) => f.write_str("month"),
            (Self::QUARTER, _) => f.write_str("quarter"),
            (Self::YEAR, _) => f.write_str("year"),
            (_, Length::Fixed { milliseconds, .. }) => write!(f, "{milliseconds} ms"),
            (_, Length::Months(months)) => write!(f, "{months} months"),
        }
    }
}

/// How many months a time lies behind January 1970, by the civil calendar.
fn month_of(time: u64) -> u64 {
    // Years begin in March here, so that a leap day is the last of its year; 719,468 days before 1970 began year 0.
    let days = time / DAY_MILLISECONDS + 719_468;
    let (cycle, of_cycle) = (days / 146_097, days % 146_097);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    // March of 1970 is month 2.
    (cycle * 400 + year) * 12 + month_from_march + 2 - 1970 * 12
}

/// When that month begins.
fn month_start(month: u64) -> u64 {
    let from_march = month + 1970 * 12 - 2;
    let (years, month_from_march) = (from_march / 12, from_march % 12);
    let (cycle, year) = (years / 400, years % 400);
    let days = cycle * 146_097 + 365 * year + year / 4 - year / 100 + (153 * month_from_march + 2) / 5;
    (days - 719_468).saturating_mul(DAY_MILLISECONDS)
}

/// The tiers of [windows](crate::Windows), finest first: how long the windows of each are, and how many are kept.
///
/// `Tiers::new(Period::HOUR, 48).then(Period::DAY, 60).then(Period::MONTH, u32::MAX)` keeps 48 hours, 60 days, and all
/// months: besides the windows in which it is now, that many of before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers(Vec<(Period, u32)>);

impl Tiers {
    /// One tier, of which so many past windows are kept; `u32::MAX` keeps all.
    pub fn new(period: Period, keep: u32) -> Self {
        Self(vec![(period, keep)])
    }

    /// A coarser tier behind it, to which windows are rolled up once they are past. What is kept of it must reach back
    /// at least as far, and its windows must begin where finer ones do: opening checks that.
    pub fn then(mut self, period: Period, keep: u32) -> Self {
        self.0.push((period, keep));
        self
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn period(&self, tier: usize) -> Period {
        self.0[tier].0
    }

    /// Where the first window begins that is kept of a tier.
    pub(super) fn kept_from(&self, tier: usize, now: u64) -> u64 {
        let (period, keep) = self.0[tier];
        period.back(period.start(now), keep)
    }

    pub(super) fn validate(&self) -> Result<()> {
        for pair in self.0.windows(2) {
            let [(finer, keep), (coarser, keep_coarser)] = [pair[0], pair[1]];
            if !finer.divides(coarser) {
                return Err(Error::invalid(format!(
                    "windows of a {finer} cannot be rolled up to those of a {coarser}: each of these must be several of \
                     those, and begin with one"
                )));
            }
            if coarser.span(keep_coarser).0 < finer.span(keep).1 {
                return Err(Error::invalid(format!(
                    "{keep_coarser} windows of a {coarser} reach back less far than {keep} of a {finer}; keep more"
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (period, keep)) in self.0.iter().enumerate() {
            write!(f, "{}{period}:{keep}", if at == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = DAY_MILLISECONDS;

    #[test]
    fn months_are_those_of_the_calendar() {
        let mut start = 0;
        for month in 0..12 * 500 {
            let year = 1970 + month / 12;
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match month % 12 {
                1 => 28 + u64::from(is_leap),
                3 | 5 | 8 | 10 => 30,
                _ => 31,
            };
            assert_eq!(month_start(month), start, "month {month}");
            assert_eq!((month_of(start), month_of(start + days * DAY - 1)), (month, month));
            start += days * DAY;
        }
    }

    #[test]
    fn periods_lie_side_by_side() {
        for period in [Period::HOUR, Period::DAY, Period::WEEK, Period::MONTH, Period::QUARTER, Period::YEAR]
        {
            let (mut start, mut starts) = (0, vec![0]);
            for _ in 0..600 {
                let end = period.end(start);
                assert_eq!(period.around(end - 1), start..end, "{period}");
                assert_eq!((period.ceil(start), period.ceil(start + 1)), (start, end));
                start = end;
                starts.push(start);
            }
            assert_eq!(period.back(start, 500), starts[100], "{period}");
            assert_eq!(period.back(start, u32::MAX), 0);
            assert_eq!(Period::milliseconds(1).back(1_764_075_600_000, u32::MAX), 0, "all are kept");
            assert!(period.around(u64::MAX).start < u64::MAX);
        }
        assert_eq!(Period::WEEK.start(1_764_028_800_000), 1_763_942_400_000, "a Monday");
    }

    #[test]
    fn tiers_that_do_not_go_together_are_refused() {
        let hours = || Tiers::new(Period::HOUR, 48);
        assert!(hours().then(Period::DAY, 2).then(Period::MONTH, 1).validate().is_ok());
        assert!(hours().then(Period::DAY, 7).then(Period::WEEK, 1).then(Period::YEAR, 1).validate().is_err());
        assert!(hours().then(Period::DAY, 1).validate().is_err(), "the days reach back less far");
        let all = Tiers::new(Period::milliseconds(1), u32::MAX);
        assert!(all.clone().then(Period::HOUR, u32::MAX).validate().is_ok());
        assert!(all.then(Period::YEAR, u32::MAX - 1).validate().is_err(), "all reach back farther");
        assert!(hours().then(Period::milliseconds(5_400_000), 99).validate().is_err());
        assert!(Tiers::new(Period::MONTH, 1).then(Period::DAY, 99).validate().is_err());
        assert!(hours().then(Period::HOUR, 99).validate().is_err());
    }
}
