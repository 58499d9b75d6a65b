//! [`Wish`]: what is asked for when windows are opened.

use forebay_groups::WindowShape as Shape;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::shape::length;
use crate::failure::{Failure, Outcome};
use crate::groups::kept::Shape as Kept;

/// What is asked for when windows are opened; what is kept may be left out.
pub(crate) struct Wish<'a, 'py> {
    pub(crate) time: Option<String>,
    pub(crate) every: Option<&'a Bound<'py, PyAny>>,
    pub(crate) retain: Option<&'a Bound<'py, PyAny>>,
    pub(crate) key: Option<&'a Bound<'py, PyAny>>,
    pub(crate) aggs: Option<&'a Bound<'py, PyDict>>,
    pub(crate) schema: Option<&'a Bound<'py, PyAny>>,
}

impl Wish<'_, '_> {
    pub(super) fn shape(&self) -> Outcome<Option<Shape>> {
        let retain = self.retain.map(|retain| length("retain", retain)).transpose()?;
        match (&self.time, self.every) {
            (Some(time), Some(every)) => Ok(Some(Shape::new(time.clone(), length("every", every)?, retain)?)),
            (None, None) if retain.is_none() => Ok(None),
            _ => Err(Failure::invalid("time and every are said together, and retain with them")),
        }
    }
}

/// The windows' shape that is asked for, unless another is kept.
pub(super) fn agreed(name: &str, kept: Option<Kept>, shape: Option<Shape>) -> Outcome<Shape> {
    let kept = match kept {
        None => Ok(None),
        Some(Kept::Windows(kept)) => Shape::of_kept(&kept).map(Some),
        Some(other) => return Err(other.refused(name).into()),
    };
    let kept = kept.map_err(|reason| {
        Failure::invalid(format!("table `{name}.schema` does not tell what windows `{name}` are: {reason}"))
    })?;
    match (kept, shape) {
        (Some(kept), Some(shape)) if kept.kept() != shape.kept() => {
            Err(Failure::invalid(format!("windows `{name}` were made with {kept}; leave these out")))
        }
        (Some(kept), _) => Ok(kept),
        (None, Some(shape)) => Ok(shape),
        (None, None) => {
            let told = format!("there are no windows `{name}` yet; say time, every and aggs to make them");
            Err(forebay::Error::NotFound(told).into())
        }
    }
}
