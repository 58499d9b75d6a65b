//! The inputs of an aggregation: opened one after the other, unpacked where they have to be, and counted.
//! Files are unpacked ahead on a thread of their own. A pipe is not: its thread might wait forever.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::thread::Scope;

use forebay::Error;
use forebay_aggregate::Aggregate;

use super::ahead::Ahead;
use super::engine::Engine;
use super::reached::{Extent, Found, Packing, Place, Separator, State};
use super::refused::Refused;
use super::tracked::Tracked;
use crate::failure::Failure;
use crate::input::open::{Opened, bytes_of, open};
use crate::input::unpack::{MAGIC_BYTES, Packer};
use crate::input::window::Tail;
use crate::input::{Position, TroubleKind};
use crate::output::counted;
use crate::progress::Progress;

/// What a malformed record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnBad {
    Stop,
    Skip,
}

/// What the inputs came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// Values that were added.
    pub(super) records: u64,
    /// Malformed records that were passed over.
    pub(super) skipped: u64,
    /// Values that a function did not take of records that were added.
    pub(super) refused_values: u64,
    /// Files that a store had counted before.
    pub(super) known_files: u64,
    /// Files whose last record has no end yet.
    pub(super) unfinished_files: u64,
}

impl Tally {
    /// Adds what a thread counted.
    pub(super) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.skipped += other.skipped;
        self.refused_values += other.refused_values;
    }
}

/// See the module.
pub(super) struct Inputs<'scope, 'env> {
    pub(super) files: &'env [PathBuf],
    pub(super) progress: &'env Progress,
    /// Of the threads that read ahead, and how many unpack one input.
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) unpackers: usize,
    pub(super) on_bad: OnBad,
    /// What becomes of a last record that has no end, of files that a store may find grown.
    pub(super) tail: Tail,
    pub(super) tally: Tally,
    /// Whether what is added of the file that is read is noted with it, so that another can be read.
    pub(super) is_reached_noted: bool,
    /// Why files of a store were not read to their ends.
    pub(super) failed: Vec<String>,
}

impl<'scope, 'env> Inputs<'scope, 'env> {
    /// Reads all inputs. What is wrong with a file of a store does not keep others from being read.
    pub(super) fn for_each<A: Aggregate>(
        &mut self,
        engine: &mut Engine<A>,
        mut read: impl FnMut(&mut Self, &Path, &mut Engine<A>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for path in self.files {
            self.is_reached_noted = true;
            match read(self, path, engine) {
                Err(Failure::Work(reason))
                    if self.is_reached_noted && matches!(engine, Engine::Storing(_)) =>
                {
                    self.failed.push(reason);
                }
                read => read?,
            }
        }
        Ok(())
    }

    /// The failure that files which were not read to their ends are.
    pub(super) fn failure(mut failed: Vec<String>, files: usize) -> Result<(), Failure> {
        match failed.len() {
            0 => Ok(()),
            1 if files == 1 => Err(Failure::Work(failed.remove(0))),
            count => Err(Failure::Work(format!(
                "{} of {} not read to the end, all others were counted: {}",
                counted(count as u64, "file"),
                files,
                failed.join("; ")
            ))),
        }
    }

    /// Notes how far a file was read that cannot be read on, so that others can.
    #[cold]
    pub(super) fn note_reached<A: Aggregate>(
        &mut self,
        input: &Input<'_>,
        place: Place,
        engine: &mut Engine<A>,
    ) {
        self.is_reached_noted = input.reach(place, engine).is_ok();
    }

    /// Opens an input, where reading it goes on; nothing where a store has all of it already.
    pub(super) fn open<A: Aggregate>(
        &mut self,
        path: &Path,
        engine: &Engine<A>,
        separator: Separator,
    ) -> Result<Option<Input<'scope>>, Failure> {
        let bytes_before = self.progress.bytes_read();
        if matches!(engine, Engine::Gathering(_)) {
            return self.open_whole(path).map(Some);
        }
        let is_unpacked = separator != Separator::File;
        let packer = |head: &[u8]| Packer::of(head, &path.display().to_string());
        let tracked = Tracked::open(path, |head| is_unpacked.then(|| packer(head)).transpose())?;
        let (start, state) = match tracked.find(|name| engine.reached(name), separator)? {
            Found::New => (Position::default(), State::Stateless),
            Found::On(at, state) => (at, state),
            Found::Known => {
                self.tally.known_files += 1;
                return Ok(None);
            }
        };
        let Unpacked { name, mut from, file } = match tracked.packing {
            // Its beginning told that: bytes amid it may look like anything.
            Packing::Plain => self.as_it_is(tracked.open_at(start.offset)?),
            Packing::Packed => self.unpacked(tracked.open_at(0)?)?,
        };
        if tracked.packing == Packing::Packed && is_unpacked {
            io::copy(&mut (&mut from).take(start.offset), &mut io::sink())
                .map_err(|error| Failure::work(format!("cannot read {name}: {error}")))?;
        }
        self.is_reached_noted = false;
        let tail = if tracked.packing == Packing::Plain { self.tail } else { Tail::Taken };
        Ok(Some(Input { name, from, file, start, state, tail, tracked: Some(tracked), bytes_before }))
    }

