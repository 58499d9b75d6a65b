//! Reads inputs by several threads, each of which adds what it reads.
//!
//! 1. Each takes the next piece of the inputs from a [`Feed`], reads it and adds what it holds.
//! 2. Where one finds a malformed record, or fails, no more pieces are handed out; others read theirs to the end.
//!
//! **Invariant:** what is told is what stands first in the inputs of all that is wrong, with any number of threads:
//! pieces are handed out in order, so whatever stands before it is read.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use forebay_env::sync::Mutex;

use super::inputs::refused;
use crate::failure::Failure;
use crate::input::Position;
use crate::input::open::name_of;

/// Where a piece stands among all: by its file, and then by its number in that.
pub(super) type Place = (usize, u64);

/// The next piece, if there is one; a failure stands at its place.
pub(super) type Next<P> = Result<Option<(Place, P)>, (Place, Failure)>;

/// Hands out pieces of the inputs, in order.
pub(super) trait Feed: Send {
    type Piece;

    /// The next piece, for which there is the memory of another one.
    fn next(&mut self, spare: &mut Vec<u8>) -> Next<Self::Piece>;
}

/// Reads pieces, on a thread of its own.
pub(super) trait Reader {
    type Piece;
    /// What all of them came to.
    type Found: Send;

    /// Reads a piece, and puts its memory into `spare`. Returns how many records are behind it that numbers in later
    /// pieces of its file do not count.
    fn read(&mut self, place: Place, piece: Self::Piece, spare: &mut Vec<u8>) -> Result<u64, Fault>;

    fn finish(self) -> Self::Found;
}

/// Why reading a piece stopped.
pub(super) enum Fault {
    /// A malformed record.
    Row(Position, String),
    Work(Failure),
}

impl From<forebay::Error> for Fault {
    fn from(error: forebay::Error) -> Self {
        Self::Work(error.into())
    }
}

/// The first thing that is wrong.
pub(super) struct Stopped {
    file: usize,
    /// The records of the file before the piece.
    before: u64,
    fault: Fault,
}

impl Stopped {
    /// What is told, and of which file.
    pub(super) fn tell(self, files: &[PathBuf]) -> (&Path, Failure) {
        let path = &files[self.file];
        let failure = match self.fault {
            Fault::Work(failure) => failure,
            Fault::Row(at, reason) => {
                let at = Position { number: self.before + at.number, ..at };
                refused(&name_of(path), at, &reason)
            }
        };
        (path, failure)
    }
}

/// Reads all pieces by so many threads. Returns what each found, or why that ended before the last.
pub(super) fn read_all<F, R>(
    feed: F,
    threads: usize,
    reader: impl Fn() -> R + Sync,
) -> Result<Vec<R::Found>, Stopped>
where
    F: Feed,
    R: Reader<Piece = F::Piece>,
{
    let gate = Mutex::new(Gate { feed, is_closed: false });
    let read = || read_some(&gate, reader());
    let all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let mut all = vec![read()];
        for other in others {
            all.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    let (mut found, mut pieces, mut first) = (Vec::new(), Vec::new(), None);
    for one in all {
        found.push(one.found);
        pieces.extend(one.pieces);
        let is_first = |(place, _): &(Place, Fault)| first.as_ref().is_none_or(|(first, _)| place < first);
        first = one.fault.filter(is_first).or(first);
    }
    let Some((place, fault)) = first else { return Ok(found) };
    let before = pieces.iter().filter(|(other, _)| other.0 == place.0 && other.1 < place.1);
    Err(Stopped { file: place.0, before: before.map(|(_, records)| records).sum(), fault })
}

/// What pieces come through, until one is faulty or cannot be had: what feeds it is not asked again behind that.
struct Gate<F> {
    feed: F,
    is_closed: bool,
}

impl<F: Feed> Gate<F> {
    fn next(&mut self, spare: &mut Vec<u8>) -> Next<F::Piece> {
        if self.is_closed {
            return Ok(None);
        }
        let next = self.feed.next(spare);
        self.is_closed = next.is_err();
        next
    }
}

/// What one thread read.
struct One<T> {
    found: T,
    /// The records of each piece.
    pieces: Vec<(Place, u64)>,
    fault: Option<(Place, Fault)>,
}

fn read_some<F, R>(gate: &Mutex<Gate<F>>, mut reader: R) -> One<R::Found>
where
    F: Feed,
    R: Reader<Piece = F::Piece>,
{
    let (mut spare, mut pieces) = (Vec::new(), Vec::new());
    let fault = loop {
        let next = gate.lock().next(&mut spare);
        match next {
            Ok(None) => break None,
            Ok(Some((place, piece))) => match reader.read(place, piece, &mut spare) {
                Ok(records) => pieces.push((place, records)),
                Err(fault) => break Some((place, fault)),
            },
            Err((place, failure)) => break Some((place, Fault::Work(failure))),
        }
    };
    if fault.is_some() {
        gate.lock().is_closed = true;
    }
    One { found: reader.finish(), pieces, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has one piece, and cannot have another.
    struct Failing(u64);

    impl Feed for Failing {
        type Piece = ();

        fn next(&mut self, _: &mut Vec<u8>) -> Next<()> {
            let place = (0, self.0);
            self.0 += 1;
            match place.1 {
                0 => Ok(Some((place, ()))),
                1 => Err((place, Failure::work("it fails"))),
                _ => panic!("asked again behind a failure"),
            }
        }
    }

    #[test]
    fn a_feed_that_failed_is_not_asked_again() {
        let mut gate = Gate { feed: Failing(0), is_closed: false };
        assert!(matches!(gate.next(&mut Vec::new()), Ok(Some(_))));
        assert!(gate.next(&mut Vec::new()).is_err());
        assert!(matches!(gate.next(&mut Vec::new()), Ok(None)));
    }
}
