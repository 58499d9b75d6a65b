//! Which stripe a thread that adds has. They are dealt in turn, to each thread when it first comes; who finds its own
//! held by another takes one that is free, and keeps that. So as many threads as there are stripes soon have one each,
//! whichever threads of the process they are.

use forebay_env::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use forebay_env::sync::{Mutex, MutexGuard, thread_number};

/// So many threads are told apart; more share.
const THREADS_MAX: usize = 256;

/// See the module.
pub(super) struct Deal {
    count: usize,
    next: AtomicUsize,
    /// Of each thread one more than the number of its stripe; 0 where it has none yet.
    own: Box<[AtomicU32]>,
}

impl Deal {
    /// Of so many stripes.
    pub(super) fn new(count: usize) -> Self {
        debug_assert!(count > 0, "there is a stripe");
        let threads = if count > 1 { THREADS_MAX } else { 0 };
        Self { count, next: AtomicUsize::new(0), own: (0..threads).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The calling thread's stripe, held.
    #[inline]
    pub(super) fn take<'a, T>(
        &self,
        stripe: impl Fn(usize) -> &'a Mutex<T>,
    ) -> (&'a Mutex<T>, MutexGuard<'a, T>) {
        if self.count == 1 {
            return (stripe(0), stripe(0).lock());
        }
        let own = &self.own[thread_number() % THREADS_MAX];
        let number = match own.load(Ordering::Relaxed) {
            0 => self.first(own),
            number => number as usize - 1,
        };
        match stripe(number).try_lock() {
            Some(guard) => (stripe(number), guard),
            None => self.take_another(own, number, stripe),
        }
    }

    #[cold]
    fn first(&self, own: &AtomicU32) -> usize {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.count;
        own.store(number as u32 + 1, Ordering::Relaxed);
        number
    }

    /// One that is free; where none is, who reads holds all, and its own is waited for.
    #[cold]
    fn take_another<'a, T>(
        &self,
        own: &AtomicU32,
        number: usize,
        stripe: impl Fn(usize) -> &'a Mutex<T>,
    ) -> (&'a Mutex<T>, MutexGuard<'a, T>) {
        debug_assert!(number < self.count, "its own is one of them");
        for other in (0..self.count).map(|more| (number + more) % self.count) {
            if let Some(guard) = stripe(other).try_lock() {
                own.store(other as u32 + 1, Ordering::Relaxed);
                return (stripe(other), guard);
            }
        }
        (stripe(number), stripe(number).lock())
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    /// Which of the locks a thread of its own is dealt.
    fn dealt(deal: &Deal, locks: &[Mutex<()>]) -> usize {
        let take = || {
            let (lock, _guard) = deal.take(|number| &locks[number]);
            locks.iter().position(|other| std::ptr::eq(lock, other)).expect("it is one of them")
        };
        std::thread::scope(|scope| scope.spawn(take).join().expect("it does not panic"))
    }

    /// Their numbers in the process were all even, or all odd.
    #[test]
    fn threads_that_come_one_after_the_other_share_nothing() {
        let (deal, locks) = (Deal::new(2), [Mutex::new(()), Mutex::new(())]);
        for number in 0..6 {
            assert_eq!(dealt(&deal, &locks), number % 2);
            std::thread::scope(|scope| {
                scope.spawn(thread_number);
            });
        }
    }

    #[test]
    fn who_finds_its_own_held_takes_a_free_one_and_keeps_it() {
        let (deal, locks) = (Deal::new(3), [Mutex::new(()), Mutex::new(()), Mutex::new(())]);
        let number_of = |lock: &Mutex<()>| locks.iter().position(|other| std::ptr::eq(lock, other));
        let own = || number_of(deal.take(|number| &locks[number]).0);
        let first = own();
        assert_eq!(own(), first, "a thread keeps its own");
        let held = locks[0].lock();
        let moved = own();
        assert_ne!(moved, first);
        drop(held);
        assert_eq!(own(), moved, "it stays");
    }
}
