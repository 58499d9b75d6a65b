//! Scans: a merge of the buffers and of one leaf's path at a time, over a pinned view.

use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Cursor, Direction, LoserTree};
use forebay_base::{Bound, Range, Record, Result};
use forebay_layouts::Rule;
use forebay_store::{BufferCursor, ListCursor};

use crate::engine::{Engine, TableState};
use crate::read::View;

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// An iterator over a table, or part of it, as it was when the scan was made. It blocks no writer. After an
/// error it ends. One leaf's lists are read at a time, each in pieces of 32 KiB.
pub struct Scan {
    /// Kept so that the files of the view outlive the database's handle.
    _engine: Arc<Engine>,
    view: View,
    table: Arc<TableState>,
    rule: Rule,
    range: Range,
    direction: Direction,
    /// Where the next stretch begins; `None` when there is none.
    next: Option<Position>,
    merge: Option<LoserTree<Source>>,
    fold: Fold,
}

/// Where a walk stands between two stretches.
enum Position {
    Start,
    At(Bound),
}

enum Source {
    Buffer(BufferCursor),
    List(ListCursor),
}

impl Cursor for Source {
    fn prefix(&self) -> Option<u64> {
        match self {
            Self::Buffer(cursor) => cursor.prefix(),
            Self::List(cursor) => cursor.prefix(),
        }
    }

    fn record(&self) -> Record<'_> {
        match self {
            Self::Buffer(cursor) => cursor.record(),
            Self::List(cursor) => cursor.record(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Self::Buffer(cursor) => cursor.advance(),
            Self::List(cursor) => cursor.advance(),
        }
    }
}

impl Scan {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        view: View,
        table: u32,
        range: Range,
        direction: Direction,
    ) -> Result<Self> {
        let table = Arc::clone(view.table(table)?);
        let rule = table.rule()?.clone();
        let next = (!range.is_empty()).then_some(Position::Start);
        Ok(Self {
            _engine: Arc::clone(engine),
            view,
            table,
            rule,
            range,
            direction,
            next,
            merge: None,
            fold: Fold::default(),
        })
    }

    /// Sets up the merge over the next stretch.
    fn enter_stretch(&mut self) -> Result<()> {
        let Some(position) = self.next.take() else { return Ok(()) };
        let from = match (&position, self.direction) {
            (Position::At(bound), _) => Some(bound),
            (Position::Start, Direction::Forward) => Some(&self.range.low),
            (Position::Start, Direction::Backward) => self.range.high.as_ref(),
        };
        let Some(stretch) = self.table.catalog.stretch(from, &self.range, self.direction)? else {
            return Ok(());
        };
        self.next = match self.direction {
            Direction::Forward if stretch.range.high == self.range.high => None,
            Direction::Forward => stretch.range.high.clone().map(Position::At),
            Direction::Backward if stretch.range.low == self.range.low => None,
            Direction::Backward => Some(Position::At(stretch.range.low.clone())),
        };
        let mut sources = Vec::new();
        for (buffer, limit) in self.view.buffers() {
            let cursors = buffer.cursors(&self.table.rows(), &stretch.range, self.direction, limit);
            sources.extend(cursors.into_iter().map(Source::Buffer));
        }
        sources.extend(stretch.sources.into_iter().map(Source::List));
        self.merge = Some(LoserTree::new(sources, self.direction));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Entry>> {
        loop {
            let Some(merge) = &mut self.merge else {
                if self.next.is_none() {
                    return Ok(None);
                }
                self.enter_stretch()?;
                continue;
            };
            let Some(prefix) = merge.prefix() else {
                self.merge = None;
                continue;
            };
            let key = merge.record().key.to_vec();
            self.fold.clear();
            let mut open = true;
            while merge.prefix() == Some(prefix) && merge.record().key == key {
                open = open && self.fold.add(&self.rule, &merge.record());
                merge.advance()?;
            }
            if let Some(record) = self.fold.finish(&key, Depth::Bottom) {
                let value = record.value.to_vec();
                return Ok(Some((key, value)));
            }
        }
    }
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.step().transpose();
        if matches!(entry, Some(Err(_))) {
            self.next = None;
            self.merge = None;
        }
        entry
    }
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scan({}, {:?})", self.table.name, self.direction)
    }
}
