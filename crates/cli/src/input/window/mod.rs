//! A window of bytes that slides over an input.
//!
//! Invariant: `bytes[start..end]` are the input's bytes from `offset` on, and none before them is needed.
//! Offsets that callers pass and get are counted from `start`. The window grows only while one record does
//! not fit, and never over `record_bytes_max`.

mod first;

use std::io::{Empty, ErrorKind, Read, empty};
use std::ops::Range;

use forebay::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use memchr::memchr;

use super::{Position, Trouble, TroubleKind};

/// How much is read at once.
pub(crate) const WINDOW_BYTES: usize = 1 << 20;
/// The longest record of text: twice the longest key and value, for what quotes and escapes add.
pub(crate) const RECORD_BYTES_MAX: usize = 2 * (KEY_BYTES_MAX + VALUE_BYTES_MAX);

/// Bytes of an input that are whole records, and where they begin in it.
#[derive(Clone, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    place: Range<usize>,
    offset: u64,
    line_end: u8,
}

/// See the module.
pub(crate) struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
    record_bytes_max: usize,
    record: Position,
    line_end: u8,
    tail: Tail,
    /// Bytes of a record at the input's end that are left there.
    left: usize,
    /// Whether the record that begins here was found to have no end.
    is_unclosed: bool,
}

/// What becomes of a last line that has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It is a line.
    Taken,
    /// It is left where it is, for it may go on.
    Left,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineEnd {
    /// Where its text ends, before `\n` or `\r\n`.
    pub(crate) content: usize,
    /// Where the next line begins.
    pub(crate) next: usize,
}

impl Window<Empty> {
    /// A window over a block: records are counted from its start, and their offsets are those in the input.
    pub(crate) fn over(block: Block) -> Self {
        let Block { bytes, place, offset, line_end } = block;
        Self {
            start: place.start,
            end: place.end,
            offset,
            ended: true,
            line_end,
            ..Self::of(empty(), bytes, RECORD_BYTES_MAX)
        }
    }

    /// The memory of the block, for another one.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<R: Read> Window<R> {
    /// A window over the whole of `input`.
    pub(crate) fn new(input: R) -> Self {
        Self::with_sizes(input, WINDOW_BYTES, RECORD_BYTES_MAX)
    }

    /// The same, of an input of which some records are behind already.
    pub(crate) fn behind(input: R, record: Position) -> Self {
        Self { offset: record.offset, record, ..Self::new(input) }
    }

    pub(crate) fn with_sizes(input: R, window_bytes: usize, record_bytes_max: usize) -> Self {
        Self::of(input, vec![0; window_bytes], record_bytes_max)
    }

    fn of(input: R, bytes: Vec<u8>, record_bytes_max: usize) -> Self {
        Self {
            input,
            bytes,
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            record_bytes_max,
            record: Position::default(),
            line_end: b'\n',
            tail: Tail::Taken,
            left: 0,
            is_unclosed: false,
        }
    }

    /// What becomes of a last line that has no end.
    pub(crate) fn with_tail(self, tail: Tail) -> Self {
        Self { tail, ..self }
    }

    /// Takes lines to end so: `\n`, before which stands perhaps `\r`; or `\r` alone.
    pub(crate) fn set_line_end(&mut self, line_end: u8) {
        self.line_end = line_end;
    }

    /// What lines end with.
    pub(crate) fn line_end_byte(&self) -> u8 {
        self.line_end
    }

    /// How many bytes at the input's end were left there.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Whether the record that begins here was found to have no end before the input's.
    pub(crate) fn is_unclosed(&self) -> bool {
        self.is_unclosed
    }

    /// Notes that the record which begins here has no end before the input's.
    pub(crate) fn set_unclosed(&mut self) {
        self.is_unclosed = true;
    }

    /// Leaves the record that begins here, if it was found to have no end and may go on: not if it is so long that
    /// something else must be wrong.
    pub(crate) fn leave(&mut self) -> bool {
        let rest = self.end - self.start;
        let is_unclosed = std::mem::take(&mut self.is_unclosed);
        let is_left = is_unclosed && self.tail == Tail::Left && self.ended && rest <= WINDOW_BYTES;
        if is_left {
            self.left = rest;
        }
        is_left
    }

