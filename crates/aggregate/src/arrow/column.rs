//! [`Column`]: an array of a record batch as a [`Lane`]. Numbers, texts and codes of dictionaries lie where they lay.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, new_empty_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use forebay_base::{Error, Result};

use super::answers::{is_bytes, is_unicode};
use super::calendar::{Day, Point, Time, Zone};
use super::dictionaries::Dictionaries;
use crate::columns::{Bits, Items, Lane, Texts};

/// Hands a macro the types whose values are integers that 64 bits hold.
macro_rules! for_each_int {
    ($call:ident) => {
        $call! {
            DataType::Int8 => Int8Type, DataType::Int16 => Int16Type, DataType::Int32 => Int32Type,
            DataType::Int64 => Int64Type, DataType::UInt8 => UInt8Type, DataType::UInt16 => UInt16Type,
            DataType::UInt32 => UInt32Type, DataType::Date32 => Date32Type, DataType::Date64 => Date64Type,
            DataType::Time32(TimeUnit::Second) => Time32SecondType,
            DataType::Time32(TimeUnit::Millisecond) => Time32MillisecondType,
            DataType::Time64(TimeUnit::Microsecond) => Time64MicrosecondType,
            DataType::Time64(TimeUnit::Nanosecond) => Time64NanosecondType,
            DataType::Timestamp(TimeUnit::Second, _) => TimestampSecondType,
            DataType::Timestamp(TimeUnit::Millisecond, _) => TimestampMillisecondType,
            DataType::Timestamp(TimeUnit::Microsecond, _) => TimestampMicrosecondType,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType,
            DataType::Duration(TimeUnit::Second) => DurationSecondType,
            DataType::Duration(TimeUnit::Millisecond) => DurationMillisecondType,
            DataType::Duration(TimeUnit::Microsecond) => DurationMicrosecondType,
            DataType::Duration(TimeUnit::Nanosecond) => DurationNanosecondType,
        }
    };
}
/// The same of those that may need more.
macro_rules! for_each_long {
    ($call:ident) => {
        $call! {
            DataType::UInt64 => UInt64Type, DataType::Decimal32(..) => Decimal32Type,
            DataType::Decimal64(..) => Decimal64Type, DataType::Decimal128(..) => Decimal128Type,
            DataType::Decimal256(..) => Decimal256Type,
        }
    };
}
pub(super) use {for_each_int, for_each_long};

/// What values of a column are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What tells them apart and gives them back: of a day its number, of a decimal its units.
    Exact,
    /// What people read, and functions are given: of a day `2024-02-29`, of a decimal `-0.05`.
    Shown,
}

/// See the module.
pub(super) struct Column {
    values: Values,
    nulls: Option<NullBuffer>,
}

enum Values {
    Ints(ScalarBuffer<i64>),
    Floats(ScalarBuffer<f64>),
    Singles(ScalarBuffer<f32>),
    Truths(BooleanBuffer),
    Texts { offsets: ScalarBuffer<i32>, bytes: Buffer },
    Codes { codes: ScalarBuffer<i32>, offsets: ScalarBuffer<i32>, bytes: Buffer, dictionary: u64 },
    Nulls(usize),
}

impl Column {
    /// The values of an array; an error where no group can have such, nor any function take them.
    pub(super) fn of(array: &ArrayRef, form: Form, dictionaries: &Dictionaries) -> Result<Self> {
        let kind = array.data_type();
        let nulls = array.nulls().cloned();
        let values = match kind {
            DataType::Null => Values::Nulls(array.len()),
            DataType::Boolean => Values::Truths(array.as_boolean().values().clone()),
            DataType::Float16 => {
                let values = array.as_primitive::<Float16Type>().values();
                Values::Singles(values.iter().map(|value| value.to_f32()).collect())
            }
            DataType::Float32 => Values::Singles(array.as_primitive::<Float32Type>().values().clone()),
            DataType::Float64 => Values::Floats(array.as_primitive::<Float64Type>().values().clone()),
            DataType::Dictionary(..) => return Self::of_dictionary(array, form, dictionaries),
            _ if form == Form::Shown && is_shown(kind) => shown(array)?,
            _ => match texts(array)? {
                Some(texts) => texts,
                None => numbers(array)?,
            },
        };
        Ok(Self { values, nulls })
    }

