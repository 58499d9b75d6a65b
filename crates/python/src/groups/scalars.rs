//! Values of Python's as the texts that stand in keys of groups: see `PartialSchema::key_of`.

use arrow_schema::{DataType, Field, TimeUnit};
use forebay_aggregate::arrow::units;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyInt};

use crate::bytes::Bytes;
use crate::failure::{Failure, Outcome};

/// The ordinal of 1970-01-01, as Python counts days.
const EPOCH_ORDINAL: i64 = 719_163;
/// In nanoseconds.
const MICROSECOND: i128 = 1000;
const MILLISECOND: i128 = 1000 * MICROSECOND;
const SECOND: i128 = 1000 * MILLISECOND;
const DAY: i128 = 86_400 * SECOND;

/// What becomes of a time that lies between two of a column's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// No group has it.
    Refused,
    /// It stands for the one before it.
    Floored,
}

/// The text of a value of a column's type; nothing of `None`.
pub(super) fn text_of(
    value: &Bound<'_, PyAny>,
    column: &Field,
    between: Between,
) -> Outcome<Option<Vec<u8>>> {
    if value.is_none() {
        return Ok(None);
    }
    let text = text(value, column.data_type(), between).map_err(|failure| match failure {
        Failure::Python(_) => {
            let kind = value.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
            Failure::type_error(format!(
                "column {} has values of {}, and a value of type {kind} is given",
                column.name(),
                column.data_type()
            ))
        }
        failure => failure,
    })?;
    Ok(Some(text))
}

fn text(value: &Bound<'_, PyAny>, kind: &DataType, between: Between) -> Outcome<Vec<u8>> {
    let is_truth = value.is_instance_of::<PyBool>();
    let text = match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => value.extract::<String>()?,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            return Ok(value.extract::<Bytes<'_>>()?.as_ref().to_vec());
        }
        DataType::Boolean => value.cast::<PyBool>().map_err(PyErr::from)?.is_true().to_string(),
        kind if kind.is_floating() => value.extract::<f64>()?.to_string(),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale)
            if !is_truth =>
        {
            let shown = digits(value)?;
            units(shown.as_bytes(), *scale).ok_or_else(|| no_value(&shown, kind))?.to_string()
        }
        // A number is one of the type's own units.
        _ if value.is_instance_of::<PyInt>() && !is_truth => value.str()?.to_string(),
        _ => {
            let (nanoseconds, unit) = span(value, kind)?;
            if between == Between::Refused && nanoseconds % unit != 0 {
                return Err(no_value(&value.str()?.to_string(), kind));
            }
            nanoseconds.div_euclid(unit).to_string()
        }
    };
    Ok(text.into_bytes())
}

fn no_value(shown: &str, kind: &DataType) -> Failure {
    Failure::invalid(format!("`{shown}` is no value of {kind}"))
}

/// All digits of a number. Python's own format would round a float to six behind the point, and make one of an int first.
fn digits(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.hasattr("__index__")? {
        return Ok(value.call_method0("__index__")?.str()?.to_string());
    }
    if value.is_instance(&value.py().import("decimal")?.getattr("Decimal")?)? {
        return value.call_method1("__format__", ("f",))?.extract();
    }
    Ok(value.extract::<f64>()?.to_string())
}

/// A time in nanoseconds, and how many of them a unit of its column is.
fn span(value: &Bound<'_, PyAny>, kind: &DataType) -> Outcome<(i128, i128)> {
    Ok(match kind {
        DataType::Date32 => (moment(value, false)?, DAY),
        DataType::Date64 => (moment(value, false)?, MILLISECOND),
        DataType::Timestamp(unit, zone) => (moment(value, zone.is_some())?, length(*unit)),
        DataType::Time32(unit) | DataType::Time64(unit) => (time(value)?, length(*unit)),
        DataType::Duration(unit) => {
            let delta = value.cast::<PyDelta>().map_err(PyErr::from)?;
            let number = |name: &str| delta.getattr(name)?.extract::<i128>();
            let seconds = number("days")? * 86_400 + number("seconds")?;
            let behind = number("microseconds")? * MICROSECOND + beyond(value, "nanoseconds")?;
            (seconds * SECOND + behind, length(*unit))
        }
        _ => return Err(Failure::type_error("no such value")),
    })
}

fn days(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(value.call_method0("toordinal")?.extract::<i64>()? - EPOCH_ORDINAL)
}

/// Nanoseconds since midnight.
fn time(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let number = |name: &str| value.getattr(name)?.extract::<i128>();
    let seconds = (number("hour")? * 60 + number("minute")?) * 60 + number("second")?;
    Ok(seconds * SECOND + number("microsecond")? * MICROSECOND + beyond(value, "nanosecond")?)
}

/// Nanoseconds that times of pandas have, which pass for Python's, behind their microseconds.
fn beyond(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    value.getattr_opt(name)?.map_or(Ok(0), |nanoseconds| nanoseconds.extract())
}

/// Nanoseconds since 1970: of a moment with a zone in UTC, of another as it stands there, of a day from its begin on.
fn moment(value: &Bound<'_, PyAny>, has_zone: bool) -> PyResult<i128> {
    if !value.hasattr("tzinfo")? {
        return Ok(i128::from(days(value)?) * DAY);
    }
    let value = match has_zone && !value.getattr("tzinfo")?.is_none() {
        true => {
            let utc = value.py().import("datetime")?.getattr("timezone")?.getattr("utc")?;
            value.call_method1("astimezone", (utc,))?
        }
        false => value.clone(),
    };
    Ok(i128::from(days(&value)?) * DAY + time(&value)?)
}

/// A unit in nanoseconds.
fn length(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => MILLISECOND,
        TimeUnit::Microsecond => MICROSECOND,
        TimeUnit::Nanosecond => 1,
    }
}
