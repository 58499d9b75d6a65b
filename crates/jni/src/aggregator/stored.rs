//! [`Stored`]: groups that a database keeps.

use arrow_schema::SchemaRef;
use forebay::aggregate::Composite;
use forebay::{Batch, Durability, Error, Result};
use forebay_aggregate::arrow::{Form, PartialSchema, RecordBatchStates};
use forebay_env::sync::Arc;
use forebay_groups::{
    Asked, BATCH_ROWS, Batches, COMMIT_BYTES_MAX, Made, Opened, PENDING_BYTES, Shape, Wanted, kept,
    put_states,
};

use super::{for_each, not_known, own};
use crate::database::Open;
use crate::failure::Outcome;
use crate::items::Items;
use crate::options::durability;
use crate::stream::Reader;

/// See the module.
pub(super) struct Stored {
    open: Arc<Open>,
    name: String,
    options: Vec<(String, String)>,
    groups: Opened<Table>,
}

/// The table of the groups.
pub(super) struct Table {
    aggregator: forebay::Aggregator<Arc<Composite>>,
    pub(super) schema: PartialSchema,
}

/// Opens the table of a name.
fn table(open: &Open, name: &str, options: &[(String, String)], schema: PartialSchema) -> Outcome<Table> {
    let aggregator = open.with(|db| {
        let made = db.aggregator(name, Arc::clone(schema.function()));
        let made = options.iter().try_fold(made, |made, (name, text)| {
            Ok::<_, Error>(forebay_settings::aggregator(name, text)?(made))
        });
        made?.open()
    })?;
    Ok(Table { aggregator, schema })
}

impl Stored {
    /// Those that are kept, or asked for and made once the columns of rows are known.
    pub(super) fn open(
        open: Arc<Open>,
        name: &str,
        asked: Option<Asked>,
        options: &[u8],
    ) -> Outcome<(Asked, Self)> {
        let (mut texts, mut options) = (Items(options), Vec::new());
        while !texts.is_empty() {
            options.push((texts.text()?.to_string(), texts.text()?.to_string()));
        }
        let (told, (asked, schema)) = open.with(|db| {
            let told = kept::table(db, name).transpose()?;
            Ok((told, kept::opened(db, name, asked, &Shape::Plain, &own())?))
        })?;
        let groups = schema.map(|schema| table(&open, name, &options, schema)).transpose()?;
        let groups = Opened::new(groups.zip(told));
        let stored = Self { open, name: name.into(), options, groups };
        Ok((asked, stored))
    }

    /// The groups; of new ones what they are is kept first.
    pub(super) fn begun(
        &self,
        asked: &Asked,
        schema: impl FnOnce() -> Result<PartialSchema>,
    ) -> Outcome<Arc<Table>> {
        let told = || self.open.with(|db| kept::table(db, &self.name).transpose());
        let make = || {
            // Without a table of that name, or with other options, nothing is kept.
            let table = table(&self.open, &self.name, &self.options, schema()?)?;
            self.open.with(|db| kept::begin(db, &self.name, &table.schema, asked, &Shape::Plain, &own()))?;
            Ok(table)
        };
        let gone = || Error::NotFound(format!("aggregator `{}` was dropped meanwhile", self.name));
        self.groups.begin(told, make, || gone().into())
    }

    /// The groups, also those that another handle has made since this one was opened, or a rollback has brought back.
    /// Where they were dropped, what they are asked says so.
    pub(super) fn found(&self, asked: &Asked) -> Outcome<Option<Arc<Table>>> {
        if let Some(table) = self.groups.known() {
            return Ok(Some(table));
        }
        match self.open.with(|db| kept::load(db, &self.name, &own()))? {
            Some((schema, _)) => self.begun(asked, || Ok(schema)).map(Some),
            None => Ok(self.groups.last()),
        }
    }

    pub(super) fn usual(&self) -> Durability {
        self.open.usual
    }

