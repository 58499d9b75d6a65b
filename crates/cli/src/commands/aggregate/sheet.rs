//! Rows of values as text, csv, tsv, JSON or Parquet, to standard output or to a file.
//!
//! No value is `\N` in text and tsv, nothing at all in csv, where an empty text is `""`, and `null` in JSON.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};

use forebay::Error;
use forebay_aggregate::Value;
use memchr::{memchr, memchr_iter, memchr3};

use super::columnar::Columnar;
use super::kinds::Kind;
use crate::failure::Failure;
use crate::form::Form;
use crate::keys::Notation;
use crate::screen::Screen;
use crate::written::Written;

/// What standard output is called in errors.
const STDOUT: &str = "standard output";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Tabs between cells, which are as they are.
    Plain,
    /// Tabs between cells; a tab, newline, return or backslash in one stands behind a backslash.
    Tsv,
    /// RFC 4180.
    Csv,
    /// An object a row.
    Json,
    /// A file of typed columns.
    Parquet,
}

impl Style {
    /// What a file's name asks for.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "txt" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Shown,
    Hidden,
}

/// See the module.
pub(super) struct Sheet {
    out: Target,
    /// What is written to, and where; none is standard output.
    file: Option<(Written, PathBuf)>,
    style: Style,
    names: Vec<String>,
}

/// What rows become.
enum Target {
    Lines(Out),
    /// A file of columns that are not known yet.
    Empty,
    Columns(Box<Columnar>),
    Finished,
}

impl Sheet {
    /// Opens `path`, or standard output, so that what cannot be written is known before any work.
    pub(super) fn open(path: Option<&Path>, style: Style) -> Result<Self, Failure> {
        let create = |path: &Path| Ok::<_, Failure>((Written::create(path)?, path.to_path_buf()));
        let file = path.map(create).transpose()?;
        let lines = |out| Target::Lines(BufWriter::with_capacity(64 << 10, out));
        let form = if style == Style::Json { Form::Json } else { Form::Text };
        let out = match &file {
            None => lines(Box::new(Screen::stdout(form))),
            Some(_) if style == Style::Parquet => Target::Empty,
            Some((written, path)) => {
                lines(Box::new(written.file().map_err(|error| Error::io("write", path, &error))?))
            }
        };
        Ok(Self { out, file, style, names: Vec::new() })
    }

    /// What is written to, as errors call it.
    fn path(&self) -> PathBuf {
        self.file.as_ref().map_or(STDOUT.into(), |(_, path)| path.clone())
    }

    /// Whether [`begin`](Self::begin) has to know what columns hold.
    pub(super) fn is_typed(&self) -> bool {
        self.style == Style::Parquet
    }

    /// Says what the cells of every row are called, and, where it has to be known, what they hold.
    pub(super) fn begin(&mut self, names: Vec<String>, kinds: &[Kind], header: Header) -> Result<(), Error> {
        self.names = names;
        self.out = match mem::replace(&mut self.out, Target::Finished) {
            Target::Empty => match &self.file {
                Some((written, path)) => {
                    let file = written.file().map_err(|error| Error::io("write", path, &error))?;
                    Target::Columns(Box::new(Columnar::begin(file, &self.names, kinds)?))
                }
                None => Target::Finished,
            },
            out => out,
        };
        if header == Header::Hidden || matches!(self.style, Style::Json | Style::Parquet) {
            return Ok(());
        }
        let names: Vec<Value<'static>> =
            self.names.iter().map(|name| Value::from(name.clone().into_bytes())).collect();
        self.row(&names)
    }

    /// Writes a row.
    pub(super) fn row(&mut self, cells: &[Value<'_>]) -> Result<(), Error> {
        let kind = if self.file.is_none() { Some("group") } else { None };
        let written = match (&mut self.out, self.style) {
            (Target::Lines(out), Style::Json) => object(out, kind, &self.names, cells),
            (Target::Lines(out), Style::Csv) => delimited(out, cells, b",", csv_cell),
            (Target::Lines(out), Style::Tsv) => delimited(out, cells, b"\t", tsv_cell),
            (Target::Lines(out), _) => delimited(out, cells, b"\t", plain_cell),
            (Target::Columns(columns), _) => {
                let path = self.file.as_ref().map_or(Path::new(STDOUT), |(_, path)| path);
                return columns.row(cells, path);
            }
            (Target::Empty | Target::Finished, _) => Ok(()),
        };
        written.map_err(|error| Error::io("write", &self.path(), &error))
    }

    /// Sends on what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.out {
            Target::Lines(out) => out.flush().map_err(|error| Error::io("write", &self.path(), &error)),
            Target::Columns(_) | Target::Empty | Target::Finished => Ok(()),
        }
    }

    /// Sends on what is buffered. A file is there from now on.
    pub(super) fn finish(self) -> Result<(), Error> {
        let path = self.path();
        let failed = |error| Error::io("write", &path, &error);
        match self.out {
            Target::Lines(mut out) => out.flush().map_err(failed)?,
            Target::Columns(columns) => columns.finish(&path)?,
            Target::Empty | Target::Finished => {}
        }
        self.file.map_or(Ok(()), |(written, _)| written.finish()).map_err(failed)
    }
}

