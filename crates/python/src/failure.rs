//! [`Failure`]: why a call failed, and the exception that Python is given.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;

use arrow_schema::ArrowError;
use forebay::Error;
use forebay_env::sync::Mutex;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What a call gives.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// See the module.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine's reason.
    Engine(Error),
    /// An exception as it is.
    Python(PyErr),
    /// What was closed before: a database, a snapshot.
    Closed(&'static str),
    /// It is the parent's of this process.
    Forked,
}

impl Failure {
    /// A wrong call, as `ValueError` is.
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Engine(Error::invalid(reason))
    }

    /// An argument of a wrong type.
    pub(crate) fn type_error(reason: impl Into<String>) -> Self {
        Self::Python(PyTypeError::new_err(reason.into()))
    }

    /// `KeyError` of a key.
    pub(crate) fn no_key(py: Python<'_>, key: &[u8]) -> Self {
        Self::Python(PyKeyError::new_err(PyBytes::new(py, key).unbind()))
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Engine(Error::Conflict(_)))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Infallible> for Failure {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A failure on its way through readers of Arrow's.
#[derive(Debug)]
pub(crate) struct Raised(Mutex<Option<Failure>>, String);

impl Raised {
    pub(crate) fn carry(failure: Failure) -> ArrowError {
        let text = failure.to_string();
        ArrowError::ExternalError(Box::new(Self(Mutex::new(Some(failure)), text)))
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl std::error::Error for Raised {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Python(error) => error.fmt(f),
            Self::Closed(what) => write!(f, "the {what} is closed"),
            Self::Forked => f.write_str("this is the parent process's"),
        }
    }
}

/// For what can tell of errors of the engine alone.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Engine(error) => error,
            other => Self::invalid(other.to_string()),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        if let ArrowError::ExternalError(inner) = &error
            && let Some(Raised(failure, _)) = inner.downcast_ref()
            && let Some(failure) = failure.lock().take()
        {
            return failure;
        }
        let text = error.to_string();
        // Python gives a signal to the code that it runs, which may be that of whoever made the data.
        if text.contains("KeyboardInterrupt") {
            return Self::Python(PyKeyboardInterrupt::new_err(()));
        }
        Self::Python(PyValueError::new_err(format!("Arrow data: {text}")))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let made = Python::attach(|py| match failure {
            Failure::Python(error) => Ok(error),
            Failure::Engine(error) => raised(py, &error),
            Failure::Closed(what) => {
                made(py, "Closed", &format!("the {what} is closed")).map(Self::from_value)
            }
            Failure::Forked => {
                let told =
                    "this was opened before a fork, and is the parent process's; open it anew in this one";
                made(py, "Forked", told).map(Self::from_value)
            }
        });
        made.unwrap_or_else(|error| error)
    }
}

/// An exception of `forebay._errors`.
fn made<'py>(py: Python<'py>, class: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("forebay._errors")?.getattr(class)?.call1((text,))
}

/// The exception that an error of the engine is, with what it names as attributes.
fn raised(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = match error {
        error if error.is_not_found() => "NotFound",
        error if error.is_no_space() => "NoSpace",
        Error::Io { .. } | Error::TooManyFiles { .. } => "IoError",
        Error::Corruption { .. } => "Corruption",
        Error::TooLong(_) => "TooLong",
        Error::Invalid(_) => "Invalid",
        Error::Locked { .. } => "Busy",
        Error::NewerFormat { .. } => "NewerFormat",
        Error::Conflict(_) => "Conflict",
        Error::ChangesGone { .. } => "ChangesGone",
        Error::Poisoned(_) => "Poisoned",
        Error::Panicked(_) | Error::Bug(_) => "InternalError",
        _ => "Error",
    };
    let exception = made(py, class, &error.to_string())?;
    let path = |path: &Path| exception.setattr("path", path.as_os_str());
    match error {
        Error::Io { path: place, .. } | Error::TooManyFiles { path: place, .. } => path(place)?,
        Error::Corruption { file, offset, .. } => {
            path(file)?;
            exception.setattr("offset", offset)?;
        }
        Error::NewerFormat { file, .. } => path(file)?,
        Error::Locked { path: place, process } => {
            path(place)?;
            exception.setattr("process", process)?;
        }
        Error::ChangesGone { since, oldest, rolled_back } => {
            exception.setattr("since", since)?;
            exception.setattr("oldest", oldest)?;
            exception.setattr("rolled_back", rolled_back)?;
        }
        _ => {}
    }
    Ok(PyErr::from_value(exception))
}