    /// The bytes at `range`, counted from the start of the window.
    #[inline]
    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.start + range.start..self.start + range.end]
    }

    /// The bytes at `range`, which [`line`](Self::line) or [`take`](Self::take) gave just now.
    #[inline]
    pub(crate) fn taken(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The window's start, as a place for [`taken`](Self::taken).
    #[inline]
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where in the input the window begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The record begun last.
    pub(crate) fn record(&self) -> Position {
        self.record
    }

    /// Notes that a record begins here.
    #[inline]
    pub(crate) fn begin_record(&mut self) {
        self.record = Position { number: self.record.number + 1, offset: self.offset };
    }

    /// Moves the start over `length` bytes.
    #[inline]
    pub(crate) fn consume(&mut self, length: usize) {
        debug_assert!(length <= self.end - self.start);
        self.start += length;
        self.offset += length as u64;
    }

    /// Begins a record, takes its line and gives the text's place for [`taken`](Self::taken).
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<Range<usize>>, Trouble> {
        match self.line_end(0) {
            Ok(None) => Ok(None),
            Ok(Some(line)) => {
                self.begin_record();
                let text = self.start..self.start + line.content;
                self.consume(line.next);
                Ok(Some(text))
            }
            Err(trouble) => {
                self.begin_record();
                self.skip_line()?;
                Err(trouble)
            }
        }
    }

    /// The end of the line that begins at `from`; `None` where the input ends there. Too long a line is
    /// bad, and stays where it is: see [`skip_line`](Self::skip_line).
    #[inline]
    pub(crate) fn line_end(&mut self, from: usize) -> Result<Option<LineEnd>, Trouble> {
        let mut searched = from;
        loop {
            let rest = &self.bytes[self.start + searched..self.end];
            if let Some(length) = memchr(self.line_end, rest) {
                let content = searched + length;
                return Ok(Some(self.stripped(from, content, content + 1)));
            }
            searched = self.end - self.start;
            if self.ended {
                if searched > from && self.tail == Tail::Left {
                    if from == 0 {
                        self.left = searched;
                        return Ok(None);
                    }
                    self.is_unclosed = true;
                }
                return Ok((searched > from).then(|| self.stripped(from, searched, searched)));
            }
            if searched >= self.record_bytes_max {
                return Err(TroubleKind::bad(format!(
                    "the record is longer than {} bytes",
                    self.record_bytes_max
                )));
            }
            self.fill()?;
        }
    }

    fn stripped(&self, from: usize, content: usize, next: usize) -> LineEnd {
        let ends_with_return = content > from && self.bytes[self.start + content - 1] == b'\r';
        LineEnd { content: content - usize::from(ends_with_return && next > content), next }
    }

    /// Moves the start behind the next newline, however far it is.
    pub(crate) fn skip_line(&mut self) -> Result<(), Trouble> {
        loop {
            if let Some(length) = memchr(self.line_end, &self.bytes[self.start..self.end]) {
                self.consume(length + 1);
                return Ok(());
            }
            self.consume(self.end - self.start);
            if self.ended {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Whether a whole line is here already, so that asking for it does not wait for the input.
    pub(crate) fn has_line(&self) -> bool {
        memchr(self.line_end, &self.bytes[self.start..self.end]).is_some()
    }

    /// Begins a record of `length` bytes and gives its place for [`taken`](Self::taken); `None` at the end.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<Option<Range<usize>>, Trouble> {
        while self.end - self.start < length {
            if self.ended {
                let left = self.end - self.start;
                if left == 0 {
                    return Ok(None);
                }
                self.begin_record();
                self.consume(left);
                return Err(TroubleKind::bad(format!(
                    "the input ends after {left} of the record's {length} bytes"
                )));
            }
            self.fill()?;
        }
        self.begin_record();
        let place = self.start..self.start + length;
        self.consume(length);
        Ok(Some(place))
    }

    /// Reads until this many bytes are here, or all that are left.
    pub(super) fn reach(&mut self, bytes: usize) -> Result<(), Trouble> {
        while self.end - self.start < bytes && !self.ended {
            self.fill()?;
        }
        Ok(())
    }

    /// All bytes that are here, and whether no others follow.
    pub(super) fn all(&self) -> (&[u8], bool) {
        (&self.bytes[self.start..self.end], self.ended)
    }

    /// The longest record.
    pub(super) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// Takes the first `length` bytes with their memory, and goes on in other memory, of `window_bytes` at least.
    pub(super) fn split_front(&mut self, length: usize, mut spare: Vec<u8>, window_bytes: usize) -> Block {
        let (cut, rest) = (self.start + length, self.end - self.start - length);
        spare.resize(window_bytes.max(rest), 0);
        spare[..rest].copy_from_slice(&self.bytes[cut..self.end]);
        let block = Block {
            bytes: std::mem::replace(&mut self.bytes, spare),
            place: self.start..cut,
            offset: self.offset,
            line_end: self.line_end,
        };
        (self.start, self.end) = (0, rest);
        self.offset += length as u64;
        block
    }

    /// Reads more. What is in the window moves to its front; a full window doubles.
    #[cold]
    fn fill(&mut self) -> Result<(), Trouble> {
        if self.start == self.end || self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len().max(1) * 2, 0);
        }
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(read) => {
                    self.ended = read == 0;
                    self.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
