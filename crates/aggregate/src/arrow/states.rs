//! [`RecordBatchStates`]: the states of rows of record batches, for who keeps groups elsewhere, such as in a database.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use forebay_base::Result;
use forebay_env::sync::Arc;

use super::dictionaries::Dictionaries;
use super::input::{Input, refusal};
use super::schema::PartialSchema;
use crate::aggregator::{Aggregator, Visit};
use crate::columns::HashedRows;
use crate::composite::Composite;

/// Gathers the states of rows in a hash table, and then shows each group once.
pub struct RecordBatchStates {
    schema: PartialSchema,
    input: Input,
    dictionaries: Dictionaries,
    memory_max: usize,
    groups: HashedRows<Arc<Composite>>,
}

impl RecordBatchStates {
    /// None yet, of record batches of this schema: see [`RecordBatchAggregator::new`](super::RecordBatchAggregator::new).
    /// They take no more than `memory_max` bytes; what does not fit is an error.
    pub fn new<S: AsRef<str>>(schema: &Schema, by: &[S], functions: &str, memory_max: usize) -> Result<Self> {
        Self::of_schema(PartialSchema::new(schema, by, functions)?, schema, memory_max)
    }

    /// The same of groups that are told by what their partial states are.
    pub fn of_schema(partial: PartialSchema, schema: &Schema, memory_max: usize) -> Result<Self> {
        let by: Vec<&str> = partial.keys().iter().map(|key| &key.name()[..]).collect();
        let input = Input::of(schema, &by, &partial)?;
        let groups = HashedRows::new(Arc::clone(partial.function()), memory_max);
        Ok(Self { schema: partial, input, dictionaries: Dictionaries::default(), memory_max, groups })
    }

    /// What the groups are.
    pub fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    /// Adds the rows of a batch. Where a function does not take a value, or a key is too long, the error names the first
    /// such row, counted from 1; only those before it are added.
    pub fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { schema, input, dictionaries, groups, .. } = self;
        input.with_rows(batch, dictionaries, |rows| {
            let added = groups.add_sound_rows(rows)?;
            debug_assert!(added <= rows.len(), "no row is added twice");
            if added == rows.len() { Ok(()) } else { Err(refusal(schema.function(), rows, added, 0)) }
        })
    }

    /// Shows the key and the state of each group, and has none then.
    pub fn take(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.groups.finalize()?;
        self.groups.for_each(visit)?;
        self.groups = HashedRows::new(Arc::clone(self.schema.function()), self.memory_max);
        Ok(())
    }

    /// How many bytes of memory they take now.
    pub fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes() + self.dictionaries.memory_bytes()
    }
}

impl fmt::Debug for RecordBatchStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatchStates").field("schema", &self.schema).finish_non_exhaustive()
    }
}
