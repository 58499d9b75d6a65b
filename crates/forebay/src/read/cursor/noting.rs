//! What a transaction's cursor has read: all from where it was sent, or stood, to where it has come.

use forebay_base::merge::Direction;
use forebay_base::{Bound, Range, Result};

use super::Cursor;

impl Cursor {
    /// It is about to be sent to a place; `None` is the end of the table.
    #[inline]
    pub(super) fn begin_noting(&mut self, place: impl FnOnce() -> Option<Bound>) {
        if self.view.own.is_some() {
            self.noted = place();
        }
    }

    /// Comes to the next key that has a value, as [`resolve`](Self::resolve) does, and notes that.
    #[inline]
    pub(super) fn come(&mut self) -> Result<()> {
        self.resolve()?;
        if self.view.own.is_none() { Ok(()) } else { self.note_read() }
    }

    #[cold]
    fn note_read(&mut self) -> Result<()> {
        let from = self.noted.take();
        let here = self.stored().map(|(key, _)| (self.table.order.prefix(key), key));
        let range = match self.direction {
            Direction::Forward => {
                // Right behind a key is where it would be with one byte more.
                let behind = |(prefix, key): (u64, &[u8])| Bound { prefix, key: [key, &[0]].concat().into() };
                let high = here.map(behind).or_else(|| self.range.high.clone());
                // Behind the end of the table there is nothing to go on to.
                debug_assert!(from.is_some(), "a walk forward comes from a place");
                Range { low: from.unwrap_or_default(), high }
            }
            Direction::Backward => {
                let at = |(prefix, key): (u64, &[u8])| Bound { prefix, key: key.into() };
                Range { low: here.map_or_else(|| self.range.low.clone(), at), high: from }
            }
        };
        self.noted = match self.direction {
            Direction::Forward => range.high.clone(),
            Direction::Backward => Some(range.low.clone()),
        };
        self.view.own.as_ref().map_or(Ok(()), |own| own.reads.note_range(&self.table, range))
    }
}
