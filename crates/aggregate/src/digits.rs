//! Numbers in decimal: integers, and floating-point numbers that are short fractions, in a fraction of the time that
//! writing any number takes.

/// Appends an integer.
pub(crate) fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), value.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Of short fractions this makes whole numbers. A floating-point number has it exactly.
const UNITS: u64 = 1_000_000;
/// Those below this have 15 digits at most.
const SIZE_MAX: f64 = 1e9;

/// Appends the shortest text of a floating-point number that is nearest to a number of up to nine digits before the point
/// and six behind it. `false`, and nothing is appended, of others, and of zero.
///
/// No two numbers of up to 15 digits have the same floating-point number nearest to them. So the shortest text has the
/// digits of that number.
pub(crate) fn write_fraction(value: f64, out: &mut Vec<u8>) -> bool {
    let size = value.abs();
    let units = (size * UNITS as f64).round();
    // One division of whole numbers that are floating-point numbers rounds as it should.
    if size >= SIZE_MAX || units == 0.0 || units / UNITS as f64 != size {
        return false;
    }
    let units = units as u64;
    if value < 0.0 {
        out.push(b'-');
    }
    write_int((units / UNITS) as i64, out);
    let (mut fraction, mut digits) = (units % UNITS, *b".000000");
    if fraction > 0 {
        for digit in digits[1..].iter_mut().rev() {
            *digit += (fraction % 10) as u8;
            fraction /= 10;
        }
        let end = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        out.extend_from_slice(&digits[..end]);
    }
    true
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;

    use super::*;

    /// What it writes, where it does.
    fn fraction(value: f64) -> Option<String> {
        let mut out = Vec::new();
        let is_written = write_fraction(value, &mut out);
        assert!(is_written || out.is_empty());
        is_written.then(|| String::from_utf8(out).expect("digits"))
    }

    #[test]
    fn integers_are_those_of_the_library() {
        for seed in 0..10_000 {
            for value in
                [mix(seed).cast_signed() >> (seed % 64), seed as i64, -(seed as i64), i64::MIN, i64::MAX]
            {
                let mut out = b"x".to_vec();
                write_int(value, &mut out);
                assert_eq!(out, format!("x{value}").as_bytes());
            }
        }
    }

    #[test]
    fn fractions_are_those_of_the_library() {
        for short in [1.0, -1.0, 0.5, 47.122215, -0.000001, 999_999_999.999_999, 100.0, 0.3, 12.05] {
            assert_eq!(fraction(short), Some(format!("{short}")));
        }
        for other in [0.0, -0.0, 1e9, -1e300, 1e-7, 0.1 + 0.2, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
            assert_eq!(fraction(other), None, "{other}");
        }
        for seed in 0..100_000 {
            let any = f64::from_bits(mix(seed));
            let units = mix(!seed) % 10_u64.pow(1 + seed as u32 % 16);
            let near = units as f64 / 10_f64.powi(seed as i32 % 9);
            for value in [any, near, -near, near.next_up(), near.next_down(), near + 0.1] {
                if let Some(text) = fraction(value) {
                    assert_eq!(text, format!("{value}"), "seed {seed}");
                }
            }
            let is_short =
                seed % 9 < 7 && (1..1_000_000_000).contains(&(units / 10_u64.pow(seed as u32 % 9)));
            assert!(!is_short || fraction(near).is_some(), "seed {seed}: {near}");
        }
    }
}
