//! [`WindowShape`]: by which column rows fall into windows, how long these are, and how many are kept.

use std::fmt;

use forebay::{Error, Period, Result, Tiers};

const WEEK_MILLISECONDS: u64 = 7 * 24 * 3600 * 1000;

/// How long windows are, or how long they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many milliseconds.
    Milliseconds(u64),
    /// So many months.
    Months(u64),
}

impl Length {
    /// Of a text such as `15m`, `7d` or `1mo`, or why it is none.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        for (unit, months) in [("mo", 1), ("q", 3), ("y", 12)] {
            if let Some(number) = text.strip_suffix(unit) {
                let number = number.parse::<u32>().ok().filter(|number| *number > 0);
                let number = number.ok_or("months, quarters and years are whole numbers from 1 on")?;
                return Ok(Self::Months(u64::from(number) * months));
            }
        }
        let time = forebay_units::times::parse(text)
            .map_err(|reason| format!("{reason}; mo, q and y are months, quarters and years"))?;
        Ok(Self::Milliseconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
    }

    fn period(self) -> Result<Period> {
        Ok(match self {
            Self::Milliseconds(WEEK_MILLISECONDS) => Period::WEEK,
            Self::Milliseconds(milliseconds) => Period::milliseconds(milliseconds),
            Self::Months(1) => Period::MONTH,
            Self::Months(3) => Period::QUARTER,
            Self::Months(12) => Period::YEAR,
            Self::Months(months) => {
                return Err(Error::invalid(format!("windows are of 1, 3 or 12 months, and not of {months}")));
            }
        })
    }

    /// How many windows of `every` reach back that far.
    fn windows(self, every: Self) -> Result<u32> {
        let windows = match (self, every) {
            (Self::Milliseconds(all), Self::Milliseconds(one)) | (Self::Months(all), Self::Months(one)) => {
                all.div_ceil(one)
            }
            _ => {
                return Err(Error::invalid(format!(
                    "retain is {self}, and every is {every}: say both in months, or neither"
                )));
            }
        };
        u32::try_from(windows).ok().filter(|windows| *windows < u32::MAX).ok_or_else(|| {
            Error::invalid(format!("{windows} windows are too many; leave retain out to keep all"))
        })
    }
}

/// As [`Length::parse`] reads it.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Milliseconds(milliseconds) => write!(f, "{milliseconds}ms"),
            Self::Months(months) => write!(f, "{months}mo"),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct WindowShape {
    /// The column of times.
    pub time: String,
    /// How long windows are.
    pub period: Period,
    every: Length,
    /// How many are kept besides those in which it is now; `u32::MAX` is all.
    keep: u32,
}

impl WindowShape {
    /// Windows by this column, of which those are kept that reach back so far; all of them without.
    pub fn new(time: String, every: Length, retain: Option<Length>) -> Result<Self> {
        let keep = retain.map_or(Ok(u32::MAX), |retain| retain.windows(every))?;
        Ok(Self { time, period: every.period()?, every, keep })
    }

    /// The same as windows of the database have it.
    pub fn tiers(&self) -> Tiers {
        Tiers::new(self.period, self.keep)
    }

    /// What is kept of it: the column, how long windows are, and how many are kept.
    pub fn kept(&self) -> Vec<u8> {
        serde_json::json!([self.time, self.every.to_string(), self.keep]).to_string().into_bytes()
    }

    /// Of what is kept, or why that is none.
    pub fn of_kept(bytes: &[u8]) -> std::result::Result<Self, String> {
        let (time, every, keep): (String, String, u32) =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let every = Length::parse(&every)?;
        let period = every.period().map_err(|error| error.to_string())?;
        Ok(Self { time, period, every, keep })
    }
}

impl fmt::Display for WindowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time=\"{}\", every=\"{}\"", self.time, self.every)?;
        if self.keep == u32::MAX { Ok(()) } else { write!(f, ", of which {} past ones are kept", self.keep) }
    }
}
