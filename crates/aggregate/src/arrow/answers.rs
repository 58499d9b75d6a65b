//! What functions answer, as arrays: of which type follows from the function and the columns that it is given, and so is
//! known before the first row.

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::column::{plain_type, refusal};
use crate::answer_kind::AnswerKind;
use crate::catalog::name_of;
use crate::ordered::Number;
use crate::value::Value;

/// The type of what a function answers that is given columns of these types: one of [`Answers`].
pub(super) fn answer_type(function: &str, columns: &[&DataType]) -> DataType {
    match AnswerKind::of(function) {
        AnswerKind::Int => DataType::Int64,
        AnswerKind::Float => DataType::Float64,
        AnswerKind::Truth => DataType::Boolean,
        AnswerKind::Number => number_type(name_of(function), columns.first().map(|kind| plain_type(kind))),
        AnswerKind::Text if columns.iter().any(|kind| is_bytes(plain_type(kind))) => DataType::Binary,
        AnswerKind::Text => DataType::Utf8,
    }
}

/// That of exact numbers of a column.
fn number_type(function: &str, column: Option<&DataType>) -> DataType {
    let column = column.unwrap_or(&DataType::Utf8);
    match column {
        _ if function == "isum" => decimal(0),
        column if column.is_integer() && function == "sum" => decimal(0),
        DataType::UInt64 => decimal(0),
        column if column.is_integer() => DataType::Int64,
        // Bits of numbers that may be no integers.
        _ if !matches!(function, "sum" | "min" | "max") => DataType::Utf8,
        column if column.is_floating() => DataType::Float64,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => decimal((*scale).max(0)),
        // Numbers of texts: of any size, and exact.
        _ => DataType::Utf8,
    }
}

/// The type of answers that this text, its own, stands for.
pub(super) fn answer_type_of(text: &str) -> Option<DataType> {
    let plain = [DataType::Int64, DataType::Float64, DataType::Boolean, DataType::Utf8, DataType::Binary];
    let decimals = (0..=DECIMAL128_MAX_PRECISION).map(|scale| decimal(scale as i8));
    plain.into_iter().chain(decimals).find(|kind| kind.to_string() == text)
}

fn decimal(scale: i8) -> DataType {
    DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)
}

/// Whether this is a type of texts.
pub(super) fn is_unicode(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether texts of this type may be no Unicode.
pub(super) fn is_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

/// The answers of one function.
pub(super) enum Answers {
    Ints(Int64Builder),
    Floats(Float64Builder),
    Truths(BooleanBuilder),
    /// With this many digits behind the point.
    Decimals(i8, Decimal128Builder),
    Texts(BinaryBuilder),
    Bytes(BinaryBuilder),
}

impl Answers {
    /// None yet, of one of these types.
    pub(super) fn new(kind: &DataType) -> Self {
        match kind {
            DataType::Int64 => Self::Ints(Int64Builder::new()),
            DataType::Float64 => Self::Floats(Float64Builder::new()),
            DataType::Boolean => Self::Truths(BooleanBuilder::new()),
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale @ 0..) => {
                let values = Decimal128Builder::new().with_data_type(kind.clone());
                Self::Decimals(*scale, values)
            }
            DataType::Utf8 => Self::Texts(BinaryBuilder::new()),
            _ => Self::Bytes(BinaryBuilder::new()),
        }
    }

    /// Adds one, and tells about how many bytes it takes.
    pub(super) fn push(&mut self, answer: &Value<'_>) -> Result<usize> {
        let is_null = *answer == Value::Null;
        match self {
            Self::Ints(values) => {
                let whole = match answer {
                    Value::I64(value) => Some(*value),
                    Value::I128(value) => i64::try_from(*value).ok(),
                    _ => None,
                };
                values.append_option(known(whole, is_null, answer, "an integer of 64 bits")?);
            }
            Self::Floats(values) => {
                values.append_option(known(answer.as_f64(), is_null, answer, "a number")?)
            }
            Self::Truths(values) => {
                let truth = if let Value::Bool(truth) = answer { Some(*truth) } else { None };
                values.append_option(known(truth, is_null, answer, "a truth")?);
            }
            Self::Decimals(scale, values) => {
                // By the number: texts of very small ones have an exponent.
                let number = answer.as_exact_number();
                let units = number.and_then(|number| number.in_units((*scale).into()));
                let kind = "a number of 38 digits, with as many behind the point as its column's have";
                values.append_option(known(units, is_null, answer, kind)?);
            }
            Self::Texts(values) | Self::Bytes(values) if is_null => values.append_null(),
            Self::Texts(values) | Self::Bytes(values) => {
                let text = answer.to_text();
                values.append_value(&text);
                return Ok(text.len());
            }
        }
        Ok(size_of::<i64>())
    }

    /// All of them.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let array: ArrayRef = match self {
            Self::Texts(values) => Arc::new(StringArray::try_from_binary(values.finish()).map_err(refusal)?),
            Self::Ints(values) => ArrayBuilder::finish(values),
            Self::Floats(values) => ArrayBuilder::finish(values),
            Self::Truths(values) => ArrayBuilder::finish(values),
            Self::Decimals(_, values) => ArrayBuilder::finish(values),
            Self::Bytes(values) => ArrayBuilder::finish(values),
        };
        Ok(array)
    }
}

/// A value that is none only where the answer is.
fn known<T>(value: Option<T>, is_null: bool, answer: &Value<'_>, kind: &str) -> Result<Option<T>> {
    match value {
        _ if is_null => Ok(None),
        Some(value) => Ok(Some(value)),
        None => {
            let text = String::from_utf8_lossy(&answer.to_text()).chars().take(64).collect::<String>();
            Err(Error::invalid(format!("`{text}` is not {kind}")))
        }
    }
}

/// A decimal number in units of the last digit of its column, of which `scale` stand behind the point, or before it where
/// that is below 0; nothing where it is no multiple of that, or has more than 38 digits.
pub fn units(text: &[u8], scale: impl Into<i16>) -> Option<i128> {
    Number::parse_exact(std::str::from_utf8(text).ok()?)?.in_units(scale.into())
}
