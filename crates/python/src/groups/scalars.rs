//! Values of Python's as the texts that stand in keys of groups: see `PartialSchema::key_of`.

use arrow_schema::{DataType, Field, TimeUnit};
use forebay_aggregate::arrow::units;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyInt};

use crate::bytes::Bytes;
use crate::failure::{Failure, Outcome};

/// The ordinal of 1970-01-01, as Python counts days.
const EPOCH_ORDINAL: i64 = 719_163;
const DAY_MICROSECONDS: i128 = 86_400_000_000;

/// The text of a value of a column's type; nothing of `None`.
pub(super) fn text_of(value: &Bound<'_, PyAny>, column: &Field) -> Outcome<Option<Vec<u8>>> {
    if value.is_none() {
        return Ok(None);
    }
    let text = text(value, column.data_type()).map_err(|failure| match failure {
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

fn text(value: &Bound<'_, PyAny>, kind: &DataType) -> Outcome<Vec<u8>> {
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
        | DataType::Decimal256(_, scale) => {
            let shown = value.call_method1("__format__", ("f",))?.extract::<String>()?;
            let scale = u8::try_from(*scale).unwrap_or(0);
            let units = units(shown.as_bytes(), scale);
            units.ok_or_else(|| Failure::invalid(format!("`{shown}` is no value of {kind}")))?.to_string()
        }
        // A number is one of the type's own units.
        _ if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => value.str()?.to_string(),
        DataType::Date32 => days(value)?.to_string(),
        DataType::Date64 => (days(value)? * 86_400_000).to_string(),
        DataType::Timestamp(unit, zone) => in_units(moment(value, zone.is_some())?, *unit).to_string(),
        DataType::Time32(unit) | DataType::Time64(unit) => in_units(time(value)?, *unit).to_string(),
        DataType::Duration(unit) => {
            let delta = value.cast::<PyDelta>().map_err(PyErr::from)?;
            let number = |name: &str| delta.getattr(name)?.extract::<i128>();
            let microseconds =
                (number("days")? * 86_400 + number("seconds")?) * 1_000_000 + number("microseconds")?;
            in_units(microseconds, *unit).to_string()
        }
        _ => return Err(Failure::type_error("no such value")),
    };
    Ok(text.into_bytes())
}

fn days(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(value.call_method0("toordinal")?.extract::<i64>()? - EPOCH_ORDINAL)
}

/// Microseconds since midnight.
fn time(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let number = |name: &str| value.getattr(name)?.extract::<i128>();
    let seconds = (number("hour")? * 60 + number("minute")?) * 60 + number("second")?;
    Ok(seconds * 1_000_000 + number("microsecond")?)
}

/// Microseconds since 1970: of a moment with a zone in UTC, of another as it stands there, of a day from its begin on.
fn moment(value: &Bound<'_, PyAny>, has_zone: bool) -> PyResult<i128> {
    if !value.hasattr("tzinfo")? {
        return Ok(i128::from(days(value)?) * DAY_MICROSECONDS);
    }
    let value = match has_zone && !value.getattr("tzinfo")?.is_none() {
        true => {
            let utc = value.py().import("datetime")?.getattr("timezone")?.getattr("utc")?;
            value.call_method1("astimezone", (utc,))?
        }
        false => value.clone(),
    };
    Ok(i128::from(days(&value)?) * DAY_MICROSECONDS + time(&value)?)
}

fn in_units(microseconds: i128, unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => microseconds.div_euclid(1_000_000),
        TimeUnit::Millisecond => microseconds.div_euclid(1000),
        TimeUnit::Microsecond => microseconds,
        TimeUnit::Nanosecond => microseconds * 1000,
    }
}
