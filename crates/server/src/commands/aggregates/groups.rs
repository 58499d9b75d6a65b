//! [`Groups`]: an aggregator that is open, and [`Aggregates`], all of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use forebay::{Database, Error};
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema, RecordBatchStates};
use forebay_env::sync::{Mutex, RwLock};
use forebay_groups::{Asked, Late, Shape, Windowed, kept, windowed_schema};

use super::declared::{self, Column, Declared, schema_of};
use super::kinds::key_text;
use super::store::{Adding, Store};
use crate::commands::Refusal;

/// What the states of one command's rows may take in memory.
const STATES_BYTES_MAX: usize = 256 << 20;

/// See the module.
pub(super) struct Groups {
    pub(super) name: String,
    pub(super) asked: Asked,
    pub(super) schema: PartialSchema,
    pub(super) store: Store,
    /// Of rows that come as arguments.
    columns: Option<(Vec<Column>, SchemaRef)>,
    /// What rows of these columns were made of last: making it anew takes longer than a row.
    spare: Mutex<Option<Gathering>>,
}

impl Groups {
    fn open(
        database: &Database,
        name: &str,
        (schema, asked): (PartialSchema, Asked),
        shape: &Shape,
        columns: Option<Vec<Column>>,
        existing: bool,
    ) -> Result<Self, Refusal> {
        let store = Store::open(database, name, &schema, shape, existing)?;
        let columns = columns.map(|columns| {
            let schema = Arc::new(schema_of(&columns));
            (columns, schema)
        });
        Ok(Self { name: name.into(), asked, schema, store, columns, spare: Mutex::default() })
    }

    /// The columns of rows that come as arguments.
    pub(super) fn columns(&self) -> Result<&[Column], Refusal> {
        self.declared().map(|(columns, _)| &columns[..])
    }

    fn declared(&self) -> Result<&(Vec<Column>, SchemaRef), Refusal> {
        self.columns.as_ref().ok_or_else(|| {
            format!("ERR `{}` was not made by AGG.CREATE, and takes rows by AGG.LOAD alone", self.name).into()
        })
    }

    /// Rows of arguments, one behind the other.
    pub(super) fn rows(&self, arguments: &[&[u8]]) -> Result<RecordBatch, Refusal> {
        let (columns, schema) = self.declared()?;
        let width = columns.len();
        let count = arguments.len().checked_div(width).unwrap_or(1);
        if count * width != arguments.len() || count == 0 {
            return Err(self.wrong_row(columns));
        }
        if !fit_columns(arguments.iter().map(|value| value.len())) {
            return Err("ERR the rows of one command have at most 2 GiB; give fewer at a time".into());
        }
        let array = |(at, column): (usize, &Column)| {
            let values = arguments[at..].iter().step_by(width).copied();
            column.kind.array(values).map_err(|row| {
                let value = arguments[row * width + at];
                let shown = String::from_utf8_lossy(&value[..value.len().min(64)]).into_owned();
                let (name, kind) = (&column.name, column.kind);
                Refusal::from(format!("ERR row {}: column `{name}`: `{shown}` is no {kind}", row + 1))
            })
        };
        let arrays = columns.iter().enumerate().map(array).collect::<Result<_, Refusal>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
        rows.map_err(|error| Error::bug(format!("rows make no record batch: {error}")).into())
    }

    fn wrong_row(&self, columns: &[Column]) -> Refusal {
        let names: Vec<&str> = columns.iter().map(|column| &column.name[..]).collect();
        format!("ERR a row of `{}` has a value for each of: {}", self.name, names.join(", ")).into()
    }

    /// What rows of these columns are made of before their states are gathered.
    pub(super) fn gathering(&self, rows: &SchemaRef) -> Result<Gathering, Refusal> {
        let windowed = match &self.store {
            Store::Plain(_) => None,
            Store::Windows(windows, shape) => {
                let kind = self.schema.keys()[0].data_type().clone();
                let (schema, times) = windowed_schema(rows, &shape.time, Some(kind))?;
                let (period, kept_from) = (shape.period, windows.kept_from()?);
                Some(Windowed { schema, times, period, kept_from, late: Late::Refuse })
            }
        };
        let rows = windowed.as_ref().map_or(rows, |windowed| &windowed.schema);
        let partial = self.asked.partial(rows, &OwnFunctions::default())?;
        self.schema.check(partial.schema())?;
        let states = RecordBatchStates::of_schema(partial, rows, STATES_BYTES_MAX)?;
        Ok(Gathering { windowed, states })
    }

    /// The same of rows that come as arguments; [`keep`](Self::keep) takes it back, once its states are gone.
    pub(super) fn gathering_declared(&self) -> Result<Gathering, Refusal> {
        let spare = self.spare.lock().take();
        let Some(mut gathering) = spare else { return self.gathering(&self.declared()?.1) };
        if let (Store::Windows(windows, _), Some(windowed)) = (&self.store, &mut gathering.windowed) {
            windowed.kept_from = windows.kept_from()?;
        }
        Ok(gathering)
    }

    pub(super) fn keep(&self, gathering: Gathering) {
        *self.spare.lock() = Some(gathering);
    }

    /// The key of values, one for each of its columns.
    pub(super) fn key(&self, values: &[&[u8]]) -> Result<Vec<u8>, Refusal> {
        let keys = self.schema.keys();
        if values.len() != keys.len() {
            let told = format!(
                "ERR a key of `{}` has a value for each of: {}",
                self.name,
                self.asked.keys.join(", ")
            );
            return Err(told.into());
        }
        let texts = values.iter().zip(keys).map(|(value, column)| key_text(value, column));
        let texts = texts.collect::<forebay::Result<Vec<_>>>()?;
        let texts: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
        Ok(self.schema.key_of(&texts)?)
    }
}

