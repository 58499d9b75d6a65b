//! Splitting a row of delimited text into fields.
//!
//! 1. A field that does not begin with a quote runs to the next separator; quotes inside it are text.
//! 2. A field that begins with a quote runs to the next quote that is not doubled, over newlines too.
//! 3. Behind the closing quote comes a separator or the end of the row; anything else is malformed.
//!
//! Unlike more lenient readers it tells of a quote that nobody closes, rather than take the rest of the
//! input for one field.

use std::io::Read;

use memchr::{memchr, memchr2, memchr2_iter, memchr3};

use super::window::{LineEnd, Window};
use super::{Trouble, TroubleKind};

/// A field's place in the window, from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it holds doubled quotes.
    pub(super) escaped: bool,
}

/// The byte that ends lines where `\r` or `\n` does, and may not stand in a row of lines that end with the other.
pub(super) fn stray(line_end: u8) -> u8 {
    if line_end == b'\r' { b'\n' } else { b'\r' }
}

#[cold]
fn strayed(stray: u8, offset: u64) -> Trouble {
    let (name, other) = if stray == b'\r' { ("return", "newline") } else { ("newline", "return") };
    TroubleKind::bad(format!(
        "a {name} stands outside of quotes, where lines end with a {other}, at byte offset {offset}"
    ))
}

/// Splits a row in which quotes mean nothing, and which begins at an offset.
#[inline]
pub(super) fn split_plain(
    row: &[u8],
    separator: u8,
    stray: u8,
    offset: u64,
    fields: &mut Vec<Field>,
) -> Result<(), Trouble> {
    let mut start = 0;
    for end in memchr2_iter(separator, stray, row) {
        if row[end] == stray {
            return Err(strayed(stray, offset + end as u64));
        }
        fields.push(Field { start, end, escaped: false });
        start = end + 1;
    }
    fields.push(Field { start, end: row.len(), escaped: false });
    Ok(())
}

/// Splits the row that begins at the window's start and whose first line ends at `line`; gives the end of
/// its last line.
pub(super) fn split_quoted<R: Read>(
    window: &mut Window<R>,
    mut line: LineEnd,
    separator: u8,
    fields: &mut Vec<Field>,
) -> Result<LineEnd, Trouble> {
    let mut at = 0;
    loop {
        if at < line.content && window.at(at..at + 1) == b"\"" {
            let (field, end_line) = quoted_field(window, at, line)?;
            line = end_line;
            fields.push(field);
            at = field.end + 1;
            if at == line.content {
                return Ok(line);
            }
            if window.at(at..at + 1)[0] != separator {
                let offset = window.offset() + at as u64;
                return Err(TroubleKind::bad(format!(
                    "neither a separator nor the end of the row behind the closing quote, at byte offset {offset}"
                )));
            }
            at += 1;
        } else {
            let stray = stray(window.line_end_byte());
            match memchr2(separator, stray, window.at(at..line.content)) {
                Some(length) if window.at(at + length..at + length + 1)[0] == stray => {
                    return Err(strayed(stray, window.offset() + (at + length) as u64));
                }
                Some(length) => {
                    fields.push(Field { start: at, end: at + length, escaped: false });
                    at += length + 1;
                }
                None => {
                    fields.push(Field { start: at, end: line.content, escaped: false });
                    return Ok(line);
                }
            }
        }
    }
}

/// The field whose opening quote is at `open`, and the line it ends in.
fn quoted_field<R: Read>(
    window: &mut Window<R>,
    open: usize,
    mut line: LineEnd,
) -> Result<(Field, LineEnd), Trouble> {
    let mut at = open + 1;
    let mut escaped = false;
    loop {
        match memchr(b'"', window.at(at..line.next)) {
            Some(length) => {
                let quote = at + length;
                if quote + 1 < line.next && window.at(quote + 1..quote + 2) == b"\"" {
                    escaped = true;
                    at = quote + 2;
                } else {
                    return Ok((Field { start: open + 1, end: quote, escaped }, line));
                }
            }
            None => {
                at = line.next;
                let offset = window.offset() + open as u64;
                line = match window.line_end(at)? {
                    Some(line) => line,
                    None => {
                        window.set_unclosed();
                        return Err(TroubleKind::bad(format!(
                            "the quote opened at byte offset {offset} is never closed"
                        )));
                    }
                };
            }
        }
    }
}

/// Where a row ends.
pub(super) enum RowEnd {
    At(usize),
    /// Behind its first line; so many bytes tell what is wrong.
    Malformed {
        first_line: usize,
        seen: usize,
    },
}

/// Where the row ends that `bytes` begin with, as [`split_quoted`] finds it. `None` where more bytes are needed to tell.
pub(super) fn row_end(bytes: &[u8], separator: u8, line_end: u8) -> Option<RowEnd> {
    let first_line = memchr(line_end, bytes)? + 1;
    let stray = stray(line_end);
    let mut at = 0;
    loop {
        // What ends the field, or is not where it should be.
        let mut end = at;
        if *bytes.get(at)? == b'"' {
            end = at + 1;
            loop {
                end += memchr(b'"', &bytes[end..])? + 1;
                if *bytes.get(end)? != b'"' {
                    break;
                }
                end += 1;
            }
        } else {
            end += memchr3(separator, line_end, stray, &bytes[at..])?;
        }
        match bytes[end] {
            byte if byte == separator => at = end + 1,
            byte if byte == line_end => return Some(RowEnd::At(end + 1)),
            b'\r' if *bytes.get(end + 1)? == line_end => return Some(RowEnd::At(end + 2)),
            _ => return Some(RowEnd::Malformed { first_line, seen: end + 1 }),
        }
    }
}

/// Appends the text of a field with doubled quotes.
pub(super) fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut start = 0;
    while let Some(length) = memchr(b'"', &field[start..]) {
        out.extend_from_slice(&field[start..start + length + 1]);
        start += length + 2;
    }
    out.extend_from_slice(&field[start..]);
}
