//! How far a stream of changes is applied, and what came of it.

use forebay_store::manifest::TableEntry;
use serde::Serialize;

use crate::changes::Round;

/// Up to where a stream is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    #[default]
    End,
    /// No commit whose last record has a higher number. It ends where that number is reached, though the stream goes on.
    Sequence(u64),
    /// Only what was committed by this time, in milliseconds since 1970, as far as the stream tells: it has a time for
    /// each [round](crate::ChangeStream::advance), by which all of it was committed. The first round of a later time, and
    /// all behind it, are left out.
    Time(u64),
}

/// Why a stream was not applied further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEnd {
    /// It has told its end.
    Finished,
    /// Its bytes end before that, as where whoever wrote it was stopped. What was whole is applied.
    CutOff,
    /// What follows was not wanted.
    Reached,
}

/// What came of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// The number of the follower's last record: where the next stream is to begin.
    pub position: u64,
    /// How many commits were applied.
    pub batches: u64,
    /// The time of the last round that was told, by which all of it was committed, in milliseconds since 1970.
    pub at_milliseconds: Option<u64>,
    /// Why it ended.
    pub end: StreamEnd,
}

/// What tables a stream has told of.
#[derive(Default)]
pub(super) struct Told {
    pub(super) tables: Vec<TableEntry>,
    pub(super) next_table: u32,
    /// Whether they are all here.
    pub(super) is_taken: bool,
}

impl Told {
    pub(super) fn hear(&mut self, round: Round) {
        self.is_taken &= round.tables.is_none() && round.next_table == self.next_table;
        self.next_table = round.next_table;
        if let Some(tables) = round.tables {
            self.tables = tables;
        }
    }
}
