//! What functions answer, as Python has it: of the types that the answers' columns have.

use arrow_schema::DataType;
use forebay::aggregate::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::failure::{Failure, Outcome};

/// An answer of a column of this type.
pub(super) fn value_to_python<'py>(
    py: Python<'py>,
    value: &Value<'_>,
    kind: &DataType,
) -> Outcome<Bound<'py, PyAny>> {
    let text = || {
        let text = value.to_text();
        let text = std::str::from_utf8(&text).map(str::to_string);
        text.map_err(|_| Failure::invalid("an answer is no Unicode; make its column one of bytes"))
    };
    Ok(match (kind, value) {
        (_, Value::Null) => py.None().into_bound(py),
        (_, Value::Bool(truth)) => PyBool::new(py, *truth).to_owned().into_any(),
        (_, Value::I64(number)) if !matches!(kind, DataType::Float64 | DataType::Utf8) => {
            number.into_pyobject(py)?.into_any()
        }
        (DataType::Float64, _) => match value.as_f64() {
            Some(number) => number.into_pyobject(py)?.into_any(),
            None => py.None().into_bound(py),
        },
        (DataType::Int64 | DataType::Decimal128(_, 0), Value::I128(number)) => {
            number.into_pyobject(py)?.into_any()
        }
        (DataType::Int64 | DataType::Decimal128(..), _) => {
            py.import("decimal")?.getattr("Decimal")?.call1((text()?,))?
        }
        (DataType::Utf8, _) => PyString::new(py, &text()?).into_any(),
        _ => PyBytes::new(py, &value.to_text()).into_any(),
    })
}
