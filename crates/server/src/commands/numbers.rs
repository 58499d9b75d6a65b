//! Scores, as clients write them and as they are shown.

/// A number with a point, or an infinite one.
pub(super) fn score(text: &[u8]) -> Option<f64> {
    let number = std::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
    // What is beyond all numbers is none, but for what says that it is infinite. Nobody tells -0 from 0.
    let is_number = !number.is_nan() && (number.is_finite() || !text.iter().any(u8::is_ascii_digit));
    is_number.then_some(number + 0.0)
}

/// Whole numbers up to here are shown without an exponent.
const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;

/// The fewest digits that tell a number from all others.
pub(super) fn shown(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        return (number as i64).to_string();
    }
    let scientific = format!("{:e}", number.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (digits, exponent) = (digits.replace('.', ""), exponent.parse::<i64>().unwrap_or(0));
    let sign = if number < 0.0 { "-" } else { "" };
    // The last digit stands for this power of ten.
    let (count, power) = (digits.len() as i64, exponent + 1 - digits.len() as i64);
    if power >= 0 && exponent < count + 7 {
        return format!("{sign}{digits}{}", "0".repeat(power as usize));
    }
    if power < 0 && (power > -7 || exponent.abs() < 4) {
        return match usize::try_from(count + power).ok().filter(|before| *before > 0) {
            Some(before) => format!("{sign}{}.{}", &digits[..before], &digits[before..]),
            None => format!("{sign}0.{}{digits}", "0".repeat((-(count + power)) as usize)),
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_and_shown() {
        for (text, expected) in [
            ("1", "1"),
            ("-0", "0"),
            ("3.0e2", "300"),
            ("0.1", "0.1"),
            ("-17.25", "-17.25"),
            ("1e18", "1000000000000000000"),
            ("1e20", "1e+20"),
            ("123456789012345678901", "123456789012345680000"),
            ("1.5e300", "1.5e+300"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-1.25e-10", "-1.25e-10"),
            ("0.0012345678901", "0.0012345678901"),
            ("+inf", "inf"),
            ("-Infinity", "-inf"),
        ] {
            assert_eq!(score(text.as_bytes()).map(shown).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "nan", "1e400", " 1", "1 ", "x", "0x10"] {
            assert_eq!(score(text.as_bytes()), None, "{text}");
        }
    }
}
