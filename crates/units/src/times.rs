//! Times, as a person writes them: a whole number and a unit, such as `90s`, `12h` or `7d`.

use std::time::Duration;

/// The time that `text` stands for: not zero.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return Err("a time is a whole number and a unit: ms, s, m, h, d or w, such as 7d".into()),
    };
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    let time = time.filter(|&time| time > 0 && time < u64::MAX);
    time.map(Duration::from_millis).ok_or_else(|| format!("`{text}` is no time, or too long a one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        assert_eq!(parse("90s"), seconds(90));
        assert_eq!(parse("1m"), seconds(60));
        assert_eq!(parse("12h"), seconds(43_200));
        assert_eq!(parse("7d"), seconds(604_800));
        assert_eq!(parse("2w"), seconds(1_209_600));
        assert_eq!(parse("5ms"), Ok(Duration::from_millis(5)));
        for wrong in
            ["", "7", "d", "-1d", "1.5h", "0s", "7 d", "7D", "99999999999999999999s", "9999999999999999w"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
