//! [`RecordBatchAggregator`]: group-by of record batches.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::{Error, Result};

use super::batches::{RecordBatches, Wanted};
use super::column::{Column, Form, empty, lanes};
use super::dictionaries::Dictionaries;
use super::schema::{PartialSchema, blamed, field};
use crate::aggregate::Aggregate;
use crate::aggregator::Aggregator;
use crate::columns::{Lane, Rows};
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
    groups: CompressedAggregator<Arc<Composite>>,
    /// What batches have; none where there are only those of states.
    input: Option<Input>,
    dictionaries: Dictionaries,
}

/// The columns of batches that are looked at.
struct Input {
    keys: Vec<Asked>,
    columns: Vec<Asked>,
}

/// A column by its name, and its type.
struct Asked(String, DataType);

impl Asked {
    fn of<S: AsRef<str>>(schema: &Schema, names: &[S]) -> Result<Vec<Self>> {
        let asked = |name: &S| {
            let field = field(schema, name.as_ref())?;
            let column = empty(field.data_type())
                .and_then(|none| Column::of(&none, Form::Shown, &Dictionaries::default()));
            column.map_err(|error| blamed(field, &error))?;
            Ok(Self(field.name().clone(), field.data_type().clone()))
        };
        names.iter().map(asked).collect()
    }
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
        let input = Input { keys: Asked::of(schema, by)?, columns: Asked::of(schema, partial.columns())? };
        Self::made(partial, Some(input), options)
    }

    /// An aggregator of partial states only, with batches of this schema.
    pub fn of_partials(schema: &Schema, options: AggregatorOptions) -> Result<Self> {
        Self::made(PartialSchema::of(schema)?, None, options)
    }

    fn made(schema: PartialSchema, input: Option<Input>, options: AggregatorOptions) -> Result<Self> {
        let groups = CompressedAggregator::new(Arc::clone(schema.function()), options)?;
        Ok(Self { schema, groups, input, dictionaries: Dictionaries::default() })
    }

    /// What batches of its states and answers hold.
    pub fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    /// Adds the rows of a batch, from any thread. Where a function does not take a value, or a key is too long, the error
    /// names the first such row, counted from 1; all others are added.
    pub fn add_batch(&self, batch: &RecordBatch) -> Result<()> {
        let input = self.input.as_ref().ok_or_else(|| {
            Error::invalid("an aggregator of partial states takes no rows; make one of the rows' schema")
        })?;
        let columns = |asked: &[Asked], form| {
            let column = |Asked(name, kind): &Asked| {
                let schema = batch.schema();
                let field = field(&schema, name)?;
                let found = batch.column_by_name(name).filter(|array| array.data_type() == kind);
                let array = found.ok_or_else(|| {
                    let told = format!("its values are {}, where {kind} is expected", field.data_type());
                    blamed(field, &Error::invalid(told))
                })?;
                Column::of(array, form, &self.dictionaries).map_err(|error| blamed(field, &error))
            };
            asked.iter().map(column).collect::<Result<Vec<_>>>()
        };
        let (keys, columns) = (columns(&input.keys, Form::Exact)?, columns(&input.columns, Form::Shown)?);
        let (keys, mut columns) = (lanes(&keys)?, lanes(&columns)?);
        // Rows without columns are rows, too.
        columns.push(Lane::nulls(batch.num_rows()));
        let rows = Rows::with_keys(keys, columns)?;
        let mut refused = Vec::new();
        self.groups.add_rows(&rows, &mut refused)?;
        refused.first().map_or(Ok(()), |at| Err(self.refusal(&rows, *at as usize)))
    }

    /// Why a row was refused.
    fn refusal(&self, rows: &Rows<'_>, at: usize) -> Error {
        let (mut row, mut key) = (Vec::new(), Vec::new());
        rows.row(at, &mut row);
        rows.write_key(at, &mut key);
        let reason = match self.schema.function().lift(&row, &mut Vec::new()) {
            Err(error) => error.to_string(),
            Ok(()) => format!("a key of {} bytes; {KEY_BYTES_MAX} at most", key.len()),
        };
        Error::invalid(format!("row {}: {reason}", at + 1))
    }

    /// Merges the states of a batch that another aggregator of these groups gave, from any thread. None is merged of a
    /// batch that does not fit; the error names the column, and the row whose state is none.
    pub fn add_partials(&self, batch: &RecordBatch) -> Result<()> {
        self.schema.read(batch, Form::Exact, &mut |key, state| self.groups.add_state(key, state))
    }

    /// All groups with their states, batch by batch, each group once; [`PartialSchema::schema`] is their schema. More may
    /// be added meanwhile and afterwards.
    pub fn partials(&self) -> Result<RecordBatches<'_>> {
        Ok(RecordBatches::new(self.groups.walk()?, &self.schema, Wanted::States))
    }

    /// The same with what the functions answer; [`PartialSchema::answers`] is the schema.
    pub fn answers(&self) -> Result<RecordBatches<'_>> {
        Ok(RecordBatches::new(self.groups.walk()?, &self.schema, Wanted::Answers))
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
