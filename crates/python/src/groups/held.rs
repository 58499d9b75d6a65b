//! [`Held`]: what is open of groups that a database keeps.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use forebay::aggregate::Composite;
use forebay::{Batch, Durability, Error};
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema, RecordBatchStates};
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::Ordering;
use forebay_groups::{COMMIT_BYTES_MAX, Opened, PENDING_BYTES, put_states};
use pyo3::prelude::*;

use super::asked::Asked;
use super::given::Given;
use super::kept::{self, Shape};
use super::own::with_states;
use super::read::{Find, Grouped, Made, Wanted};
use crate::columns::for_each;
use crate::database::Open;
use crate::failure::{Failure, Outcome};
use crate::options::Text;
use crate::rows::{BATCH_ROWS, Batches};

/// What is opened once the types of the key's columns are known.
pub(super) trait Opens: Sized + Send + Sync {
    const NOUN: &'static str;
    /// What it is opened with besides.
    type Means: Send + Sync;

    fn open(open: &Arc<Open>, name: &str, schema: PartialSchema, means: &Self::Means) -> Outcome<Self>;

    fn schema(&self) -> &PartialSchema;

    /// What is kept besides key and functions.
    fn shape(means: &Self::Means) -> Shape;
}

/// About how much an update commits at one go.
pub(super) struct Part {
    /// States that have gathered.
    pub(super) bytes: usize,
    /// Rows that are added before the states are looked at.
    pub(super) rows: usize,
}

/// What is written by batches of its own.
pub(super) trait Writes: Opens {
    /// What becomes of states that are not kept any more, where time goes on.
    type Late: Sync;

    fn part(&self) -> Part {
        Part { bytes: PENDING_BYTES, rows: usize::MAX }
    }

    /// Commits the states that have gathered, what a batch holds for other tables, and metadata.
    fn write(
        &self,
        states: Option<&mut RecordBatchStates>,
        batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
        late: &Self::Late,
    ) -> forebay::Result<u64>;
}

/// See the module.
pub(super) struct Held<G: Opens = Stored> {
    pub(super) open: Arc<Open>,
    pub(super) name: String,
    pub(super) asked: Arc<Asked>,
    pub(super) means: G::Means,
    groups: Opened<G>,
}

/// The table of the groups.
pub(super) struct Stored {
    pub(super) open: Arc<Open>,
    pub(super) aggregator: forebay::Aggregator<Arc<Composite>>,
    pub(super) schema: PartialSchema,
}

impl Opens for Stored {
    const NOUN: &'static str = "aggregator";
    type Means = Vec<Text>;

    fn open(open: &Arc<Open>, name: &str, schema: PartialSchema, options: &Vec<Text>) -> Outcome<Self> {
        let aggregator = open.with_detached(|db| {
            let made = db.aggregator(name, Arc::clone(schema.function()));
            let made = options.iter().try_fold(made, |made, (name, text)| {
                Ok::<_, Error>(forebay_settings::aggregator(name, text)?(made))
            });
            made?.open()
        })?;
        Ok(Self { open: Arc::clone(open), aggregator, schema })
    }

    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn shape(_options: &Vec<Text>) -> Shape {
        Shape::Plain
    }
}

impl Stored {
    /// The table as it is now.
    fn seen(&self) -> forebay::Result<(forebay::Snapshot, forebay::Table)> {
        let seen = self.open.with_detached(|db| {
            let snapshot = db.snapshot();
            let table = snapshot.table(self.aggregator.name())?;
            Ok((snapshot, table))
        });
        seen.map_err(of_engine)
    }
}

fn of_engine(failure: Failure) -> Error {
    match failure {
        Failure::Engine(error) => error,
        _ => Error::closed(),
    }
}

impl Writes for Stored {
    type Late = ();

    fn write(
        &self,
        states: Option<&mut RecordBatchStates>,
        mut batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
        _late: &(),
    ) -> forebay::Result<u64> {
        if let Some(states) = states {
            put_states(&self.aggregator, states, &mut batch)?;
        }
        match metadata {
            Some(metadata) => self.aggregator.commit(batch, durability, metadata),
            None => self.open.with_detached(|db| db.commit(batch, durability)).map_err(of_engine),
        }
    }
}

impl Grouped for Stored {
    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn finder(&self) -> forebay::Result<Box<Find<'_>>> {
        let (snapshot, table) = self.seen()?;
        Ok(Box::new(move |keys| snapshot.multi_get(&table, keys)))
    }

    fn batches(&self, wanted: Wanted) -> forebay::Result<Batches> {
        let (snapshot, table) = self.seen()?;
        let entries = snapshot.iter_columns(&table, BATCH_ROWS)?;
        Ok(Box::new(Made::new(entries, &self.schema, wanted, BATCH_ROWS)))
    }
}

impl<G: Opens> Held<G> {
    /// What is kept under a name, or asked for and made once the columns of rows are known.
    pub(super) fn new(open: &Arc<Open>, name: &str, given: Given, means: G::Means) -> Outcome<Self> {
        let own = given.asked.as_ref().map_or_else(Vec::new, |asked| asked.own().to_vec());
        let core = given.asked.as_ref().map(|asked| asked.core().clone());
        let functions = given.asked.as_ref().map_or_else(OwnFunctions::default, Asked::own_functions);
        let shape = G::shape(&means);
        let (told, (core, kept)) = open.with_detached(|db| {
            Ok((kept::table(db, name).transpose()?, kept::opened(db, name, core, &shape, &functions)?))
        })?;
        if kept.is_some() {
            given.check_key(G::NOUN, name, &core)?;
        }
        let asked = kept::with_own(core, &own);
        let groups = kept.map(|schema| G::open(open, name, schema, &means)).transpose()?;
        let groups = Opened::new(groups.zip(told));
        let (open, asked) = (Arc::clone(open), Arc::new(asked));
        let held = Self { open, name: name.into(), asked, means, groups };
        given.rows.map_or(Ok(()), |rows| held.begun_by(&rows))?;
        Ok(held)
    }