    /// Opens an input of which nothing is kept.
    pub(super) fn open_whole(&mut self, path: &Path) -> Result<Input<'scope>, Failure> {
        let bytes_before = self.progress.bytes_read();
        let Unpacked { name, from, file } = self.unpacked(open(path)?)?;
        let (start, state, tail) = (Position::default(), State::Stateless, Tail::Taken);
        Ok(Input { name, from, file, start, state, tail, tracked: None, bytes_before })
    }

    /// What is known to be no packed data.
    fn as_it_is(&self, opened: Opened) -> Unpacked<'scope> {
        let Opened { name, from, file, .. } = opened;
        Unpacked { name, from: Box::new(Counted { from, progress: self.progress }), file }
    }

    /// What begins as packed data do is unpacked.
    fn unpacked(&self, opened: Opened) -> Result<Unpacked<'scope>, Failure> {
        let Opened { name, from, file, bytes } = opened;
        let failed = |error: io::Error| Failure::work(format!("cannot read {name}: {error}"));
        let mut from = Counted { from, progress: self.progress };
        let mut head = Vec::new();
        (&mut from).take(MAGIC_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
        let packer = Packer::of(&head, &name)?;
        let whole = Cursor::new(head).chain(from);
        let from = match (packer, bytes) {
            (Packer::Gzip | Packer::Zstd, Some(_)) => {
                Box::new(Ahead::spawn(self.scope, packer, whole, name.clone(), self.unpackers))
            }
            _ => packer.unpack(whole, &name).map_err(failed)?,
        };
        Ok(Unpacked { name, from, file: file.filter(|_| packer == Packer::Nothing) })
    }

    /// Counts what was added.
    #[inline]
    pub(super) fn count(&mut self, records: u64) {
        self.tally.records += records;
        self.progress.count(self.tally.records);
    }

    /// Counts what was added, or says why it was not.
    #[inline]
    pub(super) fn note(
        &mut self,
        added: Result<(), Refused>,
        name: &str,
        at: impl FnOnce() -> Position,
    ) -> Result<(), Failure> {
        match added {
            Ok(()) => {
                self.count(1);
                Ok(())
            }
            Err(Refused::Record(Error::Invalid(reason))) => self.refuse(name, at(), &reason),
            Err(Refused::Record(error)) => self.refuse(name, at(), &error.to_string()),
            Err(Refused::Work(error)) => Err(error.into()),
        }
    }

    /// The next record could not be had.
    pub(super) fn trouble(&mut self, trouble: TroubleKind, name: &str, at: Position) -> Result<(), Failure> {
        match trouble {
            TroubleKind::Bad(reason) => self.refuse(name, at, &reason),
            TroubleKind::Read(error) => Err(Failure::work(format!("cannot read {name}: {error}"))),
        }
    }

    /// Counts a malformed record, or stops at it.
    #[cold]
    pub(super) fn refuse(&mut self, name: &str, at: Position, reason: &str) -> Result<(), Failure> {
        match self.on_bad {
            OnBad::Skip => {
                self.tally.skipped += 1;
                Ok(())
            }
            OnBad::Stop => Err(refused(name, at, reason)),
        }
    }
}

