//! Reads inputs of rows by several threads, each of which adds what it reads.
//!
//! 1. Each takes the next piece of the inputs ([feed](super::feed)), reads its rows by columns and adds them.
//! 2. Where one finds a malformed record, or fails, no more pieces are handed out; others read theirs to the end.
//!
//! **Invariant:** what is told is what stands first in the inputs of all that is wrong, with any number of threads:
//! pieces are handed out in order, so whatever stands before it is read.

use std::mem;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use forebay_env::sync::Mutex;

use super::adder::{Adder, Fault};
use super::batch::Batch;
use super::by::Table;
use super::columns::{Fields, Reading, header_failure, options};
use super::engine::Measure;
use super::feed::{Feed, Kind, Opened, Part, Piece, Place};
use super::gathering::Gatherer;
use super::inputs::{self, Inputs, Tally};
use crate::failure::Failure;
use crate::input::delimited::Delimited;
use crate::input::jsonl::Jsonl;
use crate::input::parquet::ParquetBatches;
use crate::input::window::{Block, Window};
use crate::input::{BlockRows, Position, Rows};
use crate::progress::Progress;

/// Adds all rows of the inputs; tells which columns were in any.
pub(super) fn gather<A: Measure>(
    reading: &Reading,
    table: &Table,
    inputs: &mut Inputs<'_, '_>,
    gatherer: &Gatherer<A>,
) -> Result<Fields, Failure> {
    let (progress, on_bad) = (inputs.progress, inputs.on_bad);
    let feed = Mutex::new(Feed::new(reading, table, inputs));
    let reader = || Reader {
        feed: &feed,
        table,
        progress,
        adder: Adder::new(table, gatherer, progress, on_bad),
        batch: Batch::new(table),
        rows: None,
        records: 0,
        spare: Vec::new(),
        found: Found::new(table),
    };
    let found = thread::scope(|scope| {
        let others: Vec<_> = (1..gatherer.readers()).map(|_| scope.spawn(|| reader().read_all())).collect();
        let mut found = vec![reader().read_all()];
        for other in others {
            found.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        found
    });
    drop(feed);
    let (tally, fields) = together(found, table, reading)?;
    inputs.tally = tally;
    Ok(fields)
}

/// What one thread found.
struct Found {
    tally: Tally,
    fields: Fields,
    /// How many records each piece has.
    pieces: Vec<(Place, u64)>,
    /// What it stopped at, in which file.
    fault: Option<(Place, Option<Arc<Opened>>, Fault)>,
}

impl Found {
    fn new(table: &Table) -> Self {
        let (tally, pieces, fault) = Default::default();
        Self { tally, fields: Fields::new(table), pieces, fault }
    }
}

/// What all found, or the first thing that is wrong.
fn together(mut all: Vec<Found>, table: &Table, reading: &Reading) -> Result<(Tally, Fields), Failure> {
    let faults = all.iter_mut().filter_map(|found| found.fault.take());
    let Some((place, file, fault)) = faults.min_by_key(|(place, ..)| *place) else {
        let (mut tally, mut fields) = (Tally::default(), Fields::new(table));
        for found in all {
            tally.records += found.tally.records;
            tally.skipped += found.tally.skipped;
            tally.refused_values += found.tally.refused_values;
            fields.merge(found.fields);
        }
        return Ok((tally, fields));
    };
    match (fault, file) {
        (Fault::Work(failure), None) => Err(failure),
        (Fault::Work(failure), Some(file)) => Err(reading.blame(&file.path, failure)),
        (Fault::Row(at, reason), None) => Err(inputs::refused("the input", at, &reason)),
        (Fault::Row(at, reason), Some(file)) => {
            let is_before = |(other, _): &&(Place, u64)| other.0 == place.0 && other.1 < place.1;
            let pieces = all.iter().flat_map(|found| &found.pieces).filter(is_before);
            let before = match file.kind {
                // Rows of row groups are counted from the file's first.
                Kind::Parquet(_) => 0,
                Kind::Delimited(..) | Kind::Jsonl => pieces.map(|(_, records)| records).sum(),
            };
            let at = Position { number: before + at.number, ..at };
            Err(reading.blame(&file.path, inputs::refused(&file.name, at, &reason)))
        }
    }
}

/// A thread that reads.
struct Reader<'a, 'f, 'scope, 'env, A: Measure> {
    feed: &'a Mutex<Feed<'f, 'scope, 'env>>,
    table: &'a Table,
    progress: &'a Progress,
    adder: Adder<'a, A>,
    batch: Batch,
    /// Rows of the file that was read last.
    rows: Option<(usize, RowsOf<'a>)>,
    /// How many of its records this thread has read.
    records: u64,
    spare: Vec<u8>,
    found: Found,
}

/// Rows of a file.
enum RowsOf<'a> {
    Delimited(Delimited<std::io::Empty>),
    Jsonl(Jsonl<std::io::Empty>),
    Parquet(ParquetBatches<Box<dyn FnMut(u64) + 'a>>),
}

impl<'a, A: Measure> Reader<'a, '_, '_, '_, A> {
    fn read_all(mut self) -> Found {
        loop {
            let next = self.feed.lock().next(&mut self.spare);
            let (place, file, fault) = match next {
                Ok(None) => break,
                Ok(Some(Piece { place, file, part })) => match self.read(place, &file, part) {
                    Ok(()) => continue,
                    Err(fault) => (place, Some(file), fault),
                },
                Err((place, failure)) => (place, None, Fault::Work(failure)),
            };
            self.feed.lock().close();
            self.found.fault = Some((place, file, fault));
            break;
        }
        self.leave();
        self.found.tally = self.adder.tally;
        self.found
    }

    fn read(&mut self, place: Place, file: &Opened, part: Part) -> Result<(), Fault> {
        if self.rows.as_ref().is_none_or(|(number, _)| *number != place.0) {
            self.leave();
            self.rows = Some((place.0, self.rows_of(&file.kind)?));
        }
        let Some((_, rows)) = &mut self.rows else { return Ok(()) };
        let records = match (rows, part) {
            (_, Part::Bad(at, reason)) => {
                self.adder.refuse(at, reason)?;
                1
            }
            (RowsOf::Delimited(rows), Part::Rows(block)) => {
                self.spare = rows.begin(block);
                add_rows(rows, &file.name, &mut self.batch, &mut self.adder)?
            }
            (RowsOf::Jsonl(rows), Part::Rows(block)) => {
                self.spare = rows.begin(block);
                add_rows(rows, &file.name, &mut self.batch, &mut self.adder)?
            }
            (RowsOf::Parquet(rows), Part::Group(group)) => {
                rows.go_to(group);
                let before = rows.behind().number;
                add_batches(rows, &file.name, self.table.keys.len(), &mut self.adder)?;
                rows.behind().number - before
            }
            _ => 0,
        };
        self.records += records;
        self.found.pieces.push((place, records));
        Ok(())
    }

    /// Rows of a file, of which none is read yet.
    fn rows_of(&self, kind: &Kind) -> Result<RowsOf<'a>, Fault> {
        let window = || Window::over(Block::default());
        Ok(match kind {
            Kind::Delimited(dialect, head) => {
                let options = options(self.table).map_err(Fault::Work)?;
                let options = options.into_iter().map(|(_, option)| option);
                RowsOf::Delimited(Delimited::behind(window(), *dialect, head, options))
            }
            Kind::Jsonl => {
                let rows = Jsonl::with_fields(window(), self.table.columns.iter().cloned());
                RowsOf::Jsonl(rows.map_err(|trouble| Fault::Work(header_failure(*trouble, "nothing")))?)
            }
            Kind::Parquet(file) => {
                let progress = self.progress;
                RowsOf::Parquet(ParquetBatches::of(file, Box::new(|bytes| progress.read(bytes))))
            }
        })
    }

    /// Notes which columns the rows of a file had.
    fn leave(&mut self) {
        let records = mem::take(&mut self.records);
        match self.rows.take() {
            Some((_, RowsOf::Delimited(rows))) => self.found.fields.note(&rows, records),
            Some((_, RowsOf::Jsonl(rows))) => self.found.fields.note(&rows, records),
            Some((_, RowsOf::Parquet(_))) => self.found.fields.note_all(records),
            None => {}
        }
    }
}

