//! Scans: cursors that walk one way and hand out copies.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Range, Result};

use crate::Cursor;
use crate::engine::Engine;
use crate::read::Entry;
use crate::versions::View;

/// An iterator over a table, or part of it, as it was when the scan was made. It blocks no writer. After an
/// error it ends. Device reads: those of a [`Cursor`], which spares the copies, too.
#[derive(Debug)]
pub struct Scan {
    cursor: Cursor,
    direction: Direction,
    failed: bool,
}

impl Scan {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        view: View,
        table: u32,
        range: Range,
        direction: Direction,
    ) -> Result<Self> {
        let cursor = Cursor::new(&engine.versions, view, table, range, direction)?;
        Ok(Self { cursor, direction, failed: false })
    }
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let moved = match self.direction {
            Direction::Forward => self.cursor.next(),
            Direction::Backward => self.cursor.prev(),
        };
        self.failed = moved.is_err();
        moved.map(|()| self.cursor.to_entry()).transpose()
    }
}
