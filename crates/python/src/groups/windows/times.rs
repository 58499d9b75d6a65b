//! Times as Python has them, and as windows have them: in milliseconds since 1970.

use std::ops::Range;

use arrow_schema::{DataType, Field};
use forebay_groups::WINDOW;
use pyo3::prelude::*;

use super::stored::StoredWindows;
use crate::failure::{Failure, Outcome};
use crate::groups::scalars::{Between, text_of};

/// The column of windows' beginnings.
pub(super) fn window_field(groups: &StoredWindows) -> &Field {
    debug_assert_eq!(groups.schema.keys()[0].name(), WINDOW);
    &groups.schema.keys()[0]
}

/// A moment of Python's, in milliseconds since 1970: the one that it is in.
pub(super) fn time_of(groups: &StoredWindows, moment: &Bound<'_, PyAny>) -> Outcome<u64> {
    let text = text_of(moment, window_field(groups), Between::Floored)?;
    let text = text.ok_or_else(|| Failure::type_error("None is no time"))?;
    let time = String::from_utf8_lossy(&text).parse::<i128>();
    let time = time.map_err(|error| Failure::invalid(format!("no time: {error}")))?;
    Ok(u64::try_from(time.clamp(0, u64::MAX.into())).unwrap_or(u64::MAX))
}

pub(super) fn times(
    groups: &StoredWindows,
    start: Option<&Bound<'_, PyAny>>,
    end: Option<&Bound<'_, PyAny>>,
) -> Outcome<Range<u64>> {
    let start = start.map_or(Ok(0), |start| time_of(groups, start))?;
    let end = end.map_or(Ok(u64::MAX), |end| time_of(groups, end))?;
    Ok(start..end)
}

/// The same as Python has it: a number where times are numbers, else a moment, with a zone where times have one.
pub(super) fn moment<'py>(py: Python<'py>, groups: &StoredWindows, time: u64) -> Outcome<Bound<'py, PyAny>> {
    let DataType::Timestamp(_, zone) = window_field(groups).data_type() else {
        return Ok(time.into_pyobject(py)?.into_any());
    };
    let module = py.import("datetime")?;
    let zone = match zone {
        Some(_) => module.getattr("timezone")?.getattr("utc")?,
        None => py.None().into_bound(py),
    };
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    let behind = module.getattr("timedelta")?.call1((0, 0, 0, time))?;
    Ok(epoch.call_method1("__add__", (behind,))?)
}