type Out = BufWriter<Box<dyn Write>>;

fn delimited(
    out: &mut Out,
    cells: &[Value<'_>],
    separator: &[u8],
    write: fn(&mut Out, &Value<'_>) -> io::Result<()>,
) -> io::Result<()> {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.write_all(separator)?;
        }
        write(out, cell)?;
    }
    out.write_all(b"\n")
}

fn plain_cell(out: &mut Out, cell: &Value<'_>) -> io::Result<()> {
    match cell {
        Value::I64(number) => write!(out, "{number}"),
        Value::Null => out.write_all(b"\\N"),
        cell => out.write_all(&cell.to_text()),
    }
}

fn tsv_cell(out: &mut Out, cell: &Value<'_>) -> io::Result<()> {
    let Value::Bytes(text) = cell else {
        return match cell {
            Value::List(_) | Value::Pairs(_) => tsv_cell(out, &Value::bytes(&cell.to_text()[..])),
            cell => plain_cell(out, cell),
        };
    };
    if memchr3(b'\t', b'\n', b'\r', text).is_none() && memchr(b'\\', text).is_none() {
        return out.write_all(text);
    }
    for byte in text.iter() {
        match byte {
            b'\t' => out.write_all(b"\\t")?,
            b'\n' => out.write_all(b"\\n")?,
            b'\r' => out.write_all(b"\\r")?,
            b'\\' => out.write_all(b"\\\\")?,
            byte => out.write_all(&[*byte])?,
        }
    }
    Ok(())
}

fn csv_cell(out: &mut Out, cell: &Value<'_>) -> io::Result<()> {
    if *cell == Value::Null {
        return Ok(());
    }
    let text = cell.to_text();
    let needs_quotes = text.is_empty() || memchr3(b',', b'\n', b'\r', &text).is_some();
    if !needs_quotes && memchr(b'"', &text).is_none() {
        return out.write_all(&text);
    }
    out.write_all(b"\"")?;
    let mut start = 0;
    for quote in memchr_iter(b'"', &text) {
        out.write_all(&text[start..=quote])?;
        start = quote;
    }
    out.write_all(&text[start..])?;
    out.write_all(b"\"")
}

/// An object, in a stream of several kinds marked by its own. A column that is called as the mark is goes by another
/// name.
fn object(
    out: &mut Out,
    kind: Option<&'static str>,
    names: &[String],
    cells: &[Value<'_>],
) -> io::Result<()> {
    out.write_all(b"{")?;
    if let Some(kind) = kind {
        write!(out, "\"type\":\"{kind}\"")?;
    }
    for (place, (name, cell)) in names.iter().zip(cells).enumerate() {
        if place > 0 || kind.is_some() {
            out.write_all(b",")?;
        }
        let name: Cow<'_, str> = match cell {
            Value::Bytes(text) if std::str::from_utf8(text).is_err() => hex_name(names, name).into(),
            _ if kind.is_some() && name == "type" => "column:type".into(),
            _ => name.into(),
        };
        serde_json::to_writer(&mut *out, &name)?;
        out.write_all(b":")?;
        match cell {
            Value::Bytes(text) if std::str::from_utf8(text).is_err() => {
                out.write_all(b"\"")?;
                Notation::Hex.write(text, out)?;
                out.write_all(b"\"")?;
            }
            cell => json(out, cell)?,
        }
    }
    out.write_all(b"}\n")
}

/// What a text that is not Unicode is called: no other column is called so, and none will be.
fn hex_name(names: &[String], name: &str) -> String {
    let mut name = format!("{name}_hex");
    while names.contains(&name) {
        name.push('_');
    }
    name
}

/// A value inside an object. Text that is not Unicode is an object of its own.
fn json(out: &mut Out, value: &Value<'_>) -> io::Result<()> {
    match value {
        // JSON has no numbers that are not finite, and null is no value.
        Value::F64(number) if !number.is_finite() => write!(out, "\"{number}\""),
        Value::F32(number) if !number.is_finite() => write!(out, "\"{number}\""),
        Value::Null => out.write_all(b"null"),
        Value::Bool(_)
        | Value::I64(_)
        | Value::I128(_)
        | Value::F32(_)
        | Value::F64(_)
        | Value::Decimal(_) => out.write_all(&value.to_text()),
        Value::Cut => out.write_all(b"{\"cut\":true}"),
        Value::Bytes(text) => match std::str::from_utf8(text) {
            Ok(text) => serde_json::to_writer(out, text).map_err(io::Error::from),
            Err(_) => {
                out.write_all(b"{")?;
                Notation::Hex.write_json("hex", text, out)?;
                out.write_all(b"}")
            }
        },
        Value::List(values) => list(out, values.iter(), json),
        Value::Pairs(pairs) => list(out, pairs.iter(), |out, (one, other)| list(out, [one, other], json)),
    }
}

fn list<T>(
    out: &mut Out,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Out, T) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        write(out, item)?;
    }
    out.write_all(b"]")
}

/// A failure of the work, but for a reader of standard output that went away.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::Io { kind: io::ErrorKind::BrokenPipe, path, .. } if path == Path::new(STDOUT) => {
            Failure::OutputClosed
        }
        error => error.into(),
    }
}
