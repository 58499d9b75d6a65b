//! Standard output: answers as text, or as one JSON object a line.

use std::fmt;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::args::Common;
use crate::failure::{Failure, unless_closed};
use crate::form::Form;
use crate::keys::Notation;
use crate::screen::Screen;

/// An object of a kind.
#[derive(Serialize)]
pub(crate) struct Typed<'a, T> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) object: &'a T,
}

/// Standard output, buffered.
pub(crate) struct Output {
    out: BufWriter<Screen>,
}

impl Output {
    pub(crate) fn new(form: Form) -> Self {
        Self { out: BufWriter::with_capacity(64 << 10, Screen::stdout(form)) }
    }

    /// Tells what the work came to: an object to a program, a line to a person who wants to know. That nobody reads it
    /// must not hide what may have failed.
    pub(crate) fn summary(
        common: &Common,
        object: &impl Serialize,
        text: impl fmt::Display,
    ) -> Result<(), Failure> {
        let mut output = Self::new(common.form());
        let told = match common.form() {
            Form::Json => output.json("summary", object),
            Form::Text if common.is_quiet() => Ok(()),
            Form::Text => output.line(text),
        };
        unless_closed(told.and_then(|()| output.flush()))
    }

    /// Prints one object where the answer is for a program; a person is told nothing.
    pub(crate) fn only_json(form: Form, object: &impl Serialize) -> Result<(), Failure> {
        if form == Form::Text {
            return Ok(());
        }
        let mut output = Self::new(form);
        output.json("summary", object)?;
        output.flush()
    }

    /// A line of text.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        self.write(|out| writeln!(out, "{text}"))
    }

    /// An object as a line of JSON, whose `type` comes first.
    pub(crate) fn json(&mut self, kind: &'static str, object: &impl Serialize) -> Result<(), Failure> {
        self.write(|out| {
            serde_json::to_writer(&mut *out, &Typed { kind, object })?;
            out.write_all(b"\n")
        })
    }

    /// `key<TAB>value`, or an object of the two.
    pub(crate) fn record(
        &mut self,
        form: Form,
        notation: Notation,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        self.write(|out| match form {
            Form::Text => {
                notation.write(key, out)?;
                out.write_all(b"\t")?;
                notation.write(value, out)?;
                out.write_all(b"\n")
            }
            Form::Json => {
                out.write_all(b"{\"type\":\"record\",")?;
                notation.write_json("key", key, out)?;
                out.write_all(b",")?;
                notation.write_json("value", value, out)?;
                out.write_all(b"}\n")
            }
        })
    }

    /// The answer to a get: the value on a line, nothing where it is absent; or an object, with `null`.
    pub(crate) fn answer(
        &mut self,
        form: Form,
        notation: Notation,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), Failure> {
        match (form, value) {
            (Form::Json, Some(value)) => self.record(form, notation, key, value),
            (Form::Json, None) => self.write(|out| {
                out.write_all(b"{\"type\":\"record\",")?;
                notation.write_json("key", key, out)?;
                out.write_all(b",\"value\":null}\n")
            }),
            (Form::Text, Some(value)) => self.write(|out| {
                notation.write(value, out)?;
                out.write_all(b"\n")
            }),
            (Form::Text, None) => Ok(()),
        }
    }

    /// In the place of an answer the error of its key; a person is told of it at the end.
    pub(crate) fn unread(
        &mut self,
        form: Form,
        notation: Notation,
        key: &[u8],
        error: forebay::Error,
    ) -> Result<(), Failure> {
        if form == Form::Text {
            return Ok(());
        }
        let why = Failure::from(error).to_string();
        self.write(|out| {
            out.write_all(b"{\"type\":\"record\",")?;
            notation.write_json("key", key, out)?;
            out.write_all(b",\"error\":")?;
            serde_json::to_writer(&mut *out, &why)?;
            out.write_all(b"}\n")
        })
    }

    /// Sends on what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write(Write::flush)
    }

    /// Whatever is written by this.
    pub(crate) fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Screen>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write(&mut self.out).map_err(|error| Failure::output(&error))
    }
}

/// `number` with a comma between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `number` of what the noun names: `1 record`, `2,000 records`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (50_000_000, "50,000,000")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(counted(1, "record"), "1 record");
        assert_eq!(counted(2000, "record"), "2,000 records");
    }
}
