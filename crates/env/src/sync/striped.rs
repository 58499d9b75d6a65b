//! What many threads use at the same time, in several copies that are apart: a cache line that one core has written to
//! must be fetched by every other one, which costs as much as a hundred instructions.

use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads than these share copies.
const STRIPES: usize = 8;

/// A value that shares no cache line with others. Two lines: processors fetch the neighbour along.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Several of one thing, of which each thread has its own. Who changes all of them, or sums them up, goes through
/// [`all`](Self::all).
#[derive(Debug, Default)]
pub struct Striped<T>([Apart<T>; STRIPES]);

impl<T> Striped<T> {
    /// As many as there are of what `make` makes.
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        Self(std::array::from_fn(|_| Apart(make())))
    }

    /// The calling thread's.
    #[inline]
    pub fn own(&self) -> &T {
        &self.0[thread_number() % STRIPES].0
    }

    /// All of them, always in the same order.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|stripe| &stripe.0)
    }
}

/// The calling thread's number: threads take them in turn, each when it first wants one.
#[inline]
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that ends has none any more.
    OWN.try_with(|own| *own).unwrap_or(0)
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicU64;

    #[test]
    fn threads_add_apart_and_the_sum_is_of_all() {
        let sum = Striped::<AtomicU64>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 * STRIPES {
                scope.spawn(|| sum.own().fetch_add(2, Ordering::Relaxed));
            }
        });
        assert_eq!(sum.all().map(|part| part.load(Ordering::Relaxed)).sum::<u64>(), 6 * STRIPES as u64);
        assert!(std::ptr::eq(sum.own(), sum.own()), "a thread keeps its own");
        assert!(sum.all().filter(|part| part.load(Ordering::Relaxed) > 0).count() > 1, "they are apart");
    }
}