/// Rows that become states.
pub(super) struct Gathering {
    windowed: Option<Windowed>,
    pub(super) states: RecordBatchStates,
}

impl Gathering {
    pub(super) fn add(&mut self, rows: &RecordBatch) -> forebay::Result<()> {
        match &self.windowed {
            None => self.states.add_batch(rows),
            Some(windowed) => self.states.add_batch(&windowed.rows(rows)?.0),
        }
    }

    /// Gives the states on.
    pub(super) fn give(&mut self, adding: &mut Adding<'_>) -> forebay::Result<()> {
        self.states.take(&mut |key, state| adding.add_of_few_windows(key, state))
    }
}

/// Whether a column of Arrow's may have so many bytes, as it might have all of them.
fn fit_columns(lengths: impl Iterator<Item = usize>) -> bool {
    lengths.sum::<usize>() <= i32::MAX as usize
}

type Open = HashMap<Vec<u8>, Arc<Groups>>;

/// Those that were asked for, by name.
///
/// **Invariant:** whoever opens, makes or drops one has the map for itself from the look at what the database keeps on, so
/// that the map has none that was dropped.
#[derive(Default)]
pub(crate) struct Aggregates(RwLock<Open>);

fn missing(name: &[u8]) -> Refusal {
    let shown = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
    format!("ERR there is no aggregator `{shown}`; AGG.LIST names those there are, and AGG.CREATE makes one")
        .into()
}

/// The aggregator of a name, as the database has it, unless it has none.
fn find_in(open: &mut Open, database: &Database, name: &[u8]) -> Result<Option<Arc<Groups>>, Refusal> {
    if let Some(groups) = open.get(name) {
        return Ok(Some(Arc::clone(groups)));
    }
    let Ok(text) = std::str::from_utf8(name) else { return Ok(None) };
    let Some(kept) = kept::load(database, text, &OwnFunctions::default())? else { return Ok(None) };
    let Some(shape) = kept::shape(database, text)? else { return Ok(None) };
    let columns = declared::columns(database, text)?;
    let groups = match Groups::open(database, text, kept, &shape, columns, true) {
        // A crash came amid its end.
        Err(Refusal(_, Some(error))) if error.is_not_found() => return Ok(None),
        opened => Arc::new(opened?),
    };
    open.insert(name.to_vec(), Arc::clone(&groups));
    Ok(Some(groups))
}

impl Aggregates {
    /// The aggregator of a name, as the database has it.
    pub(super) fn find(&self, database: &Database, name: &[u8]) -> Result<Arc<Groups>, Refusal> {
        if let Some(groups) = self.0.read().get(name) {
            return Ok(Arc::clone(groups));
        }
        find_in(&mut self.0.write(), database, name)?.ok_or_else(|| missing(name))
    }

    /// Makes an aggregator. One that is there already has to be the same.
    pub(super) fn create(
        &self,
        database: &Database,
        name: &str,
        declared: &Declared,
    ) -> Result<Arc<Groups>, Refusal> {
        let mut open = self.0.write();
        if let Some(groups) = find_in(&mut open, database, name.as_bytes())? {
            let is_same = groups.asked == declared.asked
                && groups.columns()? == declared.columns
                && groups.store.shape() == declared.shape();
            return match is_same {
                true => Ok(groups),
                false => Err(format!("ERR `{name}` is there already, with others than these").into()),
            };
        }
        let own = OwnFunctions::default();
        let schema = declared.partial()?;
        let shape = declared.shape();
        let kept = (schema.clone(), declared.asked.clone());
        // Without a table of that name nothing is kept.
        let groups = Groups::open(database, name, kept, &shape, Some(declared.columns.clone()), false)?;
        declared.keep(database, name)?;
        kept::begin(database, name, &schema, &declared.asked, &shape, &own)?;
        let groups = Arc::new(groups);
        open.insert(name.as_bytes().to_vec(), Arc::clone(&groups));
        Ok(groups)
    }

    /// Drops an aggregator. Nobody adds to one meanwhile.
    pub(super) fn forget(&self, database: &Database, name: &[u8]) -> Result<(), Refusal> {
        let mut open = self.0.write();
        let Some(groups) = find_in(&mut open, database, name)? else {
            // A crash may have left what is kept of it.
            let left = std::str::from_utf8(name).ok().filter(|name| kept::table(database, name).is_some());
            return Ok(kept::forget(database, left.ok_or_else(|| missing(name))?)?);
        };
        open.remove(name);
        match groups.store {
            Store::Plain(_) => database.drop_table(&groups.name)?,
            Store::Windows(..) => database.drop_windows(&groups.name)?,
        }
        Ok(kept::forget(database, &groups.name)?)
    }

    /// Makes the database that of another moment, in which all of them are looked for anew.
    pub(crate) fn renew(&self, roll_back: impl FnOnce() -> forebay::Result<()>) -> forebay::Result<()> {
        let mut open = self.0.write();
        open.clear();
        roll_back()
    }
}

/// The names of all aggregators, ascending.
pub(super) fn names(database: &Database) -> Vec<String> {
    let tables = database.tables();
    let named = tables.iter().filter_map(|(table, _)| table.strip_suffix(kept::ENDING));
    let mut names: Vec<String> = named.map(str::to_string).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_at_most_two_gibibytes() {
        assert!(fit_columns([1 << 30, (1 << 30) - 1].into_iter()));
        assert!(!fit_columns([1 << 30, 1 << 30].into_iter()));
    }
}
