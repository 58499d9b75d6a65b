//! [`RecordBatchAggregator`]: group-by of record batches.

use std::fmt;
use std::sync::OnceLock;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use forebay_base::Result;

use super::batches::{RecordBatches, Wanted};
use super::column::Form;
use super::dictionaries::Dictionaries;
use super::input::{Input, refusal};
use super::schema::PartialSchema;
use crate::aggregator::Aggregator;
use crate::composite::Composite;
use crate::compressed::{AggregatorOptions, CompressedAggregator};
use forebay_env::sync::Arc;

/// Groups of record batches. Any number of threads add to it and read it at the same time.
///
/// Groups are told apart by the texts of their values, as everywhere: in a column of floating-point numbers all NaN are
/// one group, and so are the two zeros.
///
/// ```
/// use arrow_array::{Int64Array, RecordBatch, StringArray, cast::AsArray, types::Decimal128Type};
/// use forebay_aggregate::{AggregatorOptions, arrow::RecordBatchAggregator};
///
/// let city = StringArray::from(vec![Some("ulm"), None, Some("ulm")]);
/// let amount = Int64Array::from(vec![3, 5, 4]);
/// let sales = RecordBatch::try_from_iter([("city", std::sync::Arc::new(city) as _), ("amount", std::sync::Arc::new(amount) as _)])?;
/// let make = || {
///     RecordBatchAggregator::new(&sales.schema(), &["city"], "count,sum:amount", AggregatorOptions::default())
/// };
///
/// // Here, and on another machine:
/// let (here, there) = (make()?, make()?);
/// here.add_batch(&sales.slice(0, 2))?;
/// there.add_batch(&sales.slice(2, 1))?;
/// for states in there.partials()? {
///     here.add_partials(&states?)?;
/// }
/// let answers = here.answers()?.next().expect("a batch")?;
/// assert_eq!(answers.schema().field(2).name(), "sum:amount");
/// let sums = answers.column(2).as_primitive::<Decimal128Type>();
/// assert_eq!(sums.iter().map(|sum| sum.unwrap_or(0)).sum::<i128>(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecordBatchAggregator {
    schema: PartialSchema,
    groups: Arc<CompressedAggregator<Arc<Composite>>>,
    /// What batches have, once that is known: there may be only those of states.
    input: OnceLock<Input>,
    dictionaries: Dictionaries,
}

impl RecordBatchAggregator {
    /// Groups of record batches of this schema by some columns, none for one group of all rows, with functions such as
    /// `count,sum:amount`.
    ///
    /// An integer of less than 64 bits is one to functions; a decimal, a day, a time or a point in time is its text, as in
    /// `2024-02-29T12:34:56Z`.
    pub fn new<S: AsRef<str>>(
        schema: &Schema,
        by: &[S],
        functions: &str,
        options: AggregatorOptions,
    ) -> Result<Self> {
        let partial = PartialSchema::new(schema, by, functions)?;
        let input = Input::of(schema, by, &partial)?;
        Self::made(partial, OnceLock::from(input), options)
    }

    /// An aggregator for partial states, with batches of this schema. It takes rows, too: the first batch of them says of
    /// which types the columns are that are not in the key.
    pub fn of_partials(schema: &Schema, options: AggregatorOptions) -> Result<Self> {
        Self::of_schema(PartialSchema::of(schema)?, options)
    }

    /// The same of groups that are told by what their partial states are.
    pub fn of_schema(schema: PartialSchema, options: AggregatorOptions) -> Result<Self> {
        Self::made(schema, OnceLock::new(), options)
    }

    fn made(schema: PartialSchema, input: OnceLock<Input>, options: AggregatorOptions) -> Result<Self> {
        let groups = Arc::new(CompressedAggregator::new(Arc::clone(schema.function()), options)?);
        Ok(Self { schema, groups, input, dictionaries: Dictionaries::default() })
    }

    /// What batches of its states and answers hold.
    pub fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    /// Adds the rows of a batch, from any thread. Where a function does not take a value, or a key is too long, the error
    /// names the first such row, counted from 1; all others are added.
    pub fn add_batch(&self, batch: &RecordBatch) -> Result<()> {
        self.add_part(batch, 0)
    }

    /// The same of a part of a batch, before which so many rows of it stand: the error counts those, too.
    pub fn add_part(&self, batch: &RecordBatch, rows_before: usize) -> Result<()> {
        let input = match self.input.get() {
            Some(input) => input,
            None => {
                let schema = batch.schema();
                let keys: Vec<&str> = self.schema.keys().iter().map(|key| &key.name()[..]).collect();
                let input = Input::of(&schema, &keys, &self.schema)?;
                self.schema.check_keys(&schema)?;
                self.input.get_or_init(|| input)
            }
        };
        input.with_rows(batch, &self.dictionaries, |rows| {
            let mut refused = Vec::new();
            self.groups.add_rows(rows, &mut refused)?;
            let Some(at) = refused.first() else { return Ok(()) };
            Err(refusal(self.schema.function(), rows, *at as usize, rows_before))
        })
    }

    /// The state of a group, by its [group key](crate::group_key): those that
    /// [`PartialSchema::keys_of`] shows.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Aggregator::get(&*self.groups, key)
    }

    /// Merges the states of a batch that another aggregator of these groups gave, from any thread. None is merged of a
    /// batch that does not fit; the error names the column, and the row whose state is none.
    pub fn add_partials(&self, batch: &RecordBatch) -> Result<()> {
        self.schema.read(batch, Form::Exact, &mut |key, state| self.groups.add_state(key, state))
    }

    /// All groups with their states, batch by batch, each group once; [`PartialSchema::schema`] is their schema. More may
    /// be added meanwhile and afterwards.
    pub fn partials(&self) -> Result<RecordBatches> {
        RecordBatches::new(&self.groups, &self.schema, Wanted::States)
    }

    /// The same with what the functions answer; [`PartialSchema::answers`] is the schema.
    pub fn answers(&self) -> Result<RecordBatches> {
        RecordBatches::new(&self.groups, &self.schema, Wanted::Answers)
    }

    /// How many bytes of memory it takes now.
    pub fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes() + self.dictionaries.memory_bytes()
    }
}

impl fmt::Debug for RecordBatchAggregator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatchAggregator").field("schema", &self.schema).finish_non_exhaustive()
    }
}