    fn of_dictionary(array: &ArrayRef, form: Form, dictionaries: &Dictionaries) -> Result<Self> {
        let coded = array.as_any_dictionary();
        let (places, values) = (coded.keys(), coded.values());
        if !(is_unicode(values.data_type()) || is_bytes(values.data_type())) || values.is_empty() {
            // Places of these do not stand for a text. What they stand for is short.
            let plain = arrow_select::take::take(values, places, None).map_err(refusal)?;
            return Self::of(&plain, form, dictionaries);
        }
        let codes = match places.as_primitive_opt::<Int32Type>() {
            Some(places) => places.values().clone(),
            // What stands under nulls may be anything.
            None => coded.normalized_keys().into_iter().map(|code| code as i32).collect(),
        };
        let plain = || match texts(values)? {
            Some(Values::Texts { offsets, bytes }) => Ok((offsets, bytes)),
            _ => Err(Error::bug("a dictionary of texts that are none")),
        };
        let ((offsets, bytes), dictionary) = dictionaries.find(values, plain)?;
        // A place may stand for a null.
        let nulls = array.logical_nulls();
        Ok(Self { values: Values::Codes { codes, offsets, bytes, dictionary }, nulls })
    }

    /// The values as functions and keys are given them.
    pub(super) fn lane(&self) -> Result<Lane<'_>> {
        let items = match &self.values {
            Values::Ints(values) => Items::I64(values),
            Values::Floats(values) => Items::F64(values),
            Values::Singles(values) => Items::F32(values),
            Values::Truths(bits) => Items::Bool(Bits::new(bits.values(), bits.offset()), bits.len()),
            Values::Texts { offsets, bytes } => Items::Bytes(Texts::new(offsets, bytes)?),
            Values::Codes { codes, offsets, bytes, dictionary } => {
                Items::Codes { codes, texts: Texts::new(offsets, bytes)?, dictionary: *dictionary }
            }
            Values::Nulls(len) => Items::Null(*len),
        };
        Lane::new(items, self.nulls.as_ref().map(|nulls| Bits::new(nulls.validity(), nulls.offset())))
    }
}

/// The type of such a column's values without a dictionary.
pub(super) fn plain_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        kind => kind,
    }
}

/// An array of a type that has nothing, where there can be one that is taken.
pub(super) fn empty(kind: &DataType) -> Result<ArrayRef> {
    let is_sound = match plain_type(kind) {
        DataType::Time32(unit) => matches!(unit, TimeUnit::Second | TimeUnit::Millisecond),
        DataType::Time64(unit) => matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond),
        DataType::FixedSizeBinary(bytes) => *bytes >= 0,
        plain => !plain.is_nested(),
    };
    let is_coded = !matches!(kind, DataType::Dictionary(codes, _) if !codes.is_integer());
    let is_taken = is_sound && is_coded;
    if is_taken { Ok(new_empty_array(kind)) } else { Err(not_taken(kind)) }
}

fn not_taken(kind: &DataType) -> Error {
    Error::invalid(format!("{kind} is not a type to group by, or that functions take: cast it"))
}

/// The lanes of some.
pub(super) fn lanes(columns: &[Column]) -> Result<Vec<Lane<'_>>> {
    columns.iter().map(Column::lane).collect()
}

pub(super) fn refusal(error: impl Display) -> Error {
    Error::invalid(error.to_string())
}

/// Texts of whatever kind; none where these are no texts.
fn texts(array: &ArrayRef) -> Result<Option<Values>> {
    let in_place = |offsets: &ScalarBuffer<i32>, bytes: &Buffer| {
        Ok(Some(Values::Texts { offsets: offsets.clone(), bytes: bytes.clone() }))
    };
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            in_place(array.offsets().inner(), array.values())
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            in_place(array.offsets().inner(), array.values())
        }
        DataType::LargeUtf8 => copied(array.as_string::<i64>().iter().map(|text| text.map(str::as_bytes))),
        DataType::Utf8View => copied(array.as_string_view().iter().map(|text| text.map(str::as_bytes))),
        DataType::LargeBinary => copied(array.as_binary::<i64>().iter()),
        DataType::BinaryView => copied(array.as_binary_view().iter()),
        DataType::FixedSizeBinary(_) => copied(array.as_fixed_size_binary().iter()),
        _ => Ok(None),
    }
}