    /// The groups of rows of a schema, and what gathers their states.
    fn gathering(&self, asked: &Asked, rows: &SchemaRef) -> Outcome<(Arc<Table>, RecordBatchStates)> {
        let partial = asked.partial(rows, &own())?;
        let table = self.begun(asked, || Ok(partial.clone()))?;
        table.schema.check(partial.schema())?;
        Ok((table, RecordBatchStates::of_schema(partial, rows, COMMIT_BYTES_MAX)?))
    }

    fn write(&self, batch: Batch, durability: Durability) -> Outcome<u64> {
        self.open.with(|db| db.commit(batch, durability))
    }

    fn write_states(
        &self,
        table: &Table,
        states: &mut RecordBatchStates,
        durability: Durability,
    ) -> Outcome<()> {
        let mut batch = Batch::new();
        put_states(&table.aggregator, states, &mut batch)?;
        self.write(batch, durability).map(drop)
    }

    /// Adds rows, in parts. Returns how many there were.
    pub(super) fn update(&self, asked: &Asked, rows: Reader, durability_number: i32) -> Outcome<u64> {
        let durability = durability(durability_number, self.usual())?;
        let (table, mut states) = self.gathering(asked, &rows.schema())?;
        let mut count = 0;
        for batch in rows {
            let batch = batch?;
            states.add_batch(&batch)?;
            count += batch.num_rows() as u64;
            if states.memory_bytes() >= PENDING_BYTES {
                self.write_states(&table, &mut states, durability)?;
            }
        }
        self.write_states(&table, &mut states, durability)?;
        Ok(count)
    }

    /// Adds rows and what a batch has at one go, with metadata.
    pub(super) fn commit(
        &self,
        asked: &Asked,
        rows: Option<Reader>,
        mut batch: Batch,
        metadata: Option<&[u8]>,
        durability: Durability,
    ) -> Outcome<u64> {
        if let Some(rows) = rows {
            let (table, mut states) = self.gathering(asked, &rows.schema())?;
            for_each(rows, |batch| states.add_batch(batch))?;
            put_states(&table.aggregator, &mut states, &mut batch)?;
        }
        let Some(metadata) = metadata else { return self.write(batch, durability) };
        let table = self.found(asked)?.ok_or_else(not_known)?;
        self.open.with(|_| table.aggregator.commit(batch, durability, metadata))
    }

    pub(super) fn metadata(&self, asked: &Asked) -> Outcome<Option<Vec<u8>>> {
        let Some(table) = self.found(asked)? else { return Ok(None) };
        self.open.with(|_| table.aggregator.metadata())
    }

    /// Merges states, batch by batch. Returns how many there were.
    pub(super) fn merge(&self, table: &Table, states: Reader, durability_number: i32) -> Outcome<u64> {
        let durability = durability(durability_number, self.usual())?;
        let mut count = 0;
        for states in states {
            let (states, mut batch) = (states?, Batch::new());
            table.schema.read(&states, Form::Exact, &mut |key, state| {
                batch.add_state(&table.aggregator, key, state);
                Ok(())
            })?;
            self.write(batch, durability)?;
            count += states.num_rows() as u64;
        }
        Ok(count)
    }

    pub(super) fn delete(&self, asked: &Asked, key: &[u8], durability: Durability) -> Outcome<()> {
        let table = self.found(asked)?.ok_or_else(not_known)?;
        let mut batch = Batch::new();
        batch.delete_group(&table.aggregator, key);
        self.write(batch, durability).map(drop)
    }

    pub(super) fn state(&self, asked: &Asked, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let Some(table) = self.found(asked)? else { return Ok(None) };
        self.open.with(|_| table.aggregator.get_state(key))
    }

    /// All groups, as they are now.
    pub(super) fn batches(&self, asked: &Asked, wanted: Wanted) -> Outcome<Option<Batches>> {
        let Some(table) = self.found(asked)? else { return Ok(None) };
        let entries = self.open.with(|db| {
            let snapshot = db.snapshot();
            let states = snapshot.table(table.aggregator.name())?;
            snapshot.iter_columns(&states, BATCH_ROWS)
        })?;
        Ok(Some(Box::new(Made::new(entries, &table.schema, wanted, BATCH_ROWS))))
    }
}