/// The failure that a malformed record is.
pub(super) fn refused(name: &str, at: Position, reason: &str) -> Failure {
    Failure::work(format!(
        "{name}: record {} at byte offset {}: {reason} (--skip-bad goes on)",
        at.number, at.offset
    ))
}

/// An input that was unpacked.
struct Unpacked<'a> {
    name: String,
    from: Box<dyn Read + Send + 'a>,
    /// The same, where it is a file as it is read.
    file: Option<File>,
}

/// An input that is read.
pub(super) struct Input<'a> {
    /// What to call it in messages.
    pub(super) name: String,
    pub(super) from: Box<dyn Read + Send + 'a>,
    /// The same, where it is a file that can be read from anywhere.
    pub(super) file: Option<File>,
    /// Where `from` begins, and what else reading on there needs.
    pub(super) start: Position,
    pub(super) state: State,
    /// What becomes of a last record that has no end.
    pub(super) tail: Tail,
    /// The file, where a store keeps track of it.
    tracked: Option<Tracked>,
    /// What was read of all inputs before this one.
    bytes_before: u64,
}

impl<'a> Input<'a> {
    /// What is to be read.
    pub(super) fn take(&mut self) -> Box<dyn Read + Send + 'a> {
        mem::replace(&mut self.from, Box::new(io::empty()))
    }

    /// Notes that everything before a place is added.
    #[cold]
    pub(super) fn reach<A: Aggregate>(&self, place: Place, engine: &mut Engine<A>) -> Result<(), Failure> {
        debug_assert!(
            place.at.number >= self.start.number,
            "records before {place:?} would be counted twice"
        );
        match &self.tracked {
            Some(tracked) => {
                let reached = tracked.reached(place)?;
                engine.reach(tracked.keys(&reached)?, reached)
            }
            None => Ok(()),
        }
    }

    /// Notes that all of it is added, but for this many bytes at its end, which are of a record that may go on; `next`
    /// is where reading would go on if it grew, by default there.
    pub(super) fn end<A: Aggregate>(
        &self,
        records: u64,
        left: u64,
        next: Option<Position>,
        state: State,
        inputs: &mut Inputs<'_, '_>,
        engine: &mut Engine<A>,
    ) -> Result<(), Failure> {
        let end = self.start.offset + inputs.progress.bytes_read() - self.bytes_before - left;
        if left > 0 {
            inputs.tally.unfinished_files += 1;
            tell!(
                "forebay: {}: the last record, {} at byte offset {end}, has no end yet and is not counted; --final \
                 counts it",
                self.name,
                counted(left, "byte")
            );
        }
        if left == 0 && records > 0 && records == self.start.number {
            inputs.tally.known_files += 1;
        }
        let at = next.unwrap_or(Position { number: records, offset: end });
        self.reach(Place { at, end, extent: Extent::Whole, state }, engine)
    }
}

/// Counts what is read.
struct Counted<'a> {
    from: Box<dyn Read + Send>,
    progress: &'a Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.progress.read(read as u64);
        Ok(read)
    }
}

/// How long all inputs are together, where that is known; a failure where one is not there.
pub(super) fn bytes(files: &[PathBuf]) -> Result<Option<u64>, Failure> {
    files.iter().try_fold(Some(0), |sum: Option<u64>, path| {
        let bytes = bytes_of(path)?;
        Ok(sum.zip(bytes).map(|(sum, bytes)| sum + bytes))
    })
}
