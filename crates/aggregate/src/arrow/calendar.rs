//! Days, times of day and points in time as ISO 8601 writes them, with as many digits as their unit has, so that texts
//! of years 0 to 9999 are ordered as times are.

use std::fmt::{self, Display, Formatter};

const SECONDS_A_DAY: i64 = 86_400;

/// A day, by how many days it is behind the first of 1970.
#[derive(Clone, Copy, Debug)]
pub struct Day(pub i64);

impl Display for Day {
    /// Of the Gregorian calendar, continued backwards. After Howard Hinnant's `civil_from_days`: years begin in March,
    /// so that the leap day is a year's last, and 400 years are a cycle.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let days = self.0.saturating_add(719_468);
        let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        match cycle * 400 + year + next {
            year @ 0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
            // Where reader and writer agree on six digits: with a sign.
            year => write!(out, "{year:+07}-{month:02}-{day:02}"),
        }
    }
}

/// A time of day.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// How much of the day has gone,
    pub value: i64,
    /// in parts of a second, of which a second has this many.
    pub parts: i64,
}

impl Display for Time {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.value / self.parts, self.value % self.parts);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(out, "{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        match self.parts.ilog10() as usize {
            0 => Ok(()),
            digits => write!(out, ".{fraction:0digits$}"),
        }
    }
}

/// A point in time, from the beginning of 1970 on.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// How far that is, in parts of a second,
    pub value: i64,
    /// of which a second has this many.
    pub parts: i64,
    /// Whether it is one of UTC, which a `Z` tells, or of some local time.
    pub zone: Zone,
}

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// UTC.
    Utc,
    /// Nobody says.
    Local,
}

impl Display for Point {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let day = SECONDS_A_DAY * self.parts;
        let time = Time { value: self.value.rem_euclid(day), parts: self.parts };
        let zone = if self.zone == Zone::Utc { "Z" } else { "" };
        write!(out, "{}T{time}{zone}", Day(self.value.div_euclid(day)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (-25_508, "1900-03-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-000001-12-31"),
            (2_932_897, "+010000-01-01"),
        ] {
            assert_eq!(Day(days).to_string(), text);
        }
        let point = |value, parts, zone| Point { value, parts, zone }.to_string();
        assert_eq!(point(1_709_210_096_789, 1000, Zone::Utc), "2024-02-29T12:34:56.789Z");
        assert_eq!(point(-1, 1_000_000, Zone::Local), "1969-12-31T23:59:59.999999");
        assert_eq!(point(-1, 1, Zone::Local), "1969-12-31T23:59:59");
        for value in [i64::MIN, i64::MAX] {
            assert!(!point(value, 1000, Zone::Utc).is_empty() && !Day(value).to_string().is_empty());
            assert!(!Time { value, parts: 1_000_000_000 }.to_string().is_empty());
        }
    }
}
