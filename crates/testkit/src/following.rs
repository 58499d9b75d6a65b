//! A copy that follows the database: it is what the database is, record for record, whenever it has caught up.

use std::path::{Path, PathBuf};

use forebay::{Database, Error, Follower, Result, StreamEnd};

use crate::recovered::remove_all;
use crate::{Harness, Merging, Model, Multiset, Suffix, Tripping};

/// A copy that follows.
#[derive(Default)]
pub(crate) struct Following {
    /// Where it is, and the number of the last record that it began with.
    copy: Option<(PathBuf, u64)>,
    /// How often a copy was asked for.
    pub(crate) turns: u64,
}

impl Harness {
    /// Lets the follower catch up, and makes one where there is none. Every other time it is a copy from then on: returns
    /// where it is, and what it must hold.
    pub(crate) fn follow(&mut self) -> Result<Option<(PathBuf, Model)>> {
        // What a compaction filter drops is dropped by each database by itself.
        let is_followed = self.config.keep_changes_bytes > 0
            && !(0..self.config.tables()).any(|table| self.config.drops(table));
        self.following.turns += 1;
        if !is_followed || self.following.turns.is_multiple_of(2) {
            return Ok(None);
        }
        let Some((dir, since)) = self.following.copy.clone() else {
            let dir = self.new_copy()?;
            self.db().checkpoint(&dir)?;
            self.following.copy = Some((dir, self.db().last_sequence()));
            return Ok(None);
        };
        match self.catch_up(&dir, since) {
            Ok(()) if self.following.turns % 4 == 1 => {
                self.following.copy = None;
                Ok(Some((dir, self.model.copied())))
            }
            Err(error) if is_refusal(&error) => {
                self.following.copy = None;
                // What is left of it is nobody's.
                let _ = remove_all(&*self.env.fs, &dir);
                Ok(None)
            }
            caught_up => caught_up.map(|()| None),
        }
    }

    /// Applies all since a number, of which the follower has some, or all, already.
    fn catch_up(&self, dir: &Path, since: u64) -> Result<()> {
        let [trip, other] = [0; 2].map(|_| self.config.trip.clone());
        let mut follower =
            Follower::open(dir, self.config.options(&self.env))?.merge_rule(Tripping(Suffix, trip));
        // Of tables, and of the cube and the windows.
        for merging in [Merging::Tally, Merging::Bag] {
            follower = follower.aggregator(Tripping(Multiset(merging), other.clone()));
        }
        // Now and then by whoever reads beside it, as another process would.
        let beside = match self.following.turns.is_multiple_of(3) && !self.may_fail && self.other.is_none() {
            true => {
                self.db().sync()?;
                Some(Database::open(&self.dir, self.config.options(&self.env).read_only(true))?)
            }
            false => None,
        };
        let source = beside.as_ref().unwrap_or(self.db());
        let mut stream = source.stream_changes(since, Vec::new())?;
        let told = match stream.advance() {
            Err(Error::ChangesGone { .. }) => {
                stream = source.stream_changes(follower.position(), Vec::new())?;
                stream.advance()?
            }
            told => told?,
        };
        let bytes = stream.finish()?;
        let applied = follower.apply(&bytes[..])?;
        assert_eq!(
            (applied.position, applied.end),
            (told.max(since), StreamEnd::Finished),
            "a follower's position"
        );
        assert_eq!(applied.position, self.db().last_sequence(), "a follower that has caught up");
        follower.close()
    }
}

/// Whether a follower must be made anew: the log does not go back so far, or something came in beside it.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::ChangesGone { .. } | Error::Panicked(_) => true,
        Error::Invalid(reason) => reason.contains("no line in common"),
        _ => false,
    }
}
