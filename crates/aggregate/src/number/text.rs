//! Numbers of texts, and texts of numbers.

use std::fmt;

use super::{Class, DIGITS_MAX, Number};

/// No text's number begins at a higher power of ten, or a lower one: it is infinite, or zero.
const EXPONENT_MAX: i32 = 20_000;

/// The number of a text, and whether it is all that the text says.
pub(super) fn parse(text: &str) -> Option<(Number, bool)> {
    let (is_negative, size) = match text.as_bytes() {
        [b'-', size @ ..] => (true, size),
        [b'+', size @ ..] => (false, size),
        size => (false, size),
    };
    let Some(read) = Digits::read(size) else { return parse_special(is_negative, size) };
    let Digits { digits, exponent, is_exact, .. } = read;
    let begins = exponent.saturating_add(digits.checked_ilog10().map_or(0, |last| last as i32));
    if digits > 0 && begins > EXPONENT_MAX {
        let class = if is_negative { Class::MinusInfinity } else { Class::Infinity };
        return Some((Number::special(class), false));
    }
    if begins < -EXPONENT_MAX {
        return Some((Number::ZERO, digits == 0));
    }
    Some((Number::new(is_negative, digits, exponent), is_exact))
}

fn parse_special(is_negative: bool, text: &[u8]) -> Option<(Number, bool)> {
    let is = |name: &str| text.eq_ignore_ascii_case(name.as_bytes());
    let class = match is_negative {
        _ if is("nan") => Class::NotANumber,
        true if is("inf") || is("infinity") => Class::MinusInfinity,
        false if is("inf") || is("infinity") => Class::Infinity,
        _ => return None,
    };
    Some((Number::special(class), true))
}

/// Digits as they are read.
#[derive(Default)]
struct Digits {
    digits: u128,
    /// How many of them, without zeros before the first.
    count: u32,
    exponent: i32,
    /// Whether something was left out, and whether it was half a digit or more.
    is_exact: bool,
}

impl Digits {
    fn read(text: &[u8]) -> Option<Self> {
        let mut read = Self { is_exact: true, ..Self::default() };
        let (mut at, mut seen, mut is_behind_point) = (0, false, false);
        // The first digit that there is no room for.
        let mut next = None;
        while let Some(byte) = text.get(at) {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    read.push(byte - b'0', is_behind_point, &mut next);
                }
                b'.' if !is_behind_point => is_behind_point = true,
                b'e' | b'E' if seen => {
                    let exponent = exponent(text.get(at + 1..)?)?;
                    read.exponent = read.exponent.saturating_add(exponent);
                    at = text.len();
                    continue;
                }
                _ => return None,
            }
            at += 1;
        }
        if next >= Some(5) {
            read.digits += 1;
        }
        seen.then_some(read)
    }

    #[inline]
    fn push(&mut self, digit: u8, is_behind_point: bool, next: &mut Option<u8>) {
        if self.count < DIGITS_MAX || self.count == DIGITS_MAX && self.digits <= (u128::MAX - 9) / 10 {
            self.digits = self.digits * 10 + u128::from(digit);
            self.count += u32::from(self.count > 0 || digit > 0);
            self.exponent = self.exponent.saturating_sub(i32::from(is_behind_point));
        } else {
            next.get_or_insert(digit);
            self.count = DIGITS_MAX + 1;
            self.is_exact &= digit == 0;
            self.exponent = self.exponent.saturating_add(i32::from(!is_behind_point));
        }
    }
}

/// The exponent that a text is; one that is too long is as large as any.
fn exponent(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits
        .iter()
        .fold(0_i32, |all, digit| all.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
    Some(sign * size)
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if matches!(self.class, Class::Negative | Class::MinusInfinity) { "-" } else { "" };
        match self.class {
            Class::NotANumber => return f.write_str("NaN"),
            Class::Infinity | Class::MinusInfinity => return write!(f, "{sign}inf"),
            _ => {}
        }
        let Self { digits, exponent, .. } = self.stripped();
        let text = digits.to_string();
        let (count, places) = (text.len() as i32, -exponent);
        match exponent {
            0.. if count + exponent <= 39 => {
                write!(f, "{sign}{text}{:0<1$}", "", exponent as usize)
            }
            // A point before, among or close before the digits.
            ..0 if places - count < 20 => {
                let text = format!("{text:0>0$}", places as usize + 1);
                let (whole, fraction) = text.split_at(text.len() - places as usize);
                write!(f, "{sign}{whole}.{fraction}")
            }
            _ => {
                let (first, rest) = text.split_at(1);
                let point = if rest.is_empty() { "" } else { "." };
                write!(f, "{sign}{first}{point}{rest}e{}", exponent + count - 1)
            }
        }
    }
}
