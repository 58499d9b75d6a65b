//! Groups as record batches, some thousand at a time.

use std::collections::VecDeque;

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::answers::Answers;
use super::column::refusal;
use super::restore::restored;
use super::schema::{PartialSchema, blamed};
use crate::aggregate::Aggregate;
use crate::composite::Composite;
use crate::compressed::{CompressedAggregator, GroupWalk};
use crate::grouping::group_key;

/// A batch is full with so many groups by default, or once their texts and states take this much, or a batch of longer
/// ones this much for each.
const ROWS_MAX: usize = 8192;
const BYTES_MAX: usize = 1 << 20;
const ROW_BYTES_MAX: usize = BYTES_MAX / ROWS_MAX;

/// Makes record batches of partial states, or of answers, of groups that are shown one by one.
pub struct PartialBatches(Builder);

impl PartialBatches {
    /// Batches of this schema.
    pub fn new(schema: &PartialSchema) -> Self {
        Self(Builder::new(schema, Wanted::States))
    }

    /// Batches of what the functions answer; [`PartialSchema::answers`] is their schema.
    pub fn of_answers(schema: &PartialSchema) -> Self {
        Self(Builder::new(schema, Wanted::Answers))
    }

    /// The most groups of a batch, at least 1; 8,192 by default.
    #[must_use]
    pub fn rows_max(mut self, rows: usize) -> Self {
        self.0.rows_max = rows.max(1);
        self
    }

    /// Adds a group: the [group key](group_key) of its columns, and its state. Returns a batch that it makes full.
    pub fn push(&mut self, key: &[u8], state: &[u8]) -> Result<Option<RecordBatch>> {
        self.0.push(key, state)?;
        if self.0.is_full() { self.finish() } else { Ok(None) }
    }

    /// A batch of the groups that are in no batch yet, if there are such.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        if self.0.rows == 0 { Ok(None) } else { self.0.finish().map(Some) }
    }
}

/// What stands behind the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    States,
    Answers,
}

struct Builder {
    schema: SchemaRef,
    function: Arc<Composite>,
    keys: Vec<BinaryBuilder>,
    values: Vec<Values>,
    rows: usize,
    rows_max: usize,
    bytes: usize,
    /// Some columns have a value of a group that others have none of, as it was refused.
    is_torn: bool,
}

/// What a function has for each group.
enum Values {
    States(BinaryBuilder),
    Answers(Answers),
}

impl Builder {
    fn new(schema: &PartialSchema, wanted: Wanted) -> Self {
        let of = if wanted == Wanted::States { schema.schema() } else { schema.answers() };
        let keys = schema.keys().len();
        let values = of.fields()[keys..].iter().map(|field| match wanted {
            Wanted::States => Values::States(BinaryBuilder::new()),
            Wanted::Answers => Values::Answers(Answers::new(field.data_type())),
        });
        Self {
            keys: (0..keys).map(|_| BinaryBuilder::new()).collect(),
            values: values.collect(),
            schema: Arc::clone(of),
            function: Arc::clone(schema.function()),
            rows: 0,
            rows_max: ROWS_MAX,
            bytes: 0,
            is_torn: false,
        }
    }

    fn push(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        let was_torn = std::mem::replace(&mut self.is_torn, true);
        let mut columns = group_key::split(key);
        for texts in &mut self.keys {
            let column = columns.next();
            let column = column.ok_or_else(|| Error::invalid("a key of fewer columns than groups have"))?;
            texts.append_option(group_key::column(column));
        }
        let states = self.function.split(state);
        let states = states.ok_or_else(|| self.function.state_type().malformed(state))?;
        let answers = match self.values.first() {
            Some(Values::Answers(_)) => self.function.finish(state)?,
            _ => Vec::new(),
        };
        for (at, values) in self.values.iter_mut().enumerate() {
            match values {
                Values::States(values) => values.append_value(states[at]),
                Values::Answers(values) => {
                    let pushed = values.push(&answers[at]);
                    let bytes = pushed
                        .map_err(|error| blamed(&self.schema.fields()[self.keys.len() + at], &error))?;
                    self.bytes += bytes;
                }
            }
        }
        self.rows += 1;
        self.bytes += key.len() + state.len();
        self.is_torn = was_torn;
        Ok(())
    }

    fn is_full(&self) -> bool {
        let bytes_max = self.rows_max.saturating_mul(ROW_BYTES_MAX).max(BYTES_MAX);
        self.rows >= self.rows_max || self.bytes >= bytes_max
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        if self.is_torn {
            return Err(Error::invalid("a group before was refused"));
        }
        let fields = self.schema.fields();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        for (texts, field) in self.keys.iter_mut().zip(fields) {
            let restored = restored(texts.finish(), field.data_type());
            columns.push(restored.map_err(|error| blamed(field, &error))?);
        }
        for (values, field) in self.values.iter_mut().zip(&fields[self.keys.len()..]) {
            columns.push(match values {
                Values::States(values) => Arc::new(values.finish()),
                Values::Answers(values) => values.finish().map_err(|error| blamed(field, &error))?,
            });
        }
        debug_assert!(self.rows > 0, "a batch has groups");
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(refusal)
    }
}

/// The groups of an aggregator as record batches, each group once. It lasts as long as it is needed, also where the
/// aggregator itself is gone.
pub struct RecordBatches {
    walk: GroupWalk<Arc<CompressedAggregator<Arc<Composite>>>>,
    builder: Builder,
    ready: VecDeque<RecordBatch>,
    /// The end, or the error that is there instead.
    end: Option<Result<()>>,
}

impl RecordBatches {
    pub(super) fn new(
        groups: &Arc<CompressedAggregator<Arc<Composite>>>,
        schema: &PartialSchema,
        wanted: Wanted,
    ) -> Result<Self> {
        let walk = GroupWalk::new(Arc::clone(groups))?;
        Ok(Self { walk, builder: Builder::new(schema, wanted), ready: VecDeque::new(), end: None })
    }

    /// The most groups of a batch, at least 1; 8,192 by default.
    #[must_use]
    pub fn rows_max(mut self, rows: usize) -> Self {
        self.builder.rows_max = rows.max(1);
        self
    }

    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.builder.schema)
    }

    fn advance(&mut self) -> Result<bool> {
        let Self { walk, builder, ready, .. } = self;
        walk.advance(&mut |key, state| {
            builder.push(key, state)?;
            if builder.is_full() {
                ready.push_back(builder.finish()?);
            }
            Ok(())
        })
    }

    /// No more groups come.
    fn end(&mut self, end: Result<()>) {
        let is_whole = !self.builder.is_torn && self.builder.rows > 0;
        let last = if is_whole { self.builder.finish().map(Some) } else { Ok(None) };
        self.end = Some(last.map(|last| self.ready.extend(last)).and(end));
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            if let Some(end) = &mut self.end {
                return std::mem::replace(end, Ok(())).err().map(Err);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => self.end(Ok(())),
                Err(error) => self.end(Err(error)),
            }
        }
    }
}
