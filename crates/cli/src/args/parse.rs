//! Reads the values of arguments that several commands take.

use std::time::Duration;

use forebay::{Durability, Layout};
use forebay_aggregate::names::similar;

/// What `--layout` takes.
pub(crate) const LAYOUT_HELP: &str = "How a new table is organised [default: wb-tree]. In hash order: wb-tree. In key \
    order, from cheap writes to cheap reads: no-merge, tiering[:t=10], wb-tree:ordered, geometric:r=3, geometric:p=2, \
    leveling[:t=10], jungle[:c=3], range-merge, immediate";

/// What the names of layouts begin with.
const LAYOUTS: [&str; 8] =
    ["no-merge", "immediate", "geometric", "range-merge", "leveling", "tiering", "jungle", "wb-tree"];

/// Reads `--max-space-amplification`.
pub(crate) fn parse_space_amplification(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.25);
    ratio.ok_or_else(|| "give a ratio of at least 1.25".into())
}

/// Reads `--layout`.
pub(crate) fn parse_layout(text: &str) -> Result<Layout, String> {
    text.parse::<Layout>().map_err(|error| {
        let name = text.split(':').next().unwrap_or_default();
        let like = similar(name, LAYOUTS)
            .filter(|_| !LAYOUTS.contains(&name))
            .map_or(String::new(), |like| format!("; did you mean {like}?"));
        format!("{error}{like}")
    })
}

/// Reads `--durability`.
pub(crate) fn parse_durability(text: &str) -> Result<Durability, String> {
    text.parse::<Durability>().map_err(|error| error.to_string())
}

/// Reads `--ttl`: a whole number and its unit, such as 90s, 12h or 7d.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
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
    let ttl = number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    let ttl = ttl.filter(|&ttl| ttl > 0 && ttl < u64::MAX);
    ttl.map(Duration::from_millis).ok_or_else(|| format!("`{text}` is too long a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        assert_eq!(parse_ttl("90s"), seconds(90));
        assert_eq!(parse_ttl("1m"), seconds(60));
        assert_eq!(parse_ttl("12h"), seconds(43_200));
        assert_eq!(parse_ttl("7d"), seconds(604_800));
        assert_eq!(parse_ttl("2w"), seconds(1_209_600));
        assert_eq!(parse_ttl("5ms"), Ok(Duration::from_millis(5)));
        for wrong in
            ["", "7", "d", "-1d", "1.5h", "0s", "7 d", "7D", "99999999999999999999s", "9999999999999999w"]
        {
            assert!(parse_ttl(wrong).is_err(), "{wrong}");
        }
    }
}
