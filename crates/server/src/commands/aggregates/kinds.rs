//! [`Kind`]: the type of a column whose values come as arguments, and what stands for them in Arrow and in keys.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMillisecondArray,
};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, Field, TimeUnit};
use forebay::{Error, Result};
use forebay_aggregate::arrow::calendar::Day;
use forebay_aggregate::arrow::units;

/// See the module. An empty argument is no value, but of texts and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bytes,
    Int,
    Float,
    Bool,
    /// A day, such as `2024-02-29`.
    Date,
    /// Milliseconds since 1970.
    Time,
    /// With this many digits behind the point; below 0, with so many zeros before it.
    Decimal(i8),
}

/// Those without digits, by their names.
const NAMED: [(&str, Kind); 7] = [
    ("text", Kind::Text),
    ("bytes", Kind::Bytes),
    ("int", Kind::Int),
    ("float", Kind::Float),
    ("bool", Kind::Bool),
    ("date", Kind::Date),
    ("time", Kind::Time),
];
const DECIMAL: &str = "decimal";

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Decimal(scale) => write!(f, "{DECIMAL}{scale}"),
            kind => f.write_str(NAMED.iter().find(|(_, named)| named == kind).map_or("", |(name, _)| name)),
        }
    }
}

impl Kind {
    /// Of its name, such as `int` or `decimal2`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if let Some((_, kind)) = NAMED.iter().find(|(named, _)| name.eq_ignore_ascii_case(named)) {
            return Some(*kind);
        }
        let digits = name.strip_prefix(DECIMAL)?.parse::<u8>().ok();
        let digits = digits.filter(|digits| *digits <= DECIMAL128_MAX_PRECISION);
        digits.map(|digits| Self::Decimal(digits.cast_signed()))
    }

    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Decimal(scale) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
        }
    }

    /// What values of a column of Arrow's are given as.
    fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Boolean => Self::Bool,
            DataType::Date32 => Self::Date,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => Self::Decimal(*scale),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytes,
            // Whole numbers, and times as whole numbers of their unit.
            _ => Self::Int,
        }
    }

    /// The values as an array, or the place of the first that is none.
    pub(super) fn array<'a>(
        self,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> std::result::Result<ArrayRef, usize> {
        Ok(match self {
            Self::Text => {
                let texts = values.enumerate().map(|(at, text)| std::str::from_utf8(text).map_err(|_| at));
                Arc::new(texts.map(|text| text.map(Some)).collect::<std::result::Result<StringArray, _>>()?)
            }
            Self::Bytes => Arc::new(values.map(Some).collect::<BinaryArray>()),
            Self::Int => Arc::new(parsed::<i64, Int64Array>(values, number)?),
            Self::Float => Arc::new(parsed::<f64, Float64Array>(values, number)?),
            Self::Bool => Arc::new(parsed::<bool, BooleanArray>(values, truth)?),
            Self::Date => Arc::new(parsed::<i32, Date32Array>(values, day)?),
            Self::Time => Arc::new(parsed::<i64, TimestampMillisecondArray>(values, number)?),
            Self::Decimal(scale) => {
                let array = parsed::<i128, Decimal128Array>(values, |text| units(text, scale))?;
                Arc::new(array.with_data_type(self.data_type()))
            }
        })
    }
}

fn parsed<'a, T, A: FromIterator<Option<T>>>(
    values: impl Iterator<Item = &'a [u8]>,
    parse: impl Fn(&'a [u8]) -> Option<T>,
) -> std::result::Result<A, usize> {
    let values = values.enumerate().map(|(at, text)| match text {
        [] => Ok(None),
        text => parse(text).map(Some).ok_or(at),
    });
    values.collect()
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn truth(text: &[u8]) -> Option<bool> {
    let is = |words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    match () {
        () if is(["true", "1"]) => Some(true),
        () if is(["false", "0"]) => Some(false),
        () => None,
    }
}

/// Days since 1970, of a date as ISO 8601 writes it. After Howard Hinnant's `days_from_civil`.
fn day(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, of_month) = (parts.next()??, parts.next()??, parts.next()??);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&of_month) {
        return None;
    }
    let year = if month > 2 { year } else { year - 1 };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + of_month - 1;
    let days = cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468;
    // There are months without a thirtieth.
    (Day(days).to_string() == text).then_some(i32::try_from(days).ok()?)
}

