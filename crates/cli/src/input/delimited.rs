//! `csv` and `tsv`: a row is a record, of which some columns are read.
//!
//! Rows of one input have the same number of columns; a row that has not is malformed, for most often a
//! separator was not quoted. Blank lines are passed over.

mod remarks;

use std::io::{Empty, Read};

use forebay_aggregate::Value;
use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, Quoting};
use super::format::Column;
use super::header::place_of;
use super::rfc4180::{self, Field};
use super::window::{Block, LineEnd, Window};
use super::{BlockRows, Pair, Position, Rows, Source, Trouble, TroubleKind};
use crate::output::counted;

/// What separates columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Commas; a field may stand in quotes.
    Csv,
    /// Tabs; quotes mean nothing.
    Tsv,
}

impl Dialect {
    fn separator(self) -> u8 {
        match self {
            Self::Csv => b',',
            Self::Tsv => b'\t',
        }
    }
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// It does.
    Present,
    /// It is a record like the others.
    Absent,
}

/// Where the columns of an input are: what reading it on needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Columns of every row; known once the first row is read.
    columns: Option<usize>,
    /// Those that are read.
    places: Vec<usize>,
    /// What lines end with.
    line_end: u8,
}

impl Head {
    /// Whether there was a row to know it by.
    pub(crate) fn is_known(&self) -> bool {
        self.columns.is_some()
    }
}

/// See the module.
pub(crate) struct Delimited<R> {
    window: Window<R>,
    dialect: Dialect,
    chosen: Vec<Chosen>,
    /// Columns of every row; known once the first row is read.
    columns: Option<usize>,
    /// What the first row calls them, where it does.
    names: Option<Vec<String>>,
    fields: Vec<Field>,
    /// Where the row stands, as a place for [`Window::taken`].
    row_start: usize,
    row_end: usize,
}

/// A column that is read.
struct Chosen {
    place: usize,
    /// The option that asks for it.
    option: &'static str,
    /// Its text, where that is not as it stands in the row.
    text: Vec<u8>,
}

impl<R: Read> Delimited<R> {
    /// A source of keys and values. Reads the header, if there is one, and finds the two columns in it.
    pub(crate) fn new(
        window: Window<R>,
        dialect: Dialect,
        header: Header,
        key: &Column,
        value: &Column,
    ) -> Result<Self, Trouble> {
        Self::with_columns(window, dialect, header, &[(key, "--key"), (value, "--value")])
    }

