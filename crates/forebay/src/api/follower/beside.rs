//! Who stands beside a follower: reads it while it follows, and is to see no commit half done.

use forebay_base::{Error, Result};

use super::Follower;

/// Who reads a [`Follower`]'s database while it follows. One thread calls it, that which follows.
pub trait Beside: Send + Sync {
    /// Has the follower take a step: it applies a commit, or makes and drops tables as its source has. It calls `take`
    /// once, which returns whether tables may have come or gone; before that it may wait until nobody reads, and behind it
    /// renew what is known of the database. What a step waits for, such as room in memory, they wait for who wait for it.
    fn step(&self, take: &mut dyn FnMut() -> bool);

    /// The follower has all that its source had by this time, in milliseconds since 1970 by the source's clock: records
    /// up to this number.
    fn caught_up(&self, position: u64, at_milliseconds: u64);
}

/// What a step is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Commit,
    EndOfRound,
}

impl Follower {
    /// Takes a step, by way of who stands beside.
    pub(super) fn step<T>(&mut self, step: Step, take: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(beside) = self.beside.clone() else { return take(self) };
        let (mut take, mut taken) = (Some(take), None);
        let known_before = self.known_below;
        beside.step(&mut || {
            let Some(take) = take.take() else { return false };
            let outcome = take(self);
            let is_other = step == Step::EndOfRound || outcome.is_err() || self.known_below != known_before;
            taken = Some(outcome);
            is_other
        });
        taken.unwrap_or_else(|| {
            Err(Error::invalid("who stands beside the follower has not taken a step of it"))
        })
    }
}
