//! Roll-ups and cubes: the rows of several groupings as one stream, each grouping made of states when its turn comes.

use std::path::PathBuf;
use std::vec::IntoIter;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay::aggregate::{Grouping, Groupings};
use forebay::{Error, Result};
use forebay_aggregate::arrow::PartialSchema;
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
    groupings: Groupings,
    source: Source,
    schema: SchemaRef,
}

/// Where groups of fewer columns come from.
enum Source {
    /// They are made of these, within this memory.
    Made {
        finest: View,
        memory: Option<u64>,
        spill: Option<PathBuf>,
    },
    Kept(Box<dyn Levels>),
}

/// Groups of each grouping that are kept.
pub(super) trait Levels: Send + Sync {
    /// Those by the columns of this key.
    fn level(&self, asked: &Asked) -> Result<Arc<dyn Grouped>>;
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
    let of_groups = asked.partial_of_states(view.groups.schema())?;
    let groupings = groupings(asked.keys.len())?;
    let memory = memory.map(|memory| size("memory", memory)).transpose()?;
    of_plan(asked, &of_groups, groupings, Source::Made { finest: view, memory, spill })
}

/// The rows of all groupings that are kept, of groups that are by these columns at most.
pub(super) fn kept_rows(
    asked: Asked,
    of_groups: &PartialSchema,
    groupings: Groupings,
    levels: impl Levels + 'static,
) -> Outcome<Rows> {
    of_plan(asked, of_groups, groupings, Source::Kept(Box::new(levels)))
}

/// An error where a column would have the name of the one that tells groupings apart.
pub(super) fn check_names(asked: &Asked) -> Outcome<()> {
    let mut names = asked.keys.iter().chain(asked.names.iter().map(|(name, _)| name));
    if names.any(|name| name == GROUPING) {
        let told =
            format!("a column is called `{GROUPING}`, as the one that tells groupings apart; rename it");
        return Err(Failure::invalid(told));
    }
    Ok(())
}

fn of_plan(asked: Asked, of_groups: &PartialSchema, groupings: Groupings, source: Source) -> Outcome<Rows> {
    check_names(&asked)?;
    let grouping = Arc::new(Field::new(GROUPING, DataType::Int64, false));
    let fields = asked.answers(of_groups).fields().iter().cloned().chain([grouping]).collect::<Vec<_>>();
    let schema = Arc::new(Schema::new(fields));
    let plan = Arc::new(Plan { asked, groupings, source, schema: SchemaRef::clone(&schema) });
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
        let (made, groups) = match &self.source {
            Source::Kept(levels) => (None, levels.level(&asked)?),
            Source::Made { finest, .. } if asked == *finest.asked => (None, Arc::clone(&finest.groups)),
            Source::Made { finest, memory, spill } => {
                // The one before has fewer groups, and will do if it has all the columns.
                let before = before.filter(|before| before.grouping.bits() & !grouping.bits() == 0);
                let finer = before.map_or(&finest.groups, |before| &before.groups);
                let (made, groups) = Groups::coarser(asked.clone(), &**finer, *memory, spill.clone())?;
                (Some(made), groups)
            }
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
