//! The order of locks, told once and checked: in builds with debug assertions, as those of tests and of the simulation,
//! a thread that takes locks in another order panics, also where that does not happen to end in a deadlock.

/// A lock's place in the order: a thread takes locks of ascending ranks only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It may be taken any time, and anything may be taken under it.
    #[default]
    Unordered,
    /// What came to an aggregator by columns from a thread.
    Front,
    /// One thread at a time makes room in an aggregator.
    Room,
    /// What a thread that adds to an aggregator has for itself. Who takes several does so in the order of their numbers.
    Stripe(u16),
    /// An aggregator's leaves whose hashes begin alike.
    Leaves,
    /// One write buffer is sealed, and the next one taken, at a time.
    Rotation,
    /// One edit of a database's files at a time.
    VersionSet,
    /// What is appended to the log, and what is written of it.
    Log,
    /// One next version is made at a time.
    State,
    /// Nothing is asked for under it.
    Leaf,
}

/// Lasts as long as the lock is held.
#[derive(Debug)]
pub(super) struct Held(Rank);

#[cfg(all(debug_assertions, not(shuttle)))]
mod held {
    use std::cell::RefCell;

    use super::Rank;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    // A handle may go with its thread, from another thread-local's destructor, when this one is gone already: nothing
    // is checked then.

    pub(super) fn check(rank: Rank) {
        let first = |held: &RefCell<Vec<Rank>>| held.borrow().iter().copied().find(|held| *held >= rank);
        let above = HELD.try_with(first).ok().flatten();
        assert!(above.is_none(), "a lock of rank {rank:?} is taken under one of {above:?}");
    }

    pub(super) fn add(rank: Rank) {
        let _ = HELD.try_with(|held| held.borrow_mut().push(rank));
    }

    pub(super) fn remove(rank: Rank) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            held.iter().rposition(|held| *held == rank).map(|last| held.swap_remove(last));
        });
    }
}

#[cfg(not(all(debug_assertions, not(shuttle))))]
mod held {
    use super::Rank;

    #[inline]
    pub(super) fn check(_: Rank) {}
    #[inline]
    pub(super) fn add(_: Rank) {}
    #[inline]
    pub(super) fn remove(_: Rank) {}
}

impl Rank {
    /// Asserts that a lock of this rank may be waited for.
    #[inline]
    pub(super) fn check(self) {
        if self != Self::Unordered {
            held::check(self);
        }
    }

    /// Notes that a lock of this rank is held.
    #[inline]
    pub(super) fn hold(self) -> Held {
        if self != Self::Unordered {
            held::add(self);
        }
        Held(self)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.0 != Rank::Unordered {
            held::remove(self.0);
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::cell::RefCell;
    use std::panic::catch_unwind;

    use super::super::Mutex;
    use super::Rank;

    #[test]
    fn locks_are_taken_in_one_order() {
        let (log, edits) = (Mutex::ranked(Rank::Log, ()), Mutex::ranked(Rank::VersionSet, ()));
        let (first, second) = (edits.lock(), log.lock());
        drop(first);
        drop(Mutex::new(()).lock());
        assert!(catch_unwind(|| drop(edits.lock())).is_err(), "an edit under the log's lock");
        // What does not wait cannot wait for ever.
        assert!(edits.try_lock().is_some());
        drop(second);
        drop(edits.lock());
        let leaf = Mutex::ranked(Rank::Leaf, ());
        let _held = leaf.lock();
        assert!(catch_unwind(|| drop(Mutex::ranked(Rank::Leaf, ()).lock())).is_err(), "a lock under a leaf");
    }

    /// A snapshot that a thread kept for itself aborted the process when the thread ended.
    #[test]
    fn a_lock_may_be_taken_as_a_thread_ends() {
        struct Handle(Mutex<()>);
        impl Drop for Handle {
            fn drop(&mut self) {
                drop(self.0.lock());
            }
        }
        thread_local! {
            static KEPT: RefCell<Option<Handle>> = const { RefCell::new(None) };
        }
        let keep = || {
            KEPT.with_borrow_mut(|kept| {
                let handle = Handle(Mutex::ranked(Rank::Leaf, ()));
                drop(handle.0.lock());
                *kept = Some(handle);
            });
        };
        std::thread::scope(|scope| scope.spawn(keep).join()).expect("the thread ends");
    }
}
