//! Adds what a thread reads: rows that come by columns, of which it tells why some are refused, and keys to be counted.

use forebay::Error;
use forebay_aggregate::columns::Rows as Batched;
use forebay_aggregate::functions::Count;

use super::batch::Row;
use super::by::Table;
use super::crew::Fault;
use super::engine::{Measure, add_alone};
use super::gathering::Gatherer;
use super::inputs::{OnBad, Tally};
use super::refused::Refused;
use crate::failure::Failure;
use crate::input::{Position, Rows, TroubleKind};
use crate::progress::Progress;

/// What is counted of what a thread reads.
pub(super) struct Teller<'a> {
    progress: &'a Progress,
    on_bad: OnBad,
    pub(super) tally: Tally,
}

impl<'a> Teller<'a> {
    pub(super) fn new(progress: &'a Progress, on_bad: OnBad) -> Self {
        Self { progress, on_bad, tally: Tally::default() }
    }

    fn count(&mut self, records: u64) {
        self.tally.records += records;
        self.progress.add(records);
    }

    /// Counts a malformed record, or stops at it.
    #[cold]
    pub(super) fn refuse(&mut self, at: Position, reason: String) -> Result<(), Fault> {
        match self.on_bad {
            OnBad::Skip => {
                self.tally.skipped += 1;
                Ok(())
            }
            OnBad::Stop => Err(Fault::Row(at, reason)),
        }
    }
}

/// Keys that are added together: what is made of them stays in the first cache.
pub(super) const TOGETHER: usize = 256;

/// Counts keys.
pub(super) struct Counter<'a> {
    gatherer: &'a Gatherer<Count>,
    pub(super) teller: Teller<'a>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(gatherer: &'a Gatherer<Count>, teller: Teller<'a>) -> Self {
        Self { gatherer, teller }
    }

    /// Counts each of some keys, which are no longer than keys may be.
    pub(super) fn add(&mut self, keys: &[(&[u8], ())]) -> Result<(), Fault> {
        self.gatherer.add_pairs(keys)?;
        self.teller.count(keys.len() as u64);
        Ok(())
    }
}

/// Adds rows.
pub(super) struct Adder<'a, A: Measure> {
    table: &'a Table,
    gatherer: &'a Gatherer<A>,
    pub(super) teller: Teller<'a>,
    key: Vec<u8>,
    refused: Vec<u32>,
}

impl<'a, A: Measure> Adder<'a, A> {
    pub(super) fn new(table: &'a Table, gatherer: &'a Gatherer<A>, teller: Teller<'a>) -> Self {
        Self { table, gatherer, teller, key: Vec::new(), refused: Vec::new() }
    }

    /// Adds rows. Those that are refused are added by themselves, so that it is told why.
    pub(super) fn add_all(
        &mut self,
        rows: &Batched<'_>,
        position: impl Fn(usize) -> Position,
    ) -> Result<(), Fault> {
        let mut refused = std::mem::take(&mut self.refused);
        self.gatherer.add_rows(rows, &mut refused)?;
        self.teller.count((rows.len() - refused.len()) as u64);
        for at in refused.drain(..).map(|at| at as usize) {
            self.add(&Row::of(rows, at, position(at)))?;
        }
        self.refused = refused;
        Ok(())
    }

    /// Nothing comes any more. What cannot be handed over stays, and whoever finalises is told why.
    pub(super) fn finish(&self) {
        let _ = self.gatherer.hand_over_rows();
    }

    fn add(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        let Self { table, gatherer, key, teller, .. } = self;
        match add_alone(&mut &**gatherer, table, row, teller.on_bad, key) {
            Ok(refused) => {
                teller.tally.refused_values += refused;
                teller.count(1);
                Ok(())
            }
            Err(Refused::Work(error)) => Err(error.into()),
            Err(Refused::Record(Error::Invalid(reason))) => teller.refuse(row.position(), reason),
            Err(Refused::Record(error)) => teller.refuse(row.position(), error.to_string()),
        }
    }

    /// The next record could not be had.
    pub(super) fn trouble(&mut self, trouble: TroubleKind, name: &str, at: Position) -> Result<(), Fault> {
        match trouble {
            TroubleKind::Bad(reason) => self.teller.refuse(at, reason),
            TroubleKind::Read(error) => {
                Err(Fault::Work(Failure::work(format!("cannot read {name}: {error}"))))
            }
        }
    }
}
