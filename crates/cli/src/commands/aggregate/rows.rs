//! Rows of csv, tsv, jsonl and Parquet, read by columns and added by several threads.

use std::mem;

use super::adder::{Adder, Teller};
use super::batch::Batch;
use super::by::Table;
use super::columns::{Fields, Reading, header_failure, options};
use super::crew::{self, Fault, Place};
use super::engine::Measure;
use super::feed::{Kind, Opened, Part, Piece, RowFeed};
use super::gathering::Gatherer;
use super::inputs::{Inputs, Tally};
use crate::failure::Failure;
use crate::input::delimited::Delimited;
use crate::input::jsonl::Jsonl;
use crate::input::parquet::ParquetBatches;
use crate::input::window::{Block, Window};
use crate::input::{BlockRows, Rows};
use crate::progress::Progress;

/// Adds all rows of the inputs; tells which columns were in any.
pub(super) fn gather<A: Measure>(
    reading: &Reading,
    table: &Table,
    inputs: &mut Inputs<'_, '_>,
    gatherer: &Gatherer<A>,
) -> Result<Fields, Failure> {
    let (progress, on_bad) = (inputs.progress, inputs.on_bad);
    let feed = RowFeed::new(reading, table, inputs);
    let reader = || Reader {
        table,
        progress,
        adder: Adder::new(table, gatherer, Teller::new(progress, on_bad)),
        batch: Batch::new(table),
        rows: None,
        records: 0,
        fields: Fields::new(table),
    };
    let found = crew::read_all(feed, gatherer.readers(), reader).map_err(|stopped| {
        let (path, failure) = stopped.tell(inputs.files);
        reading.blame(path, failure)
    })?;
    let mut fields = Fields::new(table);
    for (tally, other) in found {
        inputs.tally.add(&tally);
        fields.merge(other);
    }
    Ok(fields)
}

/// A thread that reads.
struct Reader<'a, A: Measure> {
    table: &'a Table,
    progress: &'a Progress,
    adder: Adder<'a, A>,
    batch: Batch,
    /// Rows of the file that was read last.
    rows: Option<(usize, RowsOf<'a>)>,
    /// How many of its records this thread has read.
    records: u64,
    fields: Fields,
}

/// Rows of a file.
enum RowsOf<'a> {
    Delimited(Delimited<std::io::Empty>),
    Jsonl(Jsonl<std::io::Empty>),
    Parquet(ParquetBatches<Box<dyn FnMut(u64) + 'a>>),
}

impl<A: Measure> crew::Reader for Reader<'_, A> {
    type Piece = Piece;
    type Found = (Tally, Fields);

    fn read(&mut self, place: Place, piece: Piece, spare: &mut Vec<u8>) -> Result<u64, Fault> {
        let Piece { file, part } = piece;
        if self.rows.as_ref().is_none_or(|(number, _)| *number != place.0) {
            self.leave();
            self.rows = Some((place.0, self.rows_of(&file)?));
        }
        let Some((_, rows)) = &mut self.rows else { return Ok(0) };
        let records = match (rows, part) {
            (_, Part::Bad(at, reason)) => {
                self.adder.teller.refuse(at, reason)?;
                1
            }
            (RowsOf::Delimited(rows), Part::Rows(block)) => {
                *spare = rows.begin(block);
                add_rows(rows, &file.name, &mut self.batch, &mut self.adder)?
            }
            (RowsOf::Jsonl(rows), Part::Rows(block)) => {
                *spare = rows.begin(block);
                add_rows(rows, &file.name, &mut self.batch, &mut self.adder)?
            }
            (RowsOf::Parquet(rows), Part::Group(group)) => {
                rows.go_to(group);
                let before = rows.before().number;
                add_batches(rows, &file.name, self.table.keys.len(), &mut self.adder)?;
                self.records += rows.before().number - before;
                // Rows of row groups are counted from the file's first.
                0
            }
            _ => 0,
        };
        self.records += records;
        Ok(records)
    }

    fn finish(mut self) -> (Tally, Fields) {
        self.leave();
        self.adder.finish();
        (self.adder.teller.tally, self.fields)
    }
}

impl<'a, A: Measure> Reader<'a, A> {
    /// Rows of a file, of which none is read yet.
    fn rows_of(&self, file: &Opened) -> Result<RowsOf<'a>, Fault> {
        let window = || Window::over(Block::default());
        Ok(match &file.kind {
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
            Some((_, RowsOf::Delimited(rows))) => self.fields.note(&rows, records),
            Some((_, RowsOf::Jsonl(rows))) => self.fields.note(&rows, records),
            Some((_, RowsOf::Parquet(_))) => self.fields.note_all(records),
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
            Err(trouble) => return adder.trouble(*trouble, name, rows.before()),
        }
    }
}
