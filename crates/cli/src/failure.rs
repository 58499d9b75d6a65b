//! How a command ends when it does not end well.

use std::fmt;
use std::io;
use std::process::ExitCode;

use serde_json::json;

use crate::form::Form;
use crate::screen;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command has to be called otherwise: exit code 2.
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
    pub(crate) fn report(&self, form: Form) -> ExitCode {
        let code = match self {
            Self::Usage(_) => 2,
            Self::Work(_) | Self::Said => 1,
            Self::OutputClosed => 0,
        };
        if matches!(self, Self::Usage(_) | Self::Work(_)) {
            let message = self.to_string();
            match form {
                Form::Text => tell!("forebay: {message}"),
                Form::Json => {
                    let object = json!({ "type": "error", "message": message, "exit_code": code });
                    tell!("{object}");
                }
            }
        }
        ExitCode::from(code)
    }
}

/// How telling went where what failed is told behind it: that nobody reads standard output any more must not hide that.
pub(crate) fn unless_closed(told: Result<(), Failure>) -> Result<(), Failure> {
    match told {
        Err(Failure::OutputClosed) => Ok(()),
        told => told,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) | Self::Work(reason) => f.write_str(&screen::message(reason)),
            Self::Said | Self::OutputClosed => Ok(()),
        }
    }
}

impl From<forebay::Error> for Failure {
    fn from(error: forebay::Error) -> Self {
        // A put needs no more than its record, but the log's segments are as long as write buffers.
        let is_log = matches!(&error, forebay::Error::Io { path, .. } if path.extension().is_some_and(|end| end == "log"));
        let hint = if is_log && error.is_no_space() {
            ", or give less --memory, which makes the log's files shorter"
        } else {
            ""
        };
        Self::Work(own_words(error.to_string()) + hint)
    }
}

/// What the engine tells programmers to call, told to whoever uses the command.
fn own_words(text: String) -> String {
    // What a function may take is less than what the command was given.
    let text = text.replace("more than the memory limit of", "more than its share of --memory,");
    let text = text.replace("raise it, or aggregate by sorting", "give more --memory");
    if let Some((fault, _)) = text.split_once("; bring it by ") {
        return format!("{fault}; only a program that has that code can follow");
    }
    let Some((fault, _)) = text.split_once("; open ").filter(|(_, call)| call.contains("::")) else {
        return text;
    };
    match fault.strip_suffix(" and was not opened with it") {
        Some(fault) => format!(
            "{fault}, which is a program's own: open the database with that program, so that it writes out what the log has of \
             the table"
        ),
        None if fault.contains("aggregation rule") => {
            format!("{fault}; forebay aggregate --store adds to groups that it made, nothing else does")
        }
        // Only the command line asks for such a rule, and one that the engine has need not be asked for.
        None if fault.contains(", not with merge rule ") => format!("{fault}; leave --rule out"),
        None => format!("{fault}; only the program that made it can write to it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_call_a_function() {
        let text = "table `t` has merge rule `own/1` and was not opened with it; open the table with \
                    TableBuilder::merge_rule and that rule first";
        let told = own_words(text.into());
        assert!(
            told.starts_with("table `t` has merge rule `own/1`, which") && !told.contains("::"),
            "{told}"
        );
        let told = own_words("table `t` was made with x; open it with TableBuilder::merge_rule".into());
        assert_eq!(told, "table `t` was made with x; only the program that made it can write to it");
        assert_eq!(own_words("something; open it".into()), "something; open it");
    }
}
