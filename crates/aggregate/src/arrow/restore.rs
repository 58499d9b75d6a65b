//! Keys as what they were: the texts that a group has for its columns become arrays of the columns' types.
//!
//! **Invariant:** a value whose text is [`Form::Exact`](super::Form::Exact) comes back as it was, but that minus zero is
//! zero, and one NaN is as good as another.

use std::str::FromStr;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder};
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray, new_null_array,
};
use arrow_schema::{DataType, TimeUnit};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::column::{for_each_int, for_each_long, refusal};

/// An array of this type of these texts.
pub(super) fn restored(texts: BinaryArray, kind: &DataType) -> Result<ArrayRef> {
    let len = texts.len();
    let array: ArrayRef = match kind {
        DataType::Null => new_null_array(kind, len),
        DataType::Boolean => {
            let mut truths = BooleanBuilder::with_capacity(len);
            for text in &texts {
                truths.append_option(text.map(|text| parsed(text, kind)).transpose()?);
            }
            Arc::new(truths.finish())
        }
        DataType::Utf8 => Arc::new(unicode(texts)?),
        DataType::LargeUtf8 => Arc::new(unicode(texts)?.iter().collect::<LargeStringArray>()),
        DataType::Utf8View => Arc::new(unicode(texts)?.iter().collect::<StringViewArray>()),
        DataType::Binary => Arc::new(texts),
        DataType::LargeBinary => Arc::new(texts.iter().collect::<LargeBinaryArray>()),
        DataType::BinaryView => Arc::new(texts.iter().collect::<BinaryViewArray>()),
        DataType::FixedSizeBinary(bytes) => {
            let mut values = FixedSizeBinaryBuilder::with_capacity(len, *bytes);
            for text in &texts {
                match text {
                    Some(text) => values.append_value(text).map_err(refusal)?,
                    None => values.append_null(),
                }
            }
            Arc::new(values.finish())
        }
        DataType::Float16 => primitives::<Float16Type>(&texts, kind, |text| {
            Ok(<Float16Type as ArrowPrimitiveType>::Native::from_f32(parsed(text, kind)?))
        })?,
        DataType::Float32 => primitives::<Float32Type>(&texts, kind, |text| parsed(text, kind))?,
        DataType::Float64 => primitives::<Float64Type>(&texts, kind, |text| parsed(text, kind))?,
        kind => integers(&texts, kind)?,
    };
    debug_assert_eq!(array.len(), len, "a value or a null for each");
    Ok(array)
}

fn integers(texts: &BinaryArray, kind: &DataType) -> Result<ArrayRef> {
    macro_rules! parse {
        ($($kind:pat => $type:ty,)*) => {
            match kind {
                $($kind => return primitives::<$type>(texts, kind, |text| parsed(text, kind)),)*
                _ => {}
            }
        };
    }
    for_each_int!(parse);
    for_each_long!(parse);
    Err(Error::invalid(format!("{kind} is not a type to group by: cast it")))
}

fn primitives<T: ArrowPrimitiveType>(
    texts: &BinaryArray,
    kind: &DataType,
    value: impl Fn(&[u8]) -> Result<T::Native>,
) -> Result<ArrayRef> {
    let mut values = PrimitiveBuilder::<T>::with_capacity(texts.len()).with_data_type(kind.clone());
    for text in texts {
        values.append_option(text.map(&value).transpose()?);
    }
    Ok(Arc::new(values.finish()))
}

fn unicode(texts: BinaryArray) -> Result<StringArray> {
    StringArray::try_from_binary(texts).map_err(refusal)
}

fn parsed<T: FromStr>(text: &[u8], kind: &DataType) -> Result<T> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        let text = String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned();
        Error::invalid(format!("`{text}` is not a value of {kind}"))
    })
}
