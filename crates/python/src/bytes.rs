//! Keys and values as Python gives them: anything that is bytes. Text is an error and no guess at its encoding.

use std::ops::Bound as Edge;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};

/// Bytes of an argument. Those of `bytes`, which never change, lie where they lay; all others are a copy.
pub(crate) enum Bytes<'a> {
    Lent(&'a [u8]),
    Copied(Vec<u8>),
}

impl AsRef<[u8]> for Bytes<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'a> {
    type Error = PyErr;

    #[inline]
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let lent: Result<&'a [u8], _> = FromPyObject::extract(given);
        match lent {
            Ok(bytes) => Ok(Self::Lent(bytes)),
            Err(_) => copied(&given).map_err(PyErr::from),
        }
    }
}

fn copied<'a>(given: &Bound<'_, PyAny>) -> Outcome<Bytes<'a>> {
    let py = given.py();
    let signed = || PyBuffer::<i8>::get(given)?.to_vec(py);
    let bytes: PyResult<_> = PyBuffer::<u8>::get(given)
        .and_then(|buffer| buffer.to_vec(py))
        .or_else(|_| Ok(signed()?.into_iter().map(i8::cast_unsigned).collect()));
    match bytes {
        Ok(bytes) => Ok(Bytes::Copied(bytes)),
        Err(error)
            if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyBufferError>(py) =>
        {
            let kind = given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
            let hint = if kind == "str" { "; encode it" } else { "" };
            Err(Failure::type_error(format!("a bytes-like object is needed, and {kind} is none{hint}")))
        }
        // As a map that was closed, or a view that was released.
        Err(error) => Err(error.into()),
    }
}

/// From a key on, up to another one, which is not in it.
pub(crate) type Edges = (Edge<Vec<u8>>, Edge<Vec<u8>>);

pub(crate) fn edges(start: Option<Bytes<'_>>, end: Option<Bytes<'_>>) -> Edges {
    let owned = |key: Bytes<'_>| key.as_ref().to_vec();
    (
        start.map_or(Edge::Unbounded, |key| Edge::Included(owned(key))),
        end.map_or(Edge::Unbounded, |key| Edge::Excluded(owned(key))),
    )
}
