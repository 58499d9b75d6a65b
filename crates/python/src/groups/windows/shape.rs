//! Lengths of windows, as Python says them.

use forebay_groups::Length;
use pyo3::prelude::*;
use pyo3::types::PyDelta;

use crate::failure::{Failure, Outcome};
use crate::options::duration;

/// A `timedelta`, or a text such as `"15m"`, `"7d"` or `"1mo"`.
pub(super) fn length(name: &str, given: &Bound<'_, PyAny>) -> Outcome<Length> {
    if given.is_instance_of::<PyDelta>() {
        let milliseconds = u64::try_from(duration(given)?.as_millis()).unwrap_or(u64::MAX);
        if milliseconds == 0 {
            return Err(Failure::invalid(format!("{name} is less than a millisecond")));
        }
        return Ok(Length::Milliseconds(milliseconds));
    }
    let text = given.extract::<String>().map_err(|_| {
        Failure::type_error(format!("{name} is a timedelta, or a text such as \"15m\", \"7d\" or \"1mo\""))
    })?;
    Length::parse(&text).map_err(|reason| Failure::invalid(format!("{name} is `{text}`: {reason}")))
}