    /// Rows of which these columns are read, each with the option that asks for it.
    pub(crate) fn with_columns(
        mut window: Window<R>,
        dialect: Dialect,
        header: Header,
        columns: &[(&Column, &'static str)],
    ) -> Result<Self, Trouble> {
        window.skip_byte_order_mark()?;
        let quote = (dialect == Dialect::Csv).then_some(b'"');
        let line_end = window.find_line_end(quote, dialect.separator())?;
        window.set_line_end(line_end);
        let mut source = Self {
            window,
            dialect,
            chosen: Vec::new(),
            columns: None,
            names: None,
            fields: Vec::new(),
            row_start: 0,
            row_end: 0,
        };
        let names = match header {
            Header::Present => source.header()?,
            Header::Absent => None,
        };
        for (column, option) in columns {
            let place = place_of(column, names.as_deref())?;
            source.chosen.push(Chosen { place, option, text: Vec::new() });
        }
        source.names = names;
        Ok(source)
    }

    /// Rows behind others, of which `head` was the head.
    pub(crate) fn behind(
        mut window: Window<R>,
        dialect: Dialect,
        head: &Head,
        options: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        window.set_line_end(head.line_end);
        let chosen = |(place, option)| Chosen { place, option, text: Vec::new() };
        Self {
            window,
            dialect,
            chosen: head.places.iter().copied().zip(options).map(chosen).collect(),
            columns: head.columns,
            names: None,
            fields: Vec::new(),
            row_start: 0,
            row_end: 0,
        }
    }

    /// The rows behind those that were read, as blocks of about this length.
    pub(crate) fn into_blocks(self, block_bytes: usize) -> Blocks<R> {
        let quoting = match self.dialect {
            Dialect::Csv => Quoting::Quoted(self.dialect.separator()),
            Dialect::Tsv => Quoting::Plain,
        };
        Blocks::new(self.window, quoting, block_bytes)
    }

    /// What reading on needs.
    pub(crate) fn head(&self) -> Head {
        Head {
            columns: self.columns,
            places: self.chosen.iter().map(|chosen| chosen.place).collect(),
            line_end: self.window.line_end_byte(),
        }
    }

    /// The names in the first row; `None` where the input is empty.
    fn header(&mut self) -> Result<Option<Vec<String>>, Trouble> {
        let Some(line) = self.first_line()? else { return Ok(None) };
        match self.split(line) {
            Err(_) if self.window.leave() => return Ok(None),
            split => split?,
        }
        let names = self.fields.iter().map(|field| {
            let mut text = Vec::new();
            rfc4180_text(&self.window, *field, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let names = names.collect();
        self.columns = Some(self.fields.len());
        self.window.consume(self.row_end);
        Ok(Some(names))
    }

    /// The end of the next line that is not blank, which then begins at the window's start.
    #[inline]
    fn first_line(&mut self) -> Result<Option<LineEnd>, Trouble> {
        loop {
            match self.window.line_end(0)? {
                Some(line) if line.content == 0 => self.window.consume(line.next),
                line => return Ok(line),
            }
        }
    }

    /// Finds the fields of the row whose first line ends at `line`, and the row's end.
    #[inline]
    fn split(&mut self, line: LineEnd) -> Result<(), Trouble> {
        self.fields.clear();
        let row = self.window.at(0..line.content);
        let separator = self.dialect.separator();
        if self.dialect == Dialect::Csv && memchr::memchr(b'"', row).is_some() {
            self.row_end = rfc4180::split_quoted(&mut self.window, line, separator, &mut self.fields)?.next;
            if self.window.is_unclosed() {
                return Err(TroubleKind::bad("the row has no end"));
            }
        } else {
            let stray = rfc4180::stray(self.window.line_end_byte());
            rfc4180::split_plain(row, separator, stray, self.window.offset(), &mut self.fields)?;
            self.row_end = line.next;
        }
        Ok(())
    }

    fn check_columns(&mut self) -> Result<(), Trouble> {
        let found = self.fields.len();
        let expected = *self.columns.get_or_insert(found);
        if found != expected {
            return Err(TroubleKind::bad(format!(
                "{}, where the first row has {expected}",
                counted(found as u64, "column")
            )));
        }
        if let Some(Chosen { place, option, .. }) = self.chosen.iter().find(|chosen| chosen.place >= found) {
            let text = self.fields.first().map_or(&[][..], |field| self.window.at(field.start..field.end));
            let has_semicolons = self.dialect == Dialect::Csv && text.contains(&b';');
            let hint = if has_semicolons { "; csv has commas between columns, not semicolons" } else { "" };
            return Err(TroubleKind::bad(format!(
                "{}, but number {} is needed; {option} chooses another{hint}",
                counted(found as u64, "column"),
                place + 1
            )));
        }
        Ok(())
    }

    #[inline]
    fn text(&self, at: usize) -> &[u8] {
        let chosen = &self.chosen[at];
        let field = self.fields[chosen.place];
        if field.escaped {
            return &chosen.text;
        }
        self.window.taken(self.row_start + field.start..self.row_start + field.end)
    }
}

impl BlockRows for Delimited<Empty> {
    fn begin(&mut self, block: Block) -> Vec<u8> {
        std::mem::replace(&mut self.window, Window::over(block)).into_bytes()
    }
}

impl<R: Read> Rows for Delimited<R> {
    #[inline]
    fn advance(&mut self) -> Result<bool, Trouble> {
        let line = match self.first_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(trouble) => {
                self.window.begin_record();
                self.window.skip_line()?;
                return Err(trouble);
            }
        };
        self.window.begin_record();
        // What is malformed ends with its first line, so that one stray quote costs one line.
        if let Err(trouble) = self.split(line) {
            if self.window.leave() {
                return Ok(false);
            }
            self.window.consume(line.next);
            return Err(trouble);
        }
        if let Err(trouble) = self.check_columns() {
            self.window.consume(self.row_end);
            return Err(trouble);
        }
        for chosen in &mut self.chosen {
            let field = self.fields[chosen.place];
            if field.escaped {
                chosen.text.clear();
                rfc4180_text(&self.window, field, &mut chosen.text);
            }
        }
        self.row_start = self.window.start();
        self.window.consume(self.row_end);
        Ok(true)
    }

    #[inline]
    fn column(&self, at: usize) -> Option<&[u8]> {
        Some(self.text(at))
    }

    /// An empty field holds no value.
    #[inline]
    fn value(&self, at: usize) -> Value<'_> {
        let text = self.text(at);
        if text.is_empty() { Value::Null } else { Value::bytes(text) }
    }

    fn left(&self) -> u64 {
        self.window.left() as u64
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn end(&self) -> u64 {
        self.window.offset()
    }
}

impl<R: Read> Source for Delimited<R> {
    #[inline]
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        if !self.advance()? {
            return Ok(None);
        }
        Ok(Some((self.text(0), self.text(1))))
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}

fn rfc4180_text<R: Read>(window: &Window<R>, field: Field, out: &mut Vec<u8>) {
    let text = window.at(field.start..field.end);
    if field.escaped {
        rfc4180::unescape(text, out);
    } else {
        out.extend_from_slice(text);
    }
}
