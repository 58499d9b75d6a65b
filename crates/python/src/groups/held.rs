//! [`Held`]: what is open of groups that a database keeps.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use forebay::Batch;
use forebay::aggregate::Composite;
use forebay_aggregate::arrow::{PartialSchema, RecordBatchStates};
use forebay_env::sync::atomic::Ordering;
use forebay_env::sync::{Arc, RwLock};
use pyo3::prelude::*;

use super::asked::Asked;
use super::kept;
use super::own::with_states;
use super::read::{Grouped, Made, Wanted};
use crate::columns::for_each;
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::options::Text;
use crate::rows::{BATCH_ROWS, Batches};

/// See the module.
pub(super) struct Held {
    pub(super) open: Arc<Open>,
    pub(super) name: String,
    pub(super) asked: Arc<Asked>,
    pub(super) options: Vec<Text>,
    /// Once the types of the key's columns are known.
    pub(super) groups: RwLock<Option<Arc<Stored>>>,
}

/// The table of the groups.
pub(super) struct Stored {
    pub(super) open: Arc<Open>,
    pub(super) aggregator: forebay::Aggregator<Arc<Composite>>,
    pub(super) schema: PartialSchema,
}

impl Stored {
    pub(super) fn open(
        open: &Arc<Open>,
        name: &str,
        schema: PartialSchema,
        options: &[Text],
    ) -> Outcome<Self> {
        let aggregator = open.with_detached(|db| {
            let made = db.aggregator(name, Arc::clone(schema.function()));
            let made = options.iter().try_fold(made, |made, (name, text)| {
                Ok::<_, forebay::Error>(forebay_settings::aggregator(name, text)?(made))
            });
            made?.open()
        })?;
        Ok(Self { open: Arc::clone(open), aggregator, schema })
    }

    /// Does something with the table as it is now.
    fn seen<T>(
        &self,
        act: impl FnOnce(&forebay::Snapshot, &forebay::Table) -> forebay::Result<T>,
    ) -> forebay::Result<T> {
        let seen = self.open.with_detached(|db| {
            let snapshot = db.snapshot();
            let table = snapshot.table(self.aggregator.name())?;
            act(&snapshot, &table)
        });
        seen.map_err(|failure| match failure {
            Failure::Engine(error) => error,
            _ => forebay::Error::invalid("the database is closed"),
        })
    }
}

impl Grouped for Stored {
    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn states(&self, keys: &[Vec<u8>]) -> forebay::Result<Vec<Option<Vec<u8>>>> {
        self.seen(|snapshot, table| snapshot.multi_get(table, keys))
    }

    fn batches(&self, wanted: Wanted) -> forebay::Result<Batches> {
        let entries = self.seen(|snapshot, table| snapshot.iter_columns(table, BATCH_ROWS))?;
        Ok(Box::new(Made::new(entries, &self.schema, wanted, BATCH_ROWS)))
    }
}

impl Held {
    pub(super) fn known(&self) -> Option<Arc<Stored>> {
        self.groups.read().clone()
    }

    /// The groups; of new ones what they are is kept first.
    pub(super) fn begun(
        &self,
        schema: impl FnOnce() -> forebay::Result<PartialSchema>,
    ) -> Outcome<Arc<Stored>> {
        if let Some(groups) = self.known() {
            return Ok(groups);
        }
        let mut groups = self.groups.write();
        if let Some(groups) = &*groups {
            return Ok(Arc::clone(groups));
        }
        let schema = schema()?;
        // Without a table of that name, or with other options, nothing is kept.
        let made = Stored::open(&self.open, &self.name, schema, &self.options)?;
        self.open.with_detached(|db| {
            while !self.is_kept(db, &made.schema)? && !kept::keep(db, &self.name, &made.schema, &self.asked)?
            {
            }
            Ok(())
        })?;
        let made = Arc::new(made);
        *groups = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Whether another handle was first, with the same groups; with others it is an error.
    fn is_kept(&self, db: &forebay::Database, schema: &PartialSchema) -> forebay::Result<bool> {
        match kept::load(db, &self.name, self.asked.own())? {
            Some((kept, asked)) if asked == *self.asked => kept.check(schema.schema()).map(|()| true),
            Some((kept, asked)) => {
                self.asked.agrees(&kept)?;
                let told = format!("aggregator `{}` was made with aggs {:?}", self.name, asked.named());
                Err(forebay::Error::invalid(told))
            }
            None => Ok(false),
        }
    }

    pub(super) fn of_rows(&self, schema: &SchemaRef, states: &SchemaRef) -> Outcome<Arc<Stored>> {
        let groups = self.begun(|| self.asked.partial(schema))?;
        groups.schema.check(states)?;
        Ok(groups)
    }

    pub(super) fn gathering(&self, schema: &SchemaRef, memory_max: usize) -> Outcome<RecordBatchStates> {
        let partial = self.asked.partial(schema)?;
        Ok(RecordBatchStates::of_schema(partial, &self.asked.with_own_columns(schema), memory_max)?)
    }

    /// Does something with the rows of an object, which for functions in Python have their states beside them. Returns
    /// how many rows there were.
    pub(super) fn for_rows(
        &self,
        py: Python<'_>,
        input: Box<dyn RecordBatchReader + Send>,
        partial: &PartialSchema,
        with: impl FnMut(&RecordBatch) -> Outcome<()> + Send,
    ) -> Outcome<u64> {
        if self.asked.own().is_empty() {
            return for_each(py, input, with);
        }
        let (input, rows) = with_states(input, &self.asked, partial);
        for_each(py, input, with)?;
        Ok(rows.load(Ordering::Relaxed))
    }
}

/// Puts the states that have gathered into a batch.
pub(super) fn put_states(
    groups: &Stored,
    states: &mut RecordBatchStates,
    batch: &mut Batch,
) -> forebay::Result<()> {
    states.take(&mut |key, state| {
        batch.add_state(&groups.aggregator, key, state);
        Ok(())
    })
}
