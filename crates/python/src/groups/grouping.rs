//! Roll-ups and cubes: the rows of several groupings as one stream, each grouping made of states when its turn comes.

use std::path::PathBuf;
use std::vec::IntoIter;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay::aggregate::{Grouping, Groupings};
use forebay::{Error, Result};
use forebay_env::sync::Arc;
use pyo3::prelude::*;

use super::asked::Asked;
use super::memory::Groups;
use super::read::{Grouped, View, Wanted};
use crate::failure::{Failure, Outcome};
use crate::kernel::attached;
use crate::options::size;
use crate::rows::{Batches, Rows};

/// The column that tells which columns of the key a row's grouping leaves out.
const GROUPING: &str = "grouping";

/// What is asked for.
struct Plan {
    /// By all columns of the roll-up or cube, which are the key here.
    asked: Asked,
    finest: View,
    groupings: Groupings,
    memory: Option<u64>,
    spill: Option<PathBuf>,
    schema: SchemaRef,
}

/// The rows of these groupings of groups, by all columns of their key or by some.
pub(super) fn rows(
    view: View,
    groupings: impl FnOnce(usize) -> Result<Groupings>,
    columns: Vec<String>,
    memory: Option<&Bound<'_, PyAny>>,
    spill: Option<PathBuf>,
) -> Outcome<Rows> {
    let columns = if columns.is_empty() { view.asked.keys.clone() } else { columns };
    let asked = view.asked.coarser(columns)?;
    let answers = asked.answers(&asked.partial_of_states(view.groups.schema())?);
    if answers.fields().iter().any(|field| field.name() == GROUPING) {
        let told =
            format!("a column is called `{GROUPING}`, as the one that tells groupings apart; rename it");
        return Err(Failure::invalid(told));
    }
    let grouping = Arc::new(Field::new(GROUPING, DataType::Int64, false));
    let schema =
        Arc::new(Schema::new(answers.fields().iter().cloned().chain([grouping]).collect::<Vec<_>>()));
    let groupings = groupings(asked.keys.len())?;
    let memory = memory.map(|memory| size("memory", memory)).transpose()?;
    let plan =
        Arc::new(Plan { asked, finest: view, groupings, memory, spill, schema: SchemaRef::clone(&schema) });
    let begin = move || -> Result<Batches> {
        let plan = Arc::clone(&plan);
        let has_own = !plan.asked.own().is_empty();
        let next = plan.groupings.iter().collect::<Vec<_>>().into_iter();
        let mut stream = Stream { plan, next, level: None };
        if !has_own {
            return Ok(Box::new(stream));
        }
        // As with the rows of one grouping: whoever reads may hold the interpreter's lock.
        Ok(Box::new(std::iter::from_fn(move || attached(|py| py.detach(|| stream.next())).unwrap_or(None))))
    };
    Ok(Rows::new(schema, Box::new(begin)))
}

struct Stream {
    plan: Arc<Plan>,
    next: IntoIter<Grouping>,
    level: Option<Level>,
}

/// The groups of a grouping.
struct Level {
    grouping: Grouping,
    asked: Asked,
    answers: SchemaRef,
    batches: Batches,
    groups: Arc<dyn Grouped>,
    /// What takes the files away at last, of groups that are made here.
    _made: Option<Arc<Groups>>,
}

impl Plan {
    fn level(&self, grouping: Grouping, before: Option<&Level>) -> Result<Level> {
        let is_kept = |at: usize| self.bit(at) & i64::from(grouping.bits()) == 0;
        let keys = self.asked.keys.iter().enumerate().filter(|(at, _)| is_kept(*at));
        let asked = self.asked.coarser(keys.map(|(_, key)| key.clone()).collect())?;
        let (made, groups) = if asked == *self.finest.asked {
            (None, Arc::clone(&self.finest.groups))
        } else {
            // The one before has fewer groups, and will do if it has all the columns.
            let before = before.filter(|before| before.grouping.bits() & !grouping.bits() == 0);
            let finer = before.map_or(&self.finest.groups, |before| &before.groups);
            let (made, groups) = Groups::coarser(asked.clone(), &**finer, self.memory, self.spill.clone())?;
            (Some(made), groups)
        };
        let (answers, batches) = (asked.answers(groups.schema()), groups.batches(Wanted::Answers)?);
        Ok(Level { grouping, asked, answers, batches, groups, _made: made })
    }

    /// The bit that stands for a column: of the last one it is the lowest.
    fn bit(&self, column: usize) -> i64 {
        debug_assert!(column < self.asked.keys.len());
        1 << (self.asked.keys.len() - 1 - column)
    }

    /// A batch of a level, with nulls in the columns that it leaves out.
    fn widened(&self, level: &Level, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = level.asked.named_batch(&level.answers, batch)?;
        let (rows, bits) = (batch.num_rows(), i64::from(level.grouping.bits()));
        let keys = self.asked.keys.iter().zip(self.schema.fields()).map(|(key, field)| {
            let at = level.asked.keys.iter().position(|kept| kept == key);
            at.map_or_else(|| new_null_array(field.data_type(), rows), |at| ArrayRef::clone(batch.column(at)))
        });
        let mut columns = keys.collect::<Vec<_>>();
        columns.extend(batch.columns().iter().skip(level.asked.keys.len()).cloned());
        columns.push(Arc::new(Int64Array::from(vec![bits; rows])));
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
            .map_err(|error| Error::Bug(format!("groupings make no record batch: {error}")))
    }
}

impl Stream {
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(level) = &mut self.level
                && let Some(batch) = level.batches.next().transpose()?
            {
                return self.plan.widened(level, &batch).map(Some);
            }
            let Some(grouping) = self.next.next() else { return Ok(None) };
            self.level = Some(self.plan.level(grouping, self.level.as_ref())?);
        }
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if !matches!(next, Ok(Some(_))) {
            (self.next, self.level) = (Vec::new().into_iter(), None);
        }
        next.transpose()
    }
}