    /// Makes groups of rows of these columns, or holds the columns against those that there are.
    fn begun_by(&self, rows: &SchemaRef) -> Outcome<()> {
        let partial = self.asked.partial(rows)?;
        let of_rows = Arc::clone(partial.schema());
        let groups = self.begun(|| Ok(partial))?;
        groups.schema().check(&of_rows).map_err(|error| {
            let (noun, name) = (G::NOUN, &self.name);
            Failure::invalid(format!("{noun} `{name}` was made of other columns than schema= tells: {error}"))
        })
    }

    /// Nothing refuses the functions any more: they merge from now on.
    pub(super) fn join_merges(&self, py: Python<'_>) {
        self.asked.own().iter().for_each(|own| self.open.merges.join(py, &self.name, own));
    }

    /// The groups, also those that another handle has made since this one was opened, or a rollback has brought back.
    /// Where they were dropped, what they are asked says so.
    pub(super) fn found(&self) -> Outcome<Option<Arc<G>>> {
        if let Some(groups) = self.groups.known() {
            return Ok(Some(groups));
        }
        let kept = self.open.with_detached(|db| kept::load(db, &self.name, self.asked.own()))?;
        match kept {
            Some((schema, _)) => self.begun(|| Ok(schema)).map(Some),
            None => Ok(self.groups.last()),
        }
    }

    /// The groups; of new ones what they are is kept first.
    pub(super) fn begun(&self, schema: impl FnOnce() -> forebay::Result<PartialSchema>) -> Outcome<Arc<G>> {
        let told = || self.open.with_detached(|db| kept::table(db, &self.name).transpose());
        let make = || {
            let schema = schema()?;
            // Without a table of that name, or with other options, nothing is kept.
            let made = G::open(&self.open, &self.name, schema, &self.means)?;
            let (schema, shape) = (made.schema(), G::shape(&self.means));
            let (asked, own) = (self.asked.core(), self.asked.own_functions());
            self.open.with_detached(|db| kept::begin(db, &self.name, schema, asked, &shape, &own))?;
            Ok(made)
        };
        let gone = || Error::NotFound(format!("{} `{}` was dropped meanwhile", G::NOUN, self.name));
        self.groups.begin(told, make, || gone().into())
    }

    pub(super) fn of_rows(&self, schema: &SchemaRef, states: &SchemaRef) -> Outcome<Arc<G>> {
        let groups = self.begun(|| self.asked.partial(schema))?;
        groups.schema().check(states)?;
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

impl<G: Writes> Held<G> {
    /// Adds rows, in parts. Returns how many there were.
    pub(super) fn update(
        &self,
        py: Python<'_>,
        input: Box<dyn RecordBatchReader + Send>,
        durability: Durability,
        late: &G::Late,
    ) -> Outcome<u64> {
        let schema = input.schema();
        let (mut states, groups) = self.begin_rows(py, &schema)?;
        let part = groups.part();
        let rows = self.for_rows(py, input, groups.schema(), |rows| {
            for from in (0..rows.num_rows()).step_by(part.rows) {
                states.add_batch(&rows.slice(from, part.rows.min(rows.num_rows() - from)))?;
                if states.memory_bytes() >= part.bytes {
                    groups.write(Some(&mut states), Batch::new(), durability, None, late)?;
                }
            }
            Ok(())
        })?;
        py.detach(|| groups.write(Some(&mut states), Batch::new(), durability, None, late))?;
        Ok(rows)
    }

    /// Adds rows at one go, with metadata and what a batch holds for tables. Returns the number of the last record.
    pub(super) fn commit(
        &self,
        py: Python<'_>,
        input: Option<Box<dyn RecordBatchReader + Send>>,
        metadata: Option<&[u8]>,
        batch: Option<&Bound<'_, crate::batch::Batch>>,
        durability: Durability,
        late: &G::Late,
    ) -> Outcome<u64> {
        let mut gathered = None;
        if let Some(input) = input {
            let schema = input.schema();
            let (mut states, groups) = self.begin_rows(py, &schema)?;
            self.for_rows(py, input, groups.schema(), |rows| Ok(states.add_batch(rows)?))?;
            gathered = Some(states);
        }
        let commit = |all: Batch, durability| match (self.found()?, metadata) {
            (Some(groups), metadata) => {
                Ok(groups.write(gathered.as_mut(), all, durability, metadata, late)?)
            }
            (None, None) => self.open.with_detached(|db| db.commit(all, durability)),
            (None, Some(_)) => Err(Failure::invalid(format!(
                "nothing was added yet, so metadata cannot be kept with {} `{}`; give schema=",
                G::NOUN,
                self.name
            ))),
        };
        crate::batch::Batch::committed(py, batch, durability, commit)
    }

    /// What gathers the states of rows of these columns, and the groups that they go to.
    fn begin_rows(&self, py: Python<'_>, schema: &SchemaRef) -> Outcome<(RecordBatchStates, Arc<G>)> {
        let states = self.gathering(schema, COMMIT_BYTES_MAX)?;
        let groups = py.detach(|| self.of_rows(schema, states.schema().schema()))?;
        Ok((states, groups))
    }
}
