//! Input records: where they come from and what they look like.
//!
//! A [`Source`] lends one key and value at a time out of its [`window::Window`], so that a record costs no
//! allocation. After a bad record the source stands at the next one; the caller decides whether to go on.

pub(crate) mod blocks;
pub(crate) mod delimited;
pub(crate) mod fixed;
pub(crate) mod format;
pub(crate) mod header;
pub(crate) mod jsonl;
pub(crate) mod lines;
pub(crate) mod open;
pub(crate) mod parquet;
mod rfc4180;
pub(crate) mod rows;
#[cfg(test)]
mod tests;
pub(crate) mod unpack;
pub(crate) mod window;

use std::io;

use forebay_aggregate::Value;
use serde::{Deserialize, Serialize};

/// A borrowed key and value.
pub(crate) type Pair<'a> = (&'a [u8], &'a [u8]);

/// A stream of records.
pub(crate) trait Source {
    /// The next record; `None` at the end of the input.
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble>;

    /// Where the last record, good or bad, stands.
    fn position(&self) -> Position;

    /// How many bytes of the input are behind.
    fn bytes_read(&self) -> u64;
}

/// A stream of rows, of which chosen columns are lent.
pub(crate) trait Rows {
    /// Goes to the next row; `false` at the end of the input.
    fn advance(&mut self) -> Result<bool, Trouble>;

    /// A chosen column of the row, by its place among the chosen ones; `None` where the row has none.
    fn column(&self, at: usize) -> Option<&[u8]>;

    /// The same as an argument of a function.
    fn value(&self, at: usize) -> Value<'_> {
        self.column(at).map_or(Value::Null, Value::bytes)
    }

    /// Of the chosen columns those that no row had so far, each with what it may have been meant to be called.
    fn absent(&self) -> Vec<(usize, Option<String>)> {
        Vec::new()
    }

    /// How many bytes at the input's end are left, for they are of a record that may go on.
    fn left(&self) -> u64 {
        0
    }

    /// Where the last row, good or bad, stands.
    fn position(&self) -> Position;

    /// Where what comes behind it begins.
    fn end(&self) -> u64;
}

/// Rows of blocks, one block after the other.
pub(crate) trait BlockRows: Rows {
    /// Begins a block; returns the memory of the one before.
    fn begin(&mut self, block: window::Block) -> Vec<u8>;
}

/// Why there is no next record. Boxed, to keep the good case small.
pub(crate) type Trouble = Box<TroubleKind>;

/// See [`Trouble`].
#[derive(Debug)]
pub(crate) enum TroubleKind {
    /// The input cannot be read.
    Read(io::Error),
    /// The record is malformed; the next call goes on behind it.
    Bad(String),
}

impl TroubleKind {
    /// A malformed record.
    pub(crate) fn bad(reason: impl Into<String>) -> Trouble {
        Box::new(Self::Bad(reason.into()))
    }
}

impl From<io::Error> for Box<TroubleKind> {
    fn from(error: io::Error) -> Self {
        Box::new(TroubleKind::Read(error))
    }
}

/// Which record, and where it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// From 1; a header is no record.
    pub(crate) number: u64,
    /// In bytes from the start of the input.
    pub(crate) offset: u64,
}