/// Texts one behind the other.
fn copied<'t>(texts: impl Iterator<Item = Option<&'t [u8]>>) -> Result<Option<Values>> {
    let mut texts = texts;
    let mut place = |bytes: &mut Vec<u8>| {
        let text = texts.next()?;
        text.inspect(|text| bytes.extend_from_slice(text));
        Some(())
    };
    written_while(&mut place).map(Some)
}

/// Texts that are written one behind the other, as long as there are some.
fn written_while(write: &mut dyn FnMut(&mut Vec<u8>) -> Option<()>) -> Result<Values> {
    let (mut offsets, mut bytes) = (vec![0], Vec::new());
    while write(&mut bytes).is_some() {
        let end = i32::try_from(bytes.len());
        offsets.push(end.map_err(|_| Error::invalid("2 GiB of texts in a batch; give smaller batches"))?);
    }
    Ok(Values::Texts { offsets: offsets.into(), bytes: bytes.into() })
}

/// The text of each value; of a null it does not matter.
fn written(len: usize, text: impl Fn(usize) -> String) -> Result<Values> {
    let mut at = 0..len;
    written_while(&mut |bytes| at.next().map(|at| bytes.extend_from_slice(text(at).as_bytes())))
}

/// Integers.
fn numbers(array: &ArrayRef) -> Result<Values> {
    if let Some(values) = ints(array) {
        return Ok(Values::Ints(values));
    }
    macro_rules! texts_of {
        ($($kind:pat => $type:ty,)*) => {
            match array.data_type() {
                $($kind => {
                    let values = array.as_primitive::<$type>().values();
                    written(array.len(), |at| values[at].to_string())
                })*
                kind => Err(not_taken(kind)),
            }
        };
    }
    for_each_long!(texts_of)
}

fn ints(array: &ArrayRef) -> Option<ScalarBuffer<i64>> {
    macro_rules! widened_of {
        ($($kind:pat => $type:ty,)*) => {
            match array.data_type() {
                $($kind => Some(widened::<$type>(array)),)*
                _ => None,
            }
        };
    }
    for_each_int!(widened_of)
}

fn widened<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef) -> ScalarBuffer<i64> {
    let values = array.as_primitive::<T>().values();
    if size_of::<T::Native>() == size_of::<i64>() {
        // They are of 64 bits, and signed.
        return ScalarBuffer::new(values.inner().clone(), 0, values.len());
    }
    values.iter().map(|value| (*value).into()).collect()
}

/// Whether people read something else than a number where a value is one.
fn is_shown(kind: &DataType) -> bool {
    kind.is_decimal()
        || matches!(
            kind,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
        )
}

/// What people read.
fn shown(array: &ArrayRef) -> Result<Values> {
    macro_rules! decimals {
        ($($kind:pat => $type:ty,)*) => {
            match array.data_type() {
                $($kind => {
                    let values = array.as_primitive::<$type>();
                    return written(array.len(), |at| values.value_as_string(at));
                })*
                _ => {}
            }
        };
    }
    decimals! {
        DataType::Decimal32(..) => Decimal32Type, DataType::Decimal64(..) => Decimal64Type,
        DataType::Decimal128(..) => Decimal128Type, DataType::Decimal256(..) => Decimal256Type,
    }
    let values = ints(array).unwrap_or_default();
    debug_assert_eq!(values.len(), array.len(), "days and times are integers");
    written(values.len(), |at| {
        let value = values[at];
        match array.data_type() {
            DataType::Date32 => Day(value).to_string(),
            DataType::Date64 => Day(value.div_euclid(86_400_000)).to_string(),
            DataType::Timestamp(unit, zone) => {
                let zone = if zone.is_some() { Zone::Utc } else { Zone::Local };
                Point { value, parts: parts(*unit), zone }.to_string()
            }
            DataType::Time32(unit) | DataType::Time64(unit) => {
                Time { value, parts: parts(*unit) }.to_string()
            }
            _ => value.to_string(),
        }
    })
}

/// How many of a unit a second has.
fn parts(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
