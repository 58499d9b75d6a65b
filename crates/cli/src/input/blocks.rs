//! An input cut into blocks of whole records, which can be read beside each other.
//!
//! 1. A block ends behind a line's end, as late as a window of bytes allows.
//! 2. Where a line's end may stand in quotes, rows with quotes are walked as those who read them do; all rows between
//!    are passed over by looking for the next quote.
//!
//! **Invariant:** reading the blocks one by one gives the records that reading the input gives.

use std::io::Read;

use memchr::{memchr, memrchr};

use super::rfc4180::{self, RowEnd};
use super::window::{Block, Window};
use super::{Position, Trouble, TroubleKind};

/// How long a block is, where records are shorter: it stays in the second cache while it is read.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Whether a line's end may stand inside of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// In double quotes, at whose ends this separator stands.
    Quoted(u8),
    Plain,
}

/// See the module.
pub(crate) struct Blocks<R> {
    window: Window<R>,
    quoting: Quoting,
    block_bytes: usize,
    bad: Position,
}

impl<R: Read> Blocks<R> {
    /// Those of an input, of about this length, from where the window stands: a record begins there.
    pub(super) fn new(window: Window<R>, quoting: Quoting, block_bytes: usize) -> Self {
        Self { window, quoting, block_bytes, bad: Position::default() }
    }

    /// The next block, in whose place other memory goes; `None` at the end. A record that is too long is bad, and stands
    /// at [`bad`](Self::bad); the next block begins behind it.
    pub(crate) fn next(&mut self, spare: Vec<u8>) -> Result<Option<Block>, Trouble> {
        let mut wanted = self.block_bytes;
        loop {
            self.window.reach(wanted)?;
            let (bytes, is_last) = self.window.all();
            if bytes.is_empty() {
                return Ok(None);
            }
            let found = bytes.len();
            let cut = if is_last { Some(found) } else { self.cut(bytes) };
            if let Some(cut) = cut {
                return Ok(Some(self.window.split_front(cut, spare, self.block_bytes)));
            }
            let longest = self.window.record_bytes_max();
            if found >= longest {
                return self.skip_long(longest, spare);
            }
            wanted = (2 * found).min(longest);
        }
    }

    /// Where the record stands that was bad.
    pub(crate) fn bad(&self) -> Position {
        self.bad
    }

    /// A record that does not end where the longest does: what is malformed ends with its first line.
    #[cold]
    fn skip_long(&mut self, longest: usize, spare: Vec<u8>) -> Result<Option<Block>, Trouble> {
        if let Some(line) = memchr(self.window.line_end_byte(), self.window.all().0) {
            return Ok(Some(self.window.split_front(line + 1, spare, self.block_bytes)));
        }
        self.bad = Position { number: 1, offset: self.window.offset() };
        self.window.skip_line()?;
        Err(TroubleKind::bad(format!("the record is longer than {longest} bytes")))
    }

    /// Where the last record ends of those that are whole in `bytes`; `None` where not even the first is.
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        let line_end = self.window.line_end_byte();
        let last_line =
            |from: usize, to: usize| memrchr(line_end, &bytes[from..to]).map(|end| from + end + 1);
        let Quoting::Quoted(separator) = self.quoting else { return last_line(0, bytes.len()) };
        // Up to where all is known, where a block can end, and where it must not end before.
        let (mut at, mut cut, mut least) = (0, 0, 0);
        while let Some(quote) = memchr(b'"', &bytes[at..]) {
            let row = last_line(at, at + quote).unwrap_or(at);
            cut = if row < least { cut } else { row };
            match rfc4180::row_end(&bytes[row..], separator, line_end) {
                None => return (cut > 0).then_some(cut),
                Some(RowEnd::At(end)) => at = row + end,
                // Who reads the row looks as far as this, to tell what is wrong with it.
                Some(RowEnd::Malformed { first_line, seen }) => {
                    at = row + first_line;
                    least = least.max(row + seen);
                }
            }
            cut = if at < least { cut } else { at };
        }
        let end = last_line(at, bytes.len()).unwrap_or(at);
        cut = if end < least { cut } else { end };
        (cut > 0).then_some(cut)
    }
}
