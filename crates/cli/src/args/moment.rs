//! Reads moments: up to which a database is restored.

use forebay::Until;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Reads `--until`: the number of a record, or a time of UTC.
pub(crate) fn parse_until(text: &str) -> Result<Until, String> {
    if let Ok(sequence) = text.parse() {
        return Ok(Until::Sequence(sequence));
    }
    let milliseconds = milliseconds_of(text);
    milliseconds
        .map(Until::Time)
        .ok_or_else(|| "give the number of a record, or a time such as 2026-06-12T09:30:00Z".into())
}

/// The milliseconds since 1970 of a time of the form `2026-06-12T09:30:00Z`; seconds may have a fraction.
fn milliseconds_of(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let days = days_of(year, month, day).filter(|_| is_time && is_fraction)?;
    let milliseconds = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    Some((days * DAY_SECONDS + hour * 3600 + minute * 60 + second) * 1000 + milliseconds)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split(between).map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// The days from 1970 to a day of the Gregorian calendar; `None` where there is no such day.
fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok()?.checked_sub(1).filter(|month| *month < lengths.len())?;
    let is_day = (1970..10_000).contains(&year) && (1..=lengths[month]).contains(&day);
    let of_years = || (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum::<u64>();
    is_day.then(|| of_years() + lengths[..month].iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_numbers_or_times() {
        assert_eq!(parse_until("1042"), Ok(Until::Sequence(1042)));
        for (text, milliseconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59.5Z", 951_868_799_500),
            ("2026-06-12T09:30:00Z", 1_781_256_600_000),
            ("2026-06-12T09:30:00.123456Z", 1_781_256_600_123),
        ] {
            assert_eq!(parse_until(text), Ok(Until::Time(milliseconds)), "{text}");
        }
        for text in
            ["", "-1", "2026-06-12", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-06-12T24:00:00Z"]
        {
            assert!(parse_until(text).is_err(), "{text}");
        }
    }
}
