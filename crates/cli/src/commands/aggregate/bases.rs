//! K-mers of FASTA and FASTQ, read by several threads: each counts those that end in its chunks.
//!
//! What stands before a chunk is where in a record it begins, and the last bases: all of a record of FASTQ that is not
//! whole yet, or else one fewer than a k-mer has.

use std::convert::Infallible;
use std::mem;

use forebay_aggregate::functions::Count;

use super::adder::{Counter, TOGETHER};
use super::chunks::{self, Chunk, Look};
use super::crew::{Fault, Place, Reader};
use super::gathering::Gatherer;
use super::inputs::{Inputs, Tally};
use super::kmers::{Word, key};
use super::labels::Labels;
use super::reads::{Carried, Reads};
use super::sequences::{self, Piece, Records};
use crate::failure::Failure;
use crate::input::window::Tail;

/// Counts the k-mers of all inputs.
pub(super) fn kmers<W: Word>(
    inputs: &mut Inputs<'_, '_>,
    gatherer: &Gatherer<Count>,
    k: usize,
) -> Result<Labels, Failure> {
    chunks::count::<BaseLook, _>(inputs, gatherer, k, |counter| KmerReader::<W>::new(counter, k))?;
    Ok(Labels::Kmers(k))
}

/// What stands before a chunk.
pub(super) struct Before {
    /// Where in a record the chunk begins; nothing where all of it comes before the first.
    records: Option<Records>,
    /// How many of its bytes do.
    passed: usize,
    carried: Carried,
}

/// Looks for where in a record each chunk begins.
#[derive(Default)]
pub(super) struct BaseLook {
    before: sequences::Before,
    records: Option<Records>,
    carried: Carried,
}

impl Look for BaseLook {
    type Before = Before;
    /// How many bases a k-mer has.
    type Wanted = usize;

    fn pass(&mut self, bytes: &[u8], k: usize, name: &str) -> Result<Before, Failure> {
        let Self { before, records, carried } = self;
        let mut rest = bytes;
        if records.is_none() {
            rest = before.pass(bytes);
            let begin = |first: &u8| Records::begin_with(*first, before.bytes, name);
            *records = rest.first().map(begin).transpose()?;
        }
        let passed = bytes.len() - rest.len();
        let here = Before { records: records.clone(), passed, carried: carried.copy(k) };
        if let Some(records) = records {
            let Ok(()) = records.take(rest, &mut |piece: Piece<'_>| {
                carried.pass(&piece, k);
                Ok::<_, Infallible>(())
            });
        }
        Ok(here)
    }
}

/// Counts k-mers.
pub(super) struct KmerReader<'a, W: Word> {
    counter: Counter<'a>,
    k: usize,
    /// Those that are counted next.
    kmers: Vec<W::Bytes>,
}

impl<'a, W: Word> KmerReader<'a, W> {
    pub(super) fn new(counter: Counter<'a>, k: usize) -> Self {
        Self { counter, k, kmers: Vec::with_capacity(TOGETHER) }
    }

    fn take(&mut self, piece: &Piece<'_>, reads: &mut Reads<W>) -> Result<(), Fault> {
        match piece {
            Piece::Next => reads.begin(),
            Piece::Record => reads.begin_held(),
            Piece::Bases(bases) => reads.take(bases, |kmer| self.push(kmer))?,
            Piece::Whole => reads.release(|kmer| self.push(kmer))?,
            Piece::Malformed(records, reason) => {
                reads.forget();
                self.counter.teller.refuse(records.record(), (*reason).into())?;
            }
            Piece::Mark(_) => {}
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, kmer: W) -> Result<(), Fault> {
        self.kmers.push(kmer.to_bytes());
        if self.kmers.len() == TOGETHER { self.count() } else { Ok(()) }
    }

    fn count(&mut self) -> Result<(), Fault> {
        let mut kmers = mem::take(&mut self.kmers);
        let keys: Vec<_> = kmers.iter().map(|kmer| (key(self.k, kmer), ())).collect();
        self.counter.add(&keys)?;
        kmers.clear();
        self.kmers = kmers;
        Ok(())
    }
}

impl<W: Word> Reader for KmerReader<'_, W> {
    type Piece = Chunk<Before>;
    type Found = Tally;

    fn read(&mut self, _: Place, chunk: Chunk<Before>, spare: &mut Vec<u8>) -> Result<u64, Fault> {
        let Chunk { before, bytes, is_last, .. } = chunk;
        if let Some(mut records) = before.records {
            let mut reads = Reads::behind(self.k, before.carried);
            let mut take = |piece: Piece<'_>| self.take(&piece, &mut reads);
            records.take(&bytes[before.passed..], &mut take)?;
            if is_last {
                records.end(Tail::Taken, &mut take)?;
            }
            self.count()?;
        }
        *spare = bytes;
        // Records are counted from the input's first.
        Ok(0)
    }

    fn finish(self) -> Tally {
        self.counter.teller.tally
    }
}
