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
        let tables = |own: &Self| (own.known_below, own.db.engine().versions.state().tables.ends());
        let before = tables(self);
        beside.step(&mut || {
            let Some(take) = take.take() else { return false };
            let outcome = take(self);
            let is_other = step == Step::EndOfRound || outcome.is_err() || tables(self) != before;
            taken = Some(outcome);
            is_other
        });
        taken.unwrap_or_else(|| {
            Err(Error::invalid("who stands beside the follower has not taken a step of it"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_env::Env;
    use forebay_env::sync::Mutex;

    use super::*;
    use crate::{Database, Options};

    /// What each step said, and what was heard last.
    #[derive(Default)]
    struct Seen(Mutex<(Vec<bool>, u64)>);

    impl Beside for Seen {
        fn step(&self, take: &mut dyn FnMut() -> bool) {
            let is_other = take();
            self.0.lock().0.push(is_other);
            assert!(!take(), "a step is taken once");
        }

        fn caught_up(&self, position: u64, _: u64) {
            self.0.lock().1 = position;
        }
    }

    #[test]
    fn each_step_goes_by_who_stands_beside_and_sharers_write_behind_a_promotion() {
        let env = Env::memory(1);
        let options = || Options::default().keep_changes(64 << 20).env(env.clone());
        let source = Database::open("/source", options()).expect("it opens");
        let users = source.table("users").open().expect("it is made");
        users.put("ada", "1815").expect("it is written");
        users.put("alan", "1912").expect("it is written");
        let seen = Arc::new(Seen::default());
        let mut follower = Follower::open("/copy", options()).expect("it opens").beside(seen.clone());
        let mut stream = source.stream_changes(0, Vec::new()).expect("it begins");
        stream.advance().expect("it is told");
        let told = stream.finish().expect("it ends");
        follower.apply(&told[..]).expect("it is sound");
        // The first commit brings its table, the second nothing, and a round may do both.
        assert_eq!(*seen.0.lock(), (vec![true, false, true], source.last_sequence()));
        let shared = follower.share();
        let table = shared.table("users").existing(true).open().expect("it came");
        table.put("grace", "1906").expect_err("it follows");
        let refused = follower.promote().expect_err("it is shared").to_string();
        assert!(refused.contains("promote_shared"), "{refused}");
        drop((table, shared));
        let follower = Follower::open("/copy", options()).expect("it follows as before");
        let shared = follower.share();
        let promoted = follower.promote_shared().expect("it is promoted");
        assert!(Arc::ptr_eq(&promoted, &shared));
        let table = shared.table("users").existing(true).open().expect("it is there");
        table.put("grace", "1906").expect("it takes writes");
        assert_eq!(table.get("ada").expect("it is read").as_deref(), Some(&b"1815"[..]));
    }
}
