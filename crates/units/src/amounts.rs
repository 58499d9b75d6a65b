//! Counts, as a person writes them: `5000`, `200M`, `6.25e12`. The units are powers of 1000.

const WRONG: &str = "a count is a whole number, such as 5000, 200M or 6.25e12";
const TOO_MANY: &str = "more than can be counted";

/// The number that `text` stands for.
pub fn parse(text: &str) -> Result<u64, String> {
    let (text, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 3),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 6),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 9),
        Some(b'T' | b't') => (&text[..text.len() - 1], 12),
        _ => (text, 0),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<u32>().map_err(|_| WRONG)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WRONG.into());
    }
    let digits: u64 = digits.parse().map_err(|_| TOO_MANY)?;
    if digits == 0 {
        return Ok(0);
    }
    let zeros = exponent.saturating_add(unit).checked_sub(fraction.len() as u32).ok_or(WRONG)?;
    let number = 10u64.checked_pow(zeros).and_then(|power| digits.checked_mul(power));
    number.ok_or_else(|| TOO_MANY.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units_and_exponents() {
        for (text, number) in [
            ("0", 0),
            ("5000", 5000),
            ("200M", 200_000_000),
            ("1e12", 1_000_000_000_000),
            ("6.25e12", 6_250_000_000_000),
            ("1.50k", 1500),
            ("2.0", 2),
            ("1e3M", 1_000_000_000),
            ("0e99", 0),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5", ".5", "1e", "e3", "1e-3", "1 2", "1e20", "99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
