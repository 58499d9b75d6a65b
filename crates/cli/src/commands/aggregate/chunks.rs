//! Inputs cut into chunks of bytes, wherever those end, which are read beside each other: each comes with what its
//! reader has to know of all that stands before it.
//!
//! **Invariant:** what the readers of all chunks of an input find is what one finds who reads the input.

use std::io::{self, ErrorKind, Read};
use std::mem;

use forebay_aggregate::functions::Count;

use super::adder::{Counter, Teller};
use super::crew::{self, Feed, Next, Reader};
use super::gathering::Gatherer;
use super::inputs::{Inputs, Tally};
use crate::failure::Failure;

/// How long a chunk is: it stays in the second cache while it is read.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

/// Looks at the bytes of an input in their order, as far as it takes to know what stands before each chunk.
pub(super) trait Look: Default + Send {
    /// What stands before a chunk, as far as its reader has to know it.
    type Before;
    /// What is looked for.
    type Wanted: Copy + Send;

    /// Passes over the next bytes of the input of this name. Returns what stands before them.
    fn pass(&mut self, bytes: &[u8], wanted: Self::Wanted, name: &str) -> Result<Self::Before, Failure>;
}

/// A chunk, and what stands before it.
pub(super) struct Chunk<B> {
    pub(super) before: B,
    pub(super) bytes: Vec<u8>,
    /// Where it begins in the input.
    pub(super) offset: u64,
    /// Whether the input ends with it.
    pub(super) is_last: bool,
}

/// See the module.
struct Chunks<'f, 'scope, 'env, L: Look> {
    inputs: &'f mut Inputs<'scope, 'env>,
    wanted: L::Wanted,
    next_file: usize,
    open: Option<Open<'scope, L>>,
}

/// An input of which chunks are left.
struct Open<'a, L> {
    name: String,
    from: Box<dyn Read + Send + 'a>,
    look: L,
    offset: u64,
    next_piece: u64,
}

impl<'scope, L: Look> Chunks<'_, 'scope, '_, L> {
    fn open(&mut self) -> Result<Option<Open<'scope, L>>, Failure> {
        let Some(path) = self.inputs.files.get(self.next_file) else { return Ok(None) };
        let mut input = self.inputs.open_whole(path)?;
        let (name, from) = (mem::take(&mut input.name), input.take());
        Ok(Some(Open { name, from, look: L::default(), offset: 0, next_piece: 0 }))
    }
}

impl<L: Look> Feed for Chunks<'_, '_, '_, L> {
    type Piece = Chunk<L::Before>;

    fn next(&mut self, spare: &mut Vec<u8>) -> Next<Self::Piece> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.open().map_err(|failure| ((self.next_file, 0), failure))? {
                Some(open) => open,
                None => return Ok(None),
            },
        };
        let place = (self.next_file, open.next_piece);
        let mut bytes = mem::take(spare);
        let read = fill(&mut open.from, &mut bytes)
            .map_err(|error| (place, Failure::work(format!("cannot read {}: {error}", open.name))))?;
        let is_last = read < CHUNK_BYTES;
        bytes.truncate(read);
        let before = open.look.pass(&bytes, self.wanted, &open.name).map_err(|failure| (place, failure))?;
        let chunk = Chunk { before, bytes, offset: open.offset, is_last };
        open.offset += read as u64;
        open.next_piece += 1;
        if is_last {
            self.next_file += 1;
        } else {
            self.open = Some(open);
        }
        Ok(Some((place, chunk)))
    }
}

/// Puts the next bytes in place of what `bytes` holds: as many as a chunk has, or all that are left, which are counted.
fn fill(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    bytes.resize(CHUNK_BYTES, 0);
    let mut end = 0;
    while end < bytes.len() {
        match from.read(&mut bytes[end..]) {
            Ok(0) => break,
            Ok(read) => end += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

/// Counts what readers find in all inputs.
pub(super) fn count<'a, 'env: 'a, L: Look, R>(
    inputs: &mut Inputs<'_, 'env>,
    gatherer: &'a Gatherer<Count>,
    wanted: L::Wanted,
    reader: impl Fn(Counter<'a>) -> R + Sync,
) -> Result<(), Failure>
where
    R: Reader<Piece = Chunk<L::Before>, Found = Tally>,
{
    let (progress, on_bad) = (inputs.progress, inputs.on_bad);
    let feed = Chunks::<L> { inputs: &mut *inputs, wanted, next_file: 0, open: None };
    let reader = || reader(Counter::new(gatherer, Teller::new(progress, on_bad)));
    let found = crew::read_all(feed, gatherer.readers(), reader);
    let tallies = found.map_err(|stopped| stopped.tell(inputs.files).1)?;
    tallies.iter().for_each(|tally| inputs.tally.add(tally));
    Ok(())
}
