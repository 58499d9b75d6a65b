//! Rows that are added to a store: by columns, some thousand together, and how far that is.
//!
//! **Invariant:** where a file is noted to be reached, the rows before that are added, and none behind it: of rows that
//! are looked at together, those behind one that ends the work are left.

use forebay_aggregate::columns::Rows as Batched;

use super::batch::{Batch, Row};
use super::by::Table;
use super::columns::{Fields, header_failure};
use super::engine::{Engine, Measure, add_alone};
use super::inputs::{Input, Inputs, OnBad};
use super::reached::{Extent, Place, State};
use crate::failure::Failure;
use crate::input::parquet::{ParquetBatches, ParquetFile};
use crate::input::{Position, Rows, Trouble};

/// Adds the rows of one input, if its head could be read. `state` tells what reading on behind them needs.
pub(super) fn text<A: Measure, R: Rows>(
    rows: Result<R, Trouble>,
    table: &Table,
    input: &Input<'_>,
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<A>,
    fields: &mut Fields,
    state: impl Fn(&R) -> State,
) -> Result<(), Failure> {
    let mut rows = rows.map_err(|trouble| {
        inputs.is_reached_noted = true;
        header_failure(*trouble, &input.name)
    })?;
    let mut file = Adding { table, name: &input.name, inputs, engine };
    file.add_text(&mut rows, input, &state)?;
    let records = rows.position().number;
    fields.note(&rows, records - input.start.number);
    input.end(records, rows.left(), None, state(&rows), inputs, engine)
}

/// Adds the rows of one Parquet file behind those that are added.
pub(super) fn parquet<A: Measure>(
    file: &ParquetFile,
    table: &Table,
    input: &Input<'_>,
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<A>,
    fields: &mut Fields,
) -> Result<(), Failure> {
    let progress = inputs.progress;
    let mut rows = ParquetBatches::behind(file, input.start.number, |bytes| progress.read(bytes));
    Adding { table, name: &input.name, inputs, engine }.add_batches(&mut rows, input)?;
    let records = rows.before().number;
    fields.note_all(records.saturating_sub(input.start.number));
    input.end(records, 0, None, State::Stateless, inputs, engine)
}

/// The place behind which nothing of a file is added.
fn part(at: Position, state: State) -> Place {
    Place { at, end: at.offset, extent: Extent::Part, state }
}

/// Why no more rows are added, and where the first of them begins that is not; nothing where that is not known.
type Ended = (Option<Position>, Failure);

/// A file whose rows are added.
struct Adding<'a, 'scope, 'env, A: Measure> {
    table: &'a Table,
    name: &'a str,
    inputs: &'a mut Inputs<'scope, 'env>,
    engine: &'a mut Engine<A>,
}

impl<A: Measure> Adding<'_, '_, '_, A> {
    fn add_text<R: Rows>(
        &mut self,
        rows: &mut R,
        input: &Input<'_>,
        state: impl Fn(&R) -> State,
    ) -> Result<(), Failure> {
        let mut batch = Batch::new(self.table);
        loop {
            // Where the record begins, or blank lines before it.
            let before = Position { number: rows.position().number, offset: rows.end() };
            let outcome = rows.advance();
            let is_row = matches!(outcome, Ok(true));
            if is_row {
                batch.push(rows);
            }
            if is_row && !batch.is_full() {
                continue;
            }
            let added = self.add_all(&batch.rows()?, |at| batch.position(at));
            batch.clear();
            let ended = added.and_then(|()| match outcome {
                Ok(is_row) => Ok(is_row),
                Err(trouble) => {
                    let noted = self.inputs.trouble(*trouble, self.name, rows.position());
                    noted.map_err(|failure| (Some(before), failure)).map(|()| true)
                }
            });
            if !self.note(ended, input, || state(rows))? {
                return Ok(());
            }
            if self.engine.is_due() {
                let at = Position { number: rows.position().number, offset: rows.end() };
                input.reach(part(at, state(rows)), self.engine)?;
            }
        }
    }

    fn add_batches<F: FnMut(u64)>(
        &mut self,
        rows: &mut ParquetBatches<F>,
        input: &Input<'_>,
    ) -> Result<(), Failure> {
        loop {
            let ended = match rows.advance() {
                Ok(false) => Ok(false),
                Ok(true) => {
                    let batch = rows.rows(self.table.keys.len())?;
                    self.add_all(&batch, |at| rows.position(at)).map(|()| true)
                }
                Err(trouble) => {
                    let noted = self.inputs.trouble(*trouble, self.name, rows.before());
                    noted.map_err(|failure| (Some(rows.before()), failure)).map(|()| true)
                }
            };
            if !self.note(ended, input, || State::Stateless)? {
                return Ok(());
            }
            if self.engine.is_due() {
                input.reach(part(rows.end(), State::Stateless), self.engine)?;
            }
        }
    }

    /// Notes how far a file is added that cannot be added further, so that others can.
    fn note<T>(
        &mut self,
        ended: Result<T, Ended>,
        input: &Input<'_>,
        state: impl FnOnce() -> State,
    ) -> Result<T, Failure> {
        ended.map_err(|(at, failure)| {
            if let Some(at) = at {
                self.inputs.note_reached(input, part(at, state()), self.engine);
            }
            failure
        })
    }

    /// Adds rows that are looked at together. Those that are refused are added by themselves, so that it is told why:
    /// where that ends the work, no row behind is added.
    fn add_all(&mut self, rows: &Batched<'_>, position: impl Fn(usize) -> Position) -> Result<(), Ended> {
        let Engine::Storing(storer) = &mut *self.engine else { return Ok(()) };
        let failed = |error: forebay::Error| (None, Failure::from(error));
        if self.inputs.on_bad == OnBad::Skip {
            let mut refused = Vec::new();
            storer.add_rows(rows, &mut refused).map_err(failed)?;
            self.inputs.count((rows.len() - refused.len()) as u64);
            // Rows behind these are added already, so that no place is known that can be read on from.
            let mut add = |at: u32| self.add(rows, at as usize, &position);
            return refused.into_iter().try_for_each(|at| add(at).map_err(|(_, failure)| (None, failure)));
        }
        let mut from = storer.add_sound_rows(rows).map_err(failed)?;
        self.inputs.count(from as u64);
        while from < rows.len() {
            self.add(rows, from, &position)?;
            let Engine::Storing(storer) = &mut *self.engine else { return Ok(()) };
            let rest = rows.slice(from + 1, rows.len());
            let added = storer.add_sound_rows(&rest).map_err(failed)?;
            self.inputs.count(added as u64);
            from += 1 + added;
        }
        Ok(())
    }

    /// Adds one of some rows.
    fn add(
        &mut self,
        rows: &Batched<'_>,
        at: usize,
        position: impl Fn(usize) -> Position,
    ) -> Result<(), Ended> {
        let Self { table, name, inputs, engine } = self;
        let here = position(at);
        let row = Row::of(rows, at, here);
        let added = add_alone(&mut **engine, table, &row, inputs.on_bad, &mut Vec::new());
        let added = added.map(|refused| inputs.tally.refused_values += refused);
        let before = Position { number: here.number.saturating_sub(1), ..here };
        inputs.note(added, name, || here).map_err(|failure| (Some(before), failure))
    }
}
