//! Rows of values as lines of text, csv, tsv or JSON.
//!
//! No value is `\N` in text and tsv, nothing at all in csv, where an empty text is `""`, and `null` in JSON.

use std::borrow::Cow;

use forebay_aggregate::Value;
use memchr::{memchr, memchr_iter, memchr3};

use super::sheet::Style;
use crate::keys::Notation;

/// How rows are written, and what their cells are called.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    style: Style,
    names: Vec<String>,
    /// What marks an object in a stream of several kinds.
    mark: Option<&'static str>,
}

impl Lines {
    pub(super) fn new(style: Style, names: Vec<String>, mark: Option<&'static str>) -> Self {
        Self { style, names, mark }
    }

    /// The names, as a row.
    pub(super) fn header(&self, out: &mut Vec<u8>) {
        let mut cells = Row::new(self, out);
        self.names.iter().for_each(|name| cells.push(&Value::bytes(name.as_bytes())));
        cells.finish();
    }

    /// Whether some texts, one behind the other, stand in lines as they are, but for empty ones.
    pub(super) fn is_plain(&self, texts: &[u8]) -> bool {
        match self.style {
            Style::Csv => memchr3(b',', b'\n', b'\r', texts).is_none() && memchr(b'"', texts).is_none(),
            Style::Tsv => memchr3(b'\t', b'\n', b'\r', texts).is_none() && memchr(b'\\', texts).is_none(),
            Style::Plain => true,
            Style::Json | Style::Parquet => false,
        }
    }

    /// Begins a row at the end of `out`.
    pub(super) fn row<'a>(&'a self, out: &'a mut Vec<u8>) -> Row<'a> {
        Row::new(self, out)
    }
}

/// A row that is being written.
pub(super) struct Row<'a> {
    lines: &'a Lines,
    out: &'a mut Vec<u8>,
    cells: usize,
}

impl<'a> Row<'a> {
    fn new(lines: &'a Lines, out: &'a mut Vec<u8>) -> Self {
        if lines.style == Style::Json {
            out.push(b'{');
            if let Some(mark) = lines.mark {
                out.extend_from_slice(b"\"type\":\"");
                out.extend_from_slice(mark.as_bytes());
                out.push(b'"');
            }
        }
        Self { lines, out, cells: 0 }
    }

    /// The next cell.
    #[inline]
    pub(super) fn push(&mut self, cell: &Value<'_>) {
        self.separate();
        let Self { lines, out, cells } = self;
        match lines.style {
            Style::Json => field(lines, *cells, cell, out),
            Style::Csv => csv_cell(cell, out),
            Style::Tsv => tsv_cell(cell, out),
            Style::Plain | Style::Parquet => plain_cell(cell, out),
        }
        *cells += 1;
    }

    /// The next cell, a text that stands as it is, or none.
    #[inline]
    pub(super) fn push_plain(&mut self, text: Option<&[u8]>) {
        self.separate();
        self.out.extend_from_slice(match (text, self.lines.style) {
            (Some([]), Style::Csv) => b"\"\"",
            (Some(text), _) => text,
            (None, Style::Csv) => b"",
            (None, _) => b"\\N",
        });
        self.cells += 1;
    }

    #[inline]
    fn separate(&mut self) {
        let Self { lines, out, cells } = self;
        let is_first = *cells == 0 && (lines.style != Style::Json || lines.mark.is_none());
        let separator = if matches!(lines.style, Style::Csv | Style::Json) { b',' } else { b'\t' };
        if !is_first {
            out.push(separator);
        }
    }

    pub(super) fn finish(self) {
        if self.lines.style == Style::Json {
            self.out.push(b'}');
        }
        self.out.push(b'\n');
    }
}

fn plain_cell(cell: &Value<'_>, out: &mut Vec<u8>) {
    match cell {
        Value::Null => out.extend_from_slice(b"\\N"),
        cell => cell.write_text(out),
    }
}

fn tsv_cell(cell: &Value<'_>, out: &mut Vec<u8>) {
    let Value::Bytes(text) = cell else {
        return match cell {
            Value::List(_) | Value::Pairs(_) => tsv_cell(&Value::bytes(&cell.to_text()[..]), out),
            cell => plain_cell(cell, out),
        };
    };
    if memchr3(b'\t', b'\n', b'\r', text).is_none() && memchr(b'\\', text).is_none() {
        return out.extend_from_slice(text);
    }
    for byte in text.iter() {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte => out.push(*byte),
        }
    }
}

fn csv_cell(cell: &Value<'_>, out: &mut Vec<u8>) {
    let text = match cell {
        Value::Null => return,
        Value::Bytes(_) | Value::List(_) | Value::Pairs(_) => cell.to_text(),
        // Numbers and truths have nothing that takes quotes.
        number => return number.write_text(out),
    };
    let needs_quotes = text.is_empty() || memchr3(b',', b'\n', b'\r', &text).is_some();
    if !needs_quotes && memchr(b'"', &text).is_none() {
        return out.extend_from_slice(&text);
    }
    out.push(b'"');
    let mut start = 0;
    for quote in memchr_iter(b'"', &text) {
        out.extend_from_slice(&text[start..=quote]);
        start = quote;
    }
    out.extend_from_slice(&text[start..]);
    out.push(b'"');
}

/// A field of an object. A column that is called as the mark is goes by another name.
fn field(lines: &Lines, place: usize, cell: &Value<'_>, out: &mut Vec<u8>) {
    let name = lines.names.get(place).map_or("", String::as_str);
    let text = if let Value::Bytes(text) = cell { &text[..] } else { b"" };
    let is_unicode = std::str::from_utf8(text).is_ok();
    let name: Cow<'_, str> = match name {
        name if !is_unicode => hex_name(&lines.names, name).into(),
        "type" if lines.mark.is_some() => "column:type".into(),
        name => name.into(),
    };
    quoted(&name, out);
    out.push(b':');
    if is_unicode { json(cell, out) } else { hex(text, out) }
}

/// What a text that is not Unicode is called: no other column is called so, and none will be.
fn hex_name(names: &[String], name: &str) -> String {
    let mut name = format!("{name}_hex");
    while names.contains(&name) {
        name.push('_');
    }
    name
}

/// A text in quotes. Writing to memory cannot fail, here and below.
fn quoted(text: &str, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, text);
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let _ = Notation::Hex.write(bytes, out);
    out.push(b'"');
}

/// A value inside an object. Text that is not Unicode is an object of its own.
fn json(value: &Value<'_>, out: &mut Vec<u8>) {
    let is_finite = match value {
        Value::F64(number) => number.is_finite(),
        Value::F32(number) => number.is_finite(),
        _ => true,
    };
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        // JSON has no numbers that are not finite, and null is no value.
        number if !is_finite => {
            out.push(b'"');
            number.write_text(out);
            out.push(b'"');
        }
        Value::Cut => out.extend_from_slice(b"{\"cut\":true}"),
        Value::Bytes(text) => match std::str::from_utf8(text) {
            Ok(text) => quoted(text, out),
            Err(_) => {
                out.extend_from_slice(b"{\"hex\":");
                hex(text, out);
                out.push(b'}');
            }
        },
        Value::List(values) => list(values.iter(), out, json),
        Value::Pairs(pairs) => list(pairs.iter(), out, |(one, other), out| list([one, other], out, json)),
        number => number.write_text(out),
    }
}

fn list<T>(items: impl IntoIterator<Item = T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}
