//! How a command ends when it does not end well.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line alone shows that it cannot work: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Work(String),
    /// The work was done and the answer is no, which is said already: exit code 1.
    Said,
    /// Whoever read standard output went away, as `head` does: no failure at all.
    OutputClosed,
}

impl Failure {
    /// Failed work.
    pub(crate) fn work(reason: impl Into<String>) -> Self {
        Self::Work(reason.into())
    }

    /// A write to standard output that failed.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Work(format!("cannot write to standard output: {error}")),
        }
    }

    /// Says it in one line, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(_) => {
                eprintln!("forebay: {self}");
                ExitCode::from(2)
            }
            Self::Work(_) => {
                eprintln!("forebay: {self}");
                ExitCode::FAILURE
            }
            Self::Said => ExitCode::FAILURE,
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) | Self::Work(reason) => {
                for (index, line) in reason.lines().enumerate() {
                    write!(f, "{}{line}", if index == 0 { "" } else { " " })?;
                }
                Ok(())
            }
            Self::Said | Self::OutputClosed => Ok(()),
        }
    }
}

impl From<forebay::Error> for Failure {
    fn from(error: forebay::Error) -> Self {
        Self::Work(error.to_string())
    }
}
