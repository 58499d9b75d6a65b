//! [`Made`]: record batches of groups that come with their states.

use std::collections::VecDeque;

use arrow_array::{BinaryArray, RecordBatch};
use forebay::{Error, Result};
use forebay_aggregate::arrow::{PartialBatches, PartialSchema};

/// What is there of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What its functions answer.
    Answers,
    /// Its states.
    States,
}

/// See the module.
pub struct Made<I> {
    entries: I,
    made: PartialBatches,
    ready: VecDeque<RecordBatch>,
    is_over: bool,
    /// What makes keys of those that stand in the table, where these are others.
    shown: Option<Box<Shown>>,
    key: Vec<u8>,
}

/// Appends the key of a group, of the one that stands in a table.
type Shown = dyn FnMut(&[u8], &mut Vec<u8>) + Send;

impl<I: Iterator<Item = Result<RecordBatch>>> Made<I> {
    /// Of record batches that have a key and a state in each row.
    pub fn new(entries: I, schema: &PartialSchema, wanted: Wanted, rows_max: usize) -> Self {
        let made = match wanted {
            Wanted::Answers => PartialBatches::of_answers(schema),
            Wanted::States => PartialBatches::new(schema),
        };
        let (made, ready) = (made.rows_max(rows_max), VecDeque::new());
        Self { entries, made, ready, is_over: false, shown: None, key: Vec::new() }
    }

    /// Keys are made of those that stand in the table.
    #[must_use]
    pub fn keys(mut self, shown: impl FnMut(&[u8], &mut Vec<u8>) + Send + 'static) -> Self {
        self.shown = Some(Box::new(shown));
        self
    }

    fn advance(&mut self) -> Result<()> {
        let Some(entries) = self.entries.next() else {
            self.is_over = true;
            self.ready.extend(self.made.finish()?);
            return Ok(());
        };
        let entries = entries?;
        let columns = [0, 1].map(|at| {
            let column = entries.column(at).as_any().downcast_ref::<BinaryArray>();
            column.ok_or_else(|| Error::Bug("a table's columns are not binary".into()))
        });
        let [keys, states] = columns;
        for (key, state) in keys?.iter().zip(states?) {
            let mut key = key.unwrap_or_default();
            if let Some(shown) = &mut self.shown {
                self.key.clear();
                shown(key, &mut self.key);
                key = &self.key;
            }
            self.ready.extend(self.made.push(key, state.unwrap_or_default())?);
        }
        Ok(())
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for Made<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_over {
            if let Err(error) = self.advance() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}
