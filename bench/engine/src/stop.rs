//! How a benchmark ends when it does not end well.

use std::fmt;
use std::io;

use crate::Failure;

/// Why it stopped.
#[derive(Debug)]
pub enum Stop {
    /// The command line alone shows that it cannot work: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Work(String),
    /// Runs failed, which is told already: exit code 1.
    Told,
    /// Whoever read standard output went away: no failure.
    OutputClosed,
}

impl Stop {
    /// A write to standard output that failed.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Work(format!("cannot write to standard output: {error}")),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) | Self::Work(reason) => f.write_str(reason),
            Self::Told | Self::OutputClosed => Ok(()),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Work(failure.to_string())
    }
}
