//! How far a stream of changes is applied, and what came of it.

use serde::Serialize;

/// Up to where a stream is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    #[default]
    End,
    /// No commit whose last record has a higher number. It ends where that number is reached, though the stream goes on. A
    /// follower that has more already is an error.
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
    /// Nothing is missing that was begun: it has told its end, or ends behind a whole round.
    Finished,
    /// Its bytes end amid a round, as where whoever wrote it was stopped. What was whole is applied.
    CutOff,
    /// What follows was not wanted.
    Reached,
    /// More is here than was wanted: nothing that is in time tells of the follower's last records, and a round of a
    /// [later time](Until::Time) does. It may be right all the same where that is known otherwise, as of a backup that was
    /// taken in time.
    Passed,
    /// The source has not come as far as the follower. Its own source may be gone, or far ahead; or it lost what the
    /// follower has, and then it says so once it goes on. One that is a follower itself may also not have heard yet which
    /// tables were made and dropped: it does so at the end of its round.
    Behind,
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
