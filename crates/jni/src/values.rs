//! Values of keys and answers as they cross: each a byte that says what it is, and an item. `dev.forebay.Values` has the
//! same numbers.

use arrow_schema::{DataType, Field, TimeUnit};
use forebay::aggregate::Value;
use forebay::{Error, Result};
use forebay_aggregate::arrow::{PartialSchema, units};

use crate::items::{Items, broken, push};

/// Nothing.
const NULL: u8 = 0;
/// A text, or bytes.
const BYTES: u8 = 1;
/// The text of a whole number, a float or a truth.
const WORD: u8 = 2;
/// The text of a decimal number, without an exponent.
const DECIMAL: u8 = 3;
/// Days since 1970, as text.
const DAYS: u8 = 4;
/// Nanoseconds since 1970, since midnight, or of a duration, as text.
const NANOSECONDS: u8 = 5;
/// Answers alone: bytes that are no text.
const BINARY: u8 = 6;
/// Answers alone: a float's text, and a truth's.
const FLOAT: u8 = 7;
const TRUTH: u8 = 8;

/// The key of the values that Java gives, one for each column.
pub(crate) fn key(schema: &PartialSchema, given: &[u8]) -> Result<Vec<u8>> {
    let (mut items, mut texts) = (Items(given), Vec::new());
    for column in schema.keys() {
        if items.is_empty() {
            return Err(wrong_key(schema));
        }
        texts.push(text(items.byte()?, items.bytes()?, column)?);
    }
    if !items.is_empty() {
        return Err(wrong_key(schema));
    }
    let texts: Vec<Option<&[u8]>> = texts.iter().map(|text| text.as_deref()).collect();
    schema.key_of(&texts)
}

fn wrong_key(schema: &PartialSchema) -> Error {
    let names: Vec<&str> = schema.keys().iter().map(|column| &column.name()[..]).collect();
    Error::invalid(format!("give a value for each column of the key: {}", names.join(", ")))
}

/// The text that stands in a key for a value of a column.
fn text(what: u8, item: &[u8], column: &Field) -> Result<Option<Vec<u8>>> {
    let kind = column.data_type();
    let wrong = || {
        let shown = String::from_utf8_lossy(item);
        Error::invalid(format!("column `{}` has values of {kind}; `{shown}` is none", column.name()))
    };
    let number =
        || -> Result<i128> { str::from_utf8(item).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong) };
    let is_text = matches!(
        kind,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    );
    let number = match (what, kind) {
        (NULL, _) => return Ok(None),
        (BYTES, _) if is_text => return Ok(Some(item.to_vec())),
        (WORD | DECIMAL, _) if scale(kind).is_some() => {
            scale(kind).and_then(|scale| units(item, scale)).ok_or_else(wrong)?
        }
        (WORD, _) if !is_text => return Ok(Some(item.to_vec())),
        (DAYS, DataType::Date32) => number()?,
        (DAYS, DataType::Date64) => number()? * 86_400_000,
        (
            NANOSECONDS,
            DataType::Timestamp(unit, _)
            | DataType::Time32(unit)
            | DataType::Time64(unit)
            | DataType::Duration(unit),
        ) => in_units(number()?, *unit).ok_or_else(wrong)?,
        (NULL..=NANOSECONDS, _) => return Err(wrong()),
        _ => return Err(broken()),
    };
    Ok(Some(number.to_string().into_bytes()))
}

/// How many digits stand behind the point of a decimal; below 0 as many zeros stand before it.
fn scale(kind: &DataType) -> Option<i8> {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

/// None where a column of this unit has no such value.
fn in_units(nanoseconds: i128, unit: TimeUnit) -> Option<i128> {
    let divisor = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    };
    (nanoseconds % divisor == 0).then(|| nanoseconds / divisor)
}

/// Appends an answer of a column of this type.
pub(crate) fn push_answer(out: &mut Vec<u8>, value: &Value<'_>, kind: &DataType) -> Result<()> {
    let what = match (value, kind) {
        (Value::Null, _) => NULL,
        (_, DataType::Boolean) => TRUTH,
        (_, DataType::Float64) => FLOAT,
        (_, DataType::Int64) => WORD,
        (_, DataType::Decimal128(..)) => DECIMAL,
        (_, DataType::Utf8) => BYTES,
        (_, DataType::Binary) => BINARY,
        _ => return Err(Error::bug(format!("an answer of {kind} has no type in Java"))),
    };
    out.push(what);
    let text = value.to_text();
    // All answers of a column have as many digits behind the point.
    let scaled = scale(kind).and_then(|scale| Some(format!("{}E-{scale}", units(&text, scale)?)));
    push(out, Some(scaled.as_deref().map_or(&text[..], str::as_bytes)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_type_have_their_text() {
        let of = |what, item: &str, kind: DataType| {
            let told = text(what, item.as_bytes(), &Field::new("c", kind, true));
            told.map(|text| text.map(|text| String::from_utf8(text).unwrap()))
                .map_err(|error| error.to_string())
        };
        let some = |text: &str| Ok(Some(text.to_string()));
        assert_eq!(of(NULL, "", DataType::Int64), Ok(None));
        assert_eq!(of(WORD, "-7", DataType::Int32), some("-7"));
        assert_eq!(of(DECIMAL, "1.5", DataType::Decimal128(10, 2)), some("150"));
        assert_eq!(of(DECIMAL, "1.50", DataType::Decimal128(10, 1)), some("15"));
        assert_eq!(of(WORD, "3", DataType::Decimal128(10, 2)), some("300"));
        assert_eq!(of(WORD, "123000", DataType::Decimal128(10, -3)), some("123"));
        assert!(of(WORD, "123", DataType::Decimal128(10, -3)).is_err());
        assert_eq!(of(DAYS, "-2", DataType::Date64), some("-172800000"));
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(of(NANOSECONDS, "-1000", micros.clone()), some("-1"));
        assert!(of(NANOSECONDS, "-1", micros.clone()).is_err_and(|told| told.contains("`-1` is none")));
        assert_eq!(of(NANOSECONDS, "1000000", DataType::Time32(TimeUnit::Millisecond)), some("1"));
        for wrong in [of(DAYS, "1", micros), of(BYTES, "1", DataType::Int8), of(WORD, "1", DataType::Utf8)] {
            assert!(wrong.as_ref().is_err_and(|told| told.contains("column `c`")), "{wrong:?}");
        }
        assert!(of(99, "1", DataType::Int8).is_err());
    }
}
