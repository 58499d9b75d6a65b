//! Merge rules that the engine has itself. Their names, which the table keeps, say all of what they do: no code need
//! come with whoever opens the table.
//!
//! **Invariant:** a name means the same for ever. What merges otherwise gets another one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use forebay_base::{Combine, Error, Result};

/// A merge rule that is known wherever a table with it is opened. As text, which the command and C take:
/// `append:DELIMITER`, `append`, `max`, `min` or `add`; in a delimiter, which need not be text, `\n`, `\r`, `\t`,
/// `\x` with two hexadecimal digits, and a backslash with another one or a quote, stand for one byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRule {
    name: Arc<str>,
    act: Act,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    /// With these bytes between.
    Append(Arc<[u8]>),
    Max,
    Min,
    Add,
}

/// What their names begin with, but for the delimiter.
const APPEND: &str = "forebay/append/1:";
const MAX: &str = "forebay/max/1";
const MIN: &str = "forebay/min/1";
const ADD: &str = "forebay/add/1";
/// The longest delimiter, in bytes.
const DELIMITER_BYTES_MAX: usize = 64;
/// Of a number that is added.
const NUMBER_BYTES: usize = 8;

impl StoredRule {
    /// What comes is put behind what is there, with a delimiter of at most 64 bytes between: a list of operands in the
    /// order in which they came.
    pub fn append(delimiter: impl AsRef<[u8]>) -> Result<Self> {
        let delimiter = delimiter.as_ref();
        if delimiter.len() > DELIMITER_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the delimiter has {} bytes; at most {DELIMITER_BYTES_MAX} are allowed",
                delimiter.len()
            )));
        }
        let hex: String = delimiter.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { name: format!("{APPEND}{hex}").into(), act: Act::Append(delimiter.into()) })
    }

    /// The greatest of all, by the order of their bytes.
    pub fn max() -> Self {
        Self { name: MAX.into(), act: Act::Max }
    }

    /// The least of all, by the order of their bytes.
    pub fn min() -> Self {
        Self { name: MIN.into(), act: Act::Min }
    }

    /// The sum of whole numbers of 64 bits, little-endian, with or without a sign, which goes round where it is too large.
    /// Of what is shorter the rest is zeros; of what is longer the first 8 bytes count.
    pub fn add() -> Self {
        Self { name: ADD.into(), act: Act::Add }
    }

    /// The rule that a table keeps by this name, if it is one of these.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            MAX => Some(Self::max()),
            MIN => Some(Self::min()),
            ADD => Some(Self::add()),
            _ => {
                let hex = name.strip_prefix(APPEND)?.as_bytes();
                let digits = hex.iter().map(|&digit| (digit as char).to_digit(16).map(|value| value as u8));
                let digits: Vec<u8> = digits.collect::<Option<_>>()?;
                let (pairs, []) = digits.as_chunks::<2>() else { return None };
                let rule =
                    Self::append(pairs.iter().map(|[high, low]| (high << 4) | low).collect::<Vec<_>>());
                rule.ok().filter(|rule| *rule.name == *name)
            }
        }
    }

    /// What the table keeps.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; NUMBER_BYTES];
    let known = bytes.len().min(NUMBER_BYTES);
    number[..known].copy_from_slice(&bytes[..known]);
    u64::from_le_bytes(number)
}

impl Combine for StoredRule {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        match &self.act {
            Act::Append(delimiter) => {
                out.reserve(older.len() + delimiter.len() + newer.len());
                [older, delimiter, newer].iter().for_each(|bytes| out.extend_from_slice(bytes));
            }
            Act::Max => out.extend_from_slice(newer.max(older)),
            Act::Min => out.extend_from_slice(newer.min(older)),
            Act::Add => {
                out.extend_from_slice(&number(newer).wrapping_add(number(older)).to_le_bytes());
            }
        }
    }
}

impl fmt::Display for StoredRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.act {
            Act::Append(delimiter) if delimiter.is_empty() => f.write_str("append"),
            Act::Append(delimiter) => write!(f, "append:{}", delimiter.escape_ascii()),
            Act::Max => f.write_str("max"),
            Act::Min => f.write_str("min"),
            Act::Add => f.write_str("add"),
        }
    }
}

