//! Scans: iterators from both ends, which hand out copies.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Range, Result};

use crate::Cursor;
use crate::engine::Engine;
use crate::read::Entry;
use crate::versions::{Versions, View};

/// An iterator over a table, or part of it, as it was when the scan was made: from the front, from the back, or both. It
/// blocks no writer. After an error it ends. Device reads: those of a [`Cursor`], which spares the copies, too.
pub struct Scan {
    versions: Arc<Versions>,
    view: View,
    table: u32,
    range: Range,
    /// Where the walk from either end has come, once it has begun.
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// Both ends have met, or there was an error.
    is_over: bool,
}

impl Scan {
    pub(crate) fn new(engine: &Arc<Engine>, mut view: View, table: u32, range: Range) -> Result<Self> {
        let state = view.table(table)?;
        // What is wrong with the call is told now.
        state.rule()?;
        if state.options.time_to_live.is_some() {
            // From either end the same entries are alive.
            view.moment.get_or_insert_with(|| engine.context.env.clock.unix_milliseconds());
        }
        let versions = Arc::clone(&engine.versions);
        Ok(Self { versions, view, table, range, front: None, back: None, is_over: false })
    }

    fn advance(&mut self, direction: Direction) -> Result<Option<Entry>> {
        let (own, other) = match direction {
            Direction::Forward => (&mut self.front, &self.back),
            Direction::Backward => (&mut self.back, &self.front),
        };
        let cursor = match own {
            Some(cursor) => cursor,
            none => {
                let (view, range) = (self.view.clone(), self.range.clone());
                none.insert(Cursor::new(&self.versions, view, self.table, range, direction)?)
            }
        };
        match direction {
            Direction::Forward => cursor.next()?,
            Direction::Backward => cursor.prev()?,
        }
        let has_met = other.as_ref().is_some_and(|other| cursor.has_reached(other, direction));
        Ok(cursor.to_entry().filter(|_| !has_met))
    }

    fn take(&mut self, direction: Direction) -> Option<Result<Entry>> {
        if self.is_over {
            return None;
        }
        let entry = self.advance(direction).transpose();
        self.is_over = !matches!(entry, Some(Ok(_)));
        entry
    }
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Direction::Forward)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Direction::Backward)
    }
}

impl std::iter::FusedIterator for Scan {}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scan({:?}, {:?})", self.front, self.back)
    }
}