/// The text that stands in a key for an argument; nothing where that is no value.
pub(super) fn key_text(argument: &[u8], column: &Field) -> Result<Option<Vec<u8>>> {
    let kind = Kind::of(column.data_type());
    if argument.is_empty() && !matches!(kind, Kind::Text | Kind::Bytes) {
        return Ok(None);
    }
    let text = match kind {
        Kind::Bool => truth(argument).map(|truth| truth.to_string()),
        Kind::Date => day(argument).map(|day| day.to_string()),
        Kind::Decimal(scale) => units(argument, scale).map(|units| units.to_string()),
        _ => return Ok(Some(argument.to_vec())),
    };
    let text = text.ok_or_else(|| {
        let shown = String::from_utf8_lossy(&argument[..argument.len().min(64)]).into_owned();
        Error::invalid(format!("column `{}`: `{shown}` is no {kind}", column.name()))
    })?;
    Ok(Some(text.into_bytes()))
}

/// A value of a key as it is shown.
#[derive(Debug, PartialEq)]
pub(super) enum Shown {
    Int(i64),
    Bool(bool),
    Float(String),
    Bytes(Vec<u8>),
}

/// What is shown for the text that stands in a key.
pub(super) fn shown(text: &[u8], kind: &DataType) -> Shown {
    let plain = || Shown::Bytes(text.to_vec());
    let word = std::str::from_utf8(text).unwrap_or_default();
    match Kind::of(kind) {
        Kind::Text | Kind::Bytes => plain(),
        Kind::Bool => Shown::Bool(word == "true"),
        Kind::Float => Shown::Float(word.to_string()),
        Kind::Date => {
            word.parse().map_or_else(|_| plain(), |day| Shown::Bytes(Day(day).to_string().into_bytes()))
        }
        Kind::Decimal(scale) => Shown::Bytes(pointed(word, scale).into_bytes()),
        Kind::Int | Kind::Time => word.parse().map_or_else(|_| plain(), Shown::Int),
    }
}

/// Units with a point before so many of their digits; below 0, with so many zeros behind them.
fn pointed(units: &str, scale: i8) -> String {
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        return if units == "0" { units.into() } else { format!("{units}{}", "0".repeat(places)) };
    }
    let (sign, digits) = units.strip_prefix('-').map_or(("", units), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names() {
        for name in ["text", "bytes", "int", "float", "bool", "date", "time", "decimal0", "decimal38"] {
            assert_eq!(Kind::parse(name).map(|kind| kind.to_string()).as_deref(), Some(name));
        }
        for name in ["", "decimal", "decimal39", "decimal-1", "number"] {
            assert_eq!(Kind::parse(name), None, "{name}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (text, days) in [("1970-01-01", 0), ("2024-02-29", 19_782), ("0000-03-01", -719_468)] {
            assert_eq!(day(text.as_bytes()), Some(days), "{text}");
        }
        for text in ["2023-02-29", "2024-13-01", "2024-1-1", "x", "2024-02", "99999-01-01", "2024-02-29-1"] {
            assert_eq!(day(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_stands_in_a_key_is_shown_as_it_was_given() {
        for (given, kind, expected) in [
            ("-1.50", Kind::Decimal(2), Shown::Bytes(b"-1.50".to_vec())),
            ("0.05", Kind::Decimal(2), Shown::Bytes(b"0.05".to_vec())),
            ("2024-02-29", Kind::Date, Shown::Bytes(b"2024-02-29".to_vec())),
            ("1", Kind::Bool, Shown::Bool(true)),
            ("-7", Kind::Int, Shown::Int(-7)),
            ("a", Kind::Text, Shown::Bytes(b"a".to_vec())),
        ] {
            let field = Field::new("c", kind.data_type(), true);
            let text = key_text(given.as_bytes(), &field).expect("it is sound").expect("it is a value");
            assert_eq!(shown(&text, field.data_type()), expected, "{given}");
        }
        // Of a negative scale units were taken for numbers.
        let field = Field::new("c", DataType::Decimal128(10, -3), true);
        for (given, units) in [("123000", "123"), ("-1000", "-1"), ("0", "0")] {
            let text = key_text(given.as_bytes(), &field).expect("it is sound").expect("it is a value");
            assert_eq!(text, units.as_bytes());
            assert_eq!(shown(&text, field.data_type()), Shown::Bytes(given.into()));
        }
        assert!(key_text(b"123", &field).is_err());
        let field = Field::new("c", Kind::Date.data_type(), true);
        assert_eq!(key_text(b"", &field).expect("it is none"), None);
        assert!(key_text(b"today", &field).is_err());
    }
}
