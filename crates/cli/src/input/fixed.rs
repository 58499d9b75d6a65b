//! `fixed:KEY,VALUE`: records of KEY key bytes and VALUE value bytes, one behind the other.

use std::io::Read;

use super::window::Window;
use super::{Pair, Position, Source, Trouble};

/// See the module.
pub(crate) struct Fixed<R> {
    window: Window<R>,
    key_bytes: usize,
    record_bytes: usize,
}

impl<R: Read> Fixed<R> {
    pub(crate) fn new(window: Window<R>, key_bytes: usize, value_bytes: usize) -> Self {
        Self { window, key_bytes, record_bytes: key_bytes + value_bytes }
    }
}

impl<R: Read> Source for Fixed<R> {
    #[inline]
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        let record = self.window.take(self.record_bytes)?;
        Ok(record.map(|record| self.window.taken(record).split_at(self.key_bytes)))
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}
