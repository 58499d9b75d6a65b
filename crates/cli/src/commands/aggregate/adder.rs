//! Adds rows that come by columns, from any thread, and tells why some are refused.

use forebay::Error;
use forebay_aggregate::columns::Rows as Batched;
use forebay_aggregate::group_key as keys;

use super::batch::Row;
use super::by::Table;
use super::engine::Measure;
use super::gathering::Gatherer;
use super::inputs::{OnBad, Tally};
use super::refused::Refused;
use crate::failure::Failure;
use crate::input::{Position, Rows, TroubleKind};
use crate::progress::Progress;

/// Why reading a piece of an input stopped.
pub(super) enum Fault {
    /// A malformed record.
    Row(Position, String),
    Work(Failure),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Work(error.into())
    }
}

/// See the module.
pub(super) struct Adder<'a, A: Measure> {
    table: &'a Table,
    gatherer: &'a Gatherer<A>,
    progress: &'a Progress,
    on_bad: OnBad,
    pub(super) tally: Tally,
    key: Vec<u8>,
    refused: Vec<u32>,
}

impl<'a, A: Measure> Adder<'a, A> {
    pub(super) fn new(
        table: &'a Table,
        gatherer: &'a Gatherer<A>,
        progress: &'a Progress,
        on_bad: OnBad,
    ) -> Self {
        let (tally, key, refused) = Default::default();
        Self { table, gatherer, progress, on_bad, tally, key, refused }
    }

    /// Adds rows. Those that are refused are added by themselves, so that it is told why.
    pub(super) fn add_all(
        &mut self,
        rows: &Batched<'_>,
        position: impl Fn(usize) -> Position,
    ) -> Result<(), Fault> {
        let mut refused = std::mem::take(&mut self.refused);
        self.gatherer.add_rows(rows, &mut refused)?;
        self.count((rows.len() - refused.len()) as u64);
        for at in refused.drain(..).map(|at| at as usize) {
            self.add(&Row::of(rows, at, position(at)))?;
        }
        self.refused = refused;
        Ok(())
    }

    fn add(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        let Self { table, gatherer, key, .. } = self;
        key.clear();
        (0..table.keys.len()).for_each(|at| keys::push(key, row.column(at)));
        let values = || (0..table.columns.len()).map(|at| row.value(at));
        match (A::add_row(&mut &**gatherer, key, values()), self.on_bad) {
            (Ok(()), _) => {}
            (Err(Refused::Work(error)), _) => return Err(error.into()),
            (Err(Refused::Record(error)), on_bad) => {
                let taken = match on_bad {
                    OnBad::Skip => A::add_what_is_taken(&mut &**gatherer, key, values())?,
                    OnBad::Stop => None,
                };
                let Some(refused) = taken else {
                    let reason = if let Error::Invalid(reason) = error { reason } else { error.to_string() };
                    return self.refuse(row.position(), reason);
                };
                self.tally.refused_values += refused;
            }
        }
        self.count(1);
        Ok(())
    }

    fn count(&mut self, records: u64) {
        self.tally.records += records;
        self.progress.add(records);
    }

    /// The next record could not be had.
    pub(super) fn trouble(&mut self, trouble: TroubleKind, name: &str, at: Position) -> Result<(), Fault> {
        match trouble {
            TroubleKind::Bad(reason) => self.refuse(at, reason),
            TroubleKind::Read(error) => {
                Err(Fault::Work(Failure::work(format!("cannot read {name}: {error}"))))
            }
        }
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
