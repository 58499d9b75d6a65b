//! `lines`: a line is a key, without its `\n` or `\r\n`; values are empty.

use std::io::Read;

use super::window::Window;
use super::{Pair, Position, Source, Trouble};

/// See the module.
pub(crate) struct Lines<R> {
    window: Window<R>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(window: Window<R>) -> Self {
        Self { window }
    }

    /// Whether a whole line is here already.
    pub(crate) fn has_line(&self) -> bool {
        self.window.has_line()
    }
}

impl<R: Read> Source for Lines<R> {
    #[inline]
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        let line = self.window.line()?;
        Ok(line.map(|line| (self.window.taken(line), &[][..])))
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}