/// Adds the rows of a block, some thousand together. Returns how many records it has.
fn add_rows<A: Measure>(
    rows: &mut impl Rows,
    name: &str,
    batch: &mut Batch,
    adder: &mut Adder<'_, A>,
) -> Result<u64, Fault> {
    batch.clear();
    loop {
        let outcome = rows.advance();
        let is_last = !matches!(outcome, Ok(true));
        if !is_last {
            batch.push(rows);
        }
        if is_last || batch.is_full() {
            adder.add_all(&batch.rows()?, |at| batch.position(at))?;
            batch.clear();
        }
        match outcome {
            Ok(true) => {}
            Ok(false) => return Ok(rows.position().number),
            Err(trouble) => adder.trouble(*trouble, name, rows.position())?,
        }
    }
}

/// Adds the rows of a row group, of which the first `keys` columns make the key.
fn add_batches<A: Measure, F: FnMut(u64)>(
    rows: &mut ParquetBatches<F>,
    name: &str,
    keys: usize,
    adder: &mut Adder<'_, A>,
) -> Result<(), Fault> {
    loop {
        match rows.advance() {
            Ok(true) => adder.add_all(&rows.rows(keys)?, |at| rows.position(at))?,
            Ok(false) => return Ok(()),
            Err(trouble) => return adder.trouble(*trouble, name, rows.behind()),
        }
    }
}
