//! Groups that are shown by several threads: each makes something of some leaves, and all of that is taken in order.
//!
//! **Invariant:** of the same parts what is taken is the same with any number of threads: they are dealt in turn, and
//! taken back in the same turn. No thread is more than a piece ahead.

use std::ops::{Range, RangeInclusive};
use std::sync::mpsc;
use std::thread;

use forebay::Error;
use forebay_aggregate::{Aggregate, TakenGroups};

/// Takes a piece of what is made of a part.
pub(super) type Give<'g, T> = dyn FnMut(T) -> Result<(), Error> + 'g;

/// Leaves one after the other, with so many groups each that there is a share for each thread, within bounds.
pub(super) fn parts<A: Aggregate>(
    groups: &TakenGroups<A>,
    threads: usize,
    sizes: RangeInclusive<u64>,
) -> Vec<Range<usize>> {
    let counts: Vec<u64> = (0..groups.leaves()).map(|leaf| groups.groups_max(leaf)).collect();
    let share = counts.iter().sum::<u64>() / (2 * threads as u64);
    let wanted = share.clamp(*sizes.start(), *sizes.end());
    let (mut parts, mut start, mut count) = (Vec::new(), 0, 0);
    for (leaf, more) in counts.iter().enumerate() {
        if count + more > wanted && leaf > start {
            parts.push(start..leaf);
            (start, count) = (leaf, 0);
        }
        count += more;
    }
    parts.push(start..counts.len());
    parts
}

/// Has threads give pieces of each part, which `take` is given part by part.
pub(super) fn for_each_part<T: Send, W>(
    parts: &[Range<usize>],
    threads: usize,
    worker: impl Fn() -> W + Sync,
    take: &mut Give<'_, T>,
) -> Result<(), Error>
where
    W: FnMut(Range<usize>, &mut Give<'_, T>) -> Result<(), Error>,
{
    let threads = threads.min(parts.len());
    if threads < 2 {
        let mut work = worker();
        return parts.iter().try_for_each(|part| work(part.clone(), &mut *take));
    }
    let (worker, lost) = (&worker, || Error::Panicked("a thread that shows groups panicked".into()));
    thread::scope(|scope| {
        let line = |first: usize| {
            let (sender, receiver) = mpsc::sync_channel::<Result<Option<T>, Error>>(1);
            scope.spawn(move || {
                let mut work = worker();
                for part in parts.iter().skip(first).step_by(threads) {
                    let give = &mut |piece: T| sender.send(Ok(Some(piece))).map_err(|_| lost());
                    let end = work(part.clone(), give).map(|()| None);
                    let is_failed = end.is_err();
                    if sender.send(end).is_err() || is_failed {
                        return;
                    }
                }
            });
            receiver
        };
        let lines: Vec<_> = (0..threads).map(line).collect();
        for line in (0..parts.len()).map(|part| &lines[part % threads]) {
            while let Some(piece) = line.recv().map_err(|_| lost())?? {
                take(piece)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of parts, as many as the part's number says.
    fn pieces(threads: usize, failing: Option<usize>, taken_max: usize) -> (Vec<usize>, Option<String>) {
        let parts: Vec<_> = (0..20).map(|part| part..part + 1).collect();
        let worker = || {
            move |part: Range<usize>, give: &mut Give<'_, usize>| {
                (0..part.start % 4).try_for_each(|piece| give(10 * part.start + piece))?;
                match failing == Some(part.start) {
                    true => Err(Error::invalid(format!("part {}", part.start))),
                    false => Ok(()),
                }
            }
        };
        let mut taken = Vec::new();
        let outcome = for_each_part(&parts, threads, worker, &mut |piece| {
            taken.push(piece);
            if taken.len() == taken_max { Err(Error::invalid("enough")) } else { Ok(()) }
        });
        (taken, outcome.err().map(|error| error.to_string()))
    }

    #[test]
    fn pieces_come_in_order_with_any_number_of_threads() {
        let (all, failed) = pieces(1, None, usize::MAX);
        assert_eq!((all.len(), failed), (30, None));
        for threads in [2, 3, 7, 30] {
            assert_eq!(pieces(threads, None, usize::MAX), (all.clone(), None), "{threads} threads");
            let (some, failed) = pieces(threads, Some(13), usize::MAX);
            assert!(some == all[..some.len()] && failed.is_some_and(|error| error.contains("part 13")));
            let (some, failed) = pieces(threads, None, 9);
            assert!(some == all[..9] && failed.is_some_and(|error| error.contains("enough")));
        }
    }
}