/// What [`Display`](fmt::Display) has escaped, as it was.
fn unescape(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let [first, rest @ ..] = text {
        let (byte, rest) = match (first, rest) {
            (b'\\', [b'n', rest @ ..]) => (b'\n', rest),
            (b'\\', [b'r', rest @ ..]) => (b'\r', rest),
            (b'\\', [b't', rest @ ..]) => (b'\t', rest),
            (b'\\', [mark @ (b'\\' | b'\'' | b'"'), rest @ ..]) => (*mark, rest),
            (b'\\', [b'x', high, low, rest @ ..]) => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                (((digit(*high)? << 4) | digit(*low)?) as u8, rest)
            }
            (b'\\', _) => return None,
            (plain, rest) => (*plain, rest),
        };
        bytes.push(byte);
        text = rest;
    }
    Some(bytes)
}

impl FromStr for StoredRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.strip_prefix("append:")) {
            ("append", _) => Self::append(""),
            (_, Some(delimiter)) => Self::append(unescape(delimiter.as_bytes()).ok_or_else(|| {
                Error::invalid(format!(
                    "`{text}` has a backslash before what it does not go with; give \\\\ for one, or \\n, \\r, \\t or \\x0a"
                ))
            })?),
            ("max", _) => Ok(Self::max()),
            ("min", _) => Ok(Self::min()),
            ("add", _) => Ok(Self::add()),
            _ => {
                Err(Error::invalid(format!("`{text}` is none of append, append:DELIMITER, max, min and add")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables keep them.
    #[test]
    fn names_stay_as_they_are() {
        for (text, name) in [
            ("append", "forebay/append/1:"),
            ("append:, ", "forebay/append/1:2c20"),
            ("append:\n\u{e9}", "forebay/append/1:0ac3a9"),
            ("max", "forebay/max/1"),
            ("min", "forebay/min/1"),
            ("add", "forebay/add/1"),
        ] {
            let rule: StoredRule = text.parse().unwrap();
            assert_eq!(rule.name(), name);
            assert_eq!(StoredRule::of(name), Some(rule));
        }
        for name in [
            "",
            "append",
            "forebay/append/1:2",
            "forebay/append/1:2C",
            "forebay/append/1:zz",
            "forebay/max/2",
        ] {
            assert_eq!(StoredRule::of(name), None, "{name}");
        }
        assert!(StoredRule::append([b'x'; 64]).is_ok() && StoredRule::append([b'x'; 65]).is_err());
        assert!("most".parse::<StoredRule>().is_err());
        let shown = StoredRule::append("\n").unwrap().to_string();
        assert_eq!(shown, "append:\\n");
    }

    #[test]
    fn what_is_shown_is_taken() {
        for delimiter in [&b", "[..], b"\n\r\t", b"\\n", b"'\"", b"\xff\0\xe9"] {
            let rule = StoredRule::append(delimiter).unwrap();
            assert_eq!(rule.to_string().parse::<StoredRule>().unwrap(), rule);
        }
        for text in ["append:\\", "append:\\q", "append:\\x0", "append:\\xfg"] {
            assert!(text.parse::<StoredRule>().is_err(), "{text}");
        }
    }

    /// Operands are merged in whatever groups.
    #[test]
    fn grouping_makes_no_difference() {
        let operands: [&[u8]; 6] =
            [b"", b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"a", b"12345678901", b"b"];
        let fold = |rule: &StoredRule, newer: &[u8], older: &[u8]| {
            let mut out = Vec::new();
            rule.fold(b"k", newer, older, &mut out);
            out
        };
        for text in ["append", "append:;;", "max", "min", "add"] {
            let rule: StoredRule = text.parse().unwrap();
            for (one, two) in operands.iter().zip(&operands[1..]) {
                for three in operands {
                    let left = fold(&rule, &fold(&rule, three, two), one);
                    assert_eq!(left, fold(&rule, three, &fold(&rule, two, one)), "{text}");
                }
            }
        }
        let append = StoredRule::append(", ").unwrap();
        assert_eq!(fold(&append, b"newer", b"older"), b"older, newer");
        assert_eq!(fold(&StoredRule::add(), &[2], &5u64.to_le_bytes()), 7u64.to_le_bytes());
    }
}
