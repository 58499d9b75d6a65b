//! [`Asked`]: by what rows are grouped, and the functions with the names that their answers are to have.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use forebay::{Error, Result};
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema};
use forebay_aggregate::names::split_words;
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::own::{self, Own};
use crate::failure::{Failure, Outcome};

/// See the module.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(super) keys: Vec<String>,
    /// Each name, and the place of its function.
    pub(super) names: Vec<(String, usize)>,
    /// Each once: several names may stand for one.
    pub(super) functions: Vec<String>,
    /// Those that are written in Python.
    own: Vec<Arc<Own>>,
}

/// The same key, and the same functions under the same names.
impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        (&self.keys, &self.names, &self.functions) == (&other.keys, &other.names, &other.functions)
    }
}

impl Asked {
    /// Functions such as `sum:amount`, under their names, and those among them that are written in Python.
    pub(super) fn new(keys: Vec<String>, named: Vec<(String, String)>, own: Vec<Arc<Own>>) -> Result<Self> {
        if named.is_empty() {
            return Err(Error::invalid("aggs has no function; forebay.count() is the simplest"));
        }
        let (mut names, mut functions) = (Vec::new(), Vec::<String>::new());
        for (name, function) in named {
            if keys.contains(&name) {
                return Err(Error::invalid(format!(
                    "two columns would be called `{name}`: one of key and one of aggs"
                )));
            }
            let function = function.trim().to_string();
            if split_words(&function, ',').len() != 1 {
                return Err(Error::invalid(format!(
                    "`{function}` is more than one function; give each its name"
                )));
            }
            let place = functions.iter().position(|known| *known == function).unwrap_or_else(|| {
                functions.push(function);
                functions.len() - 1
            });
            names.push((name, place));
        }
        debug_assert!(functions.len() <= names.len(), "each function has a name");
        own::functions(&own).check(functions.iter().map(String::as_str))?;
        Ok(Self { keys, names, functions, own })
    }

    /// What Python gives: a name or several, and a dictionary.
    pub(super) fn of(key: Option<&Bound<'_, PyAny>>, aggs: &Bound<'_, PyDict>) -> Outcome<Self> {
        let keys = key.map_or_else(|| Ok(Vec::new()), keys_of)?;
        let (mut named, mut own) = (Vec::new(), Vec::<Arc<Own>>::new());
        for (name, function) in aggs {
            let name = name.extract::<String>().map_err(|_| not_functions())?;
            if let Ok(text) = function.extract::<String>() {
                named.push((name, text));
                continue;
            }
            if !function.hasattr("update")? && !function.hasattr("evaluate")? {
                return Err(not_functions());
            }
            let one = Own::of(&function)?;
            named.push((name, one.text().to_string()));
            match own.iter().find(|known| known.text() == one.text()) {
                Some(known) if known.is_same(&one) => {}
                Some(_) => {
                    let told = format!("two functions are called `{}`; give each its name", one.text());
                    return Err(Failure::invalid(told));
                }
                None => own.push(one),
            }
        }
        Ok(Self::new(keys, named, own)?)
    }

    /// The same functions of groups by one more column, before the others.
    pub(super) fn behind(self, column: &str) -> Result<Self> {
        if self.keys.iter().any(|key| key == column) {
            return Err(Error::invalid(format!("two columns would be called `{column}`: one of key is")));
        }
        let keys = std::iter::once(column.to_string()).chain(self.keys).collect();
        let named = self.names.into_iter().map(|(name, place)| (name, self.functions[place].clone()));
        Self::new(keys, named.collect(), self.own)
    }

    /// The same functions of groups by fewer columns.
    pub(super) fn coarser(&self, keys: Vec<String>) -> Result<Self> {
        for (at, key) in keys.iter().enumerate() {
            if !self.keys.contains(key) || keys[..at].contains(key) {
                return Err(Error::invalid(format!(
                    "groups are by {:?}; name some of these columns, each once, and not `{key}`",
                    self.keys
                )));
            }
        }
        Ok(Self { keys, ..self.clone() })
    }

    /// The functions that are written in Python.
    pub(super) fn own(&self) -> &[Arc<Own>] {
        &self.own
    }

    pub(super) fn own_functions(&self) -> OwnFunctions {
        own::functions(&self.own)
    }

    /// Whether there are functions besides these.
    pub(super) fn has_built_in(&self) -> bool {
        self.functions.len() > self.own.len()
    }

    /// The function at this place, if it is written in Python.
    pub(super) fn own_at(&self, place: usize) -> Option<&Arc<Own>> {
        self.own.iter().find(|own| own.text() == self.functions[place])
    }

    /// Raises what a function raised on a thread that had nobody to tell.
    pub(super) fn raise_failed(&self) -> Outcome<()> {
        self.own.iter().try_for_each(|own| own.raise_failed())
    }

    /// The columns of rows, and behind them those of states of functions in Python.
    pub(super) fn with_own_columns(&self, rows: &SchemaRef) -> SchemaRef {
        if self.own.is_empty() {
            return SchemaRef::clone(rows);
        }
        let own = self.own.iter().map(|own| Arc::new(own.column()));
        Arc::new(Schema::new(rows.fields().iter().cloned().chain(own).collect::<Vec<_>>()))
    }

    /// What groups of rows of this schema are.
    pub(super) fn partial(&self, rows: &SchemaRef) -> Result<PartialSchema> {
        self.own.iter().try_for_each(|own| own.check_columns(rows))?;
        PartialSchema::with_own(&self.with_own_columns(rows), &self.keys, &self.list(), &self.own_functions())
    }

    /// The functions as one text.
    pub(super) fn list(&self) -> String {
        self.functions.join(",")
    }

    /// Each name with its function.
    pub(super) fn named(&self) -> Vec<(&str, &str)> {
        self.names.iter().map(|(name, place)| (&name[..], &self.functions[*place][..])).collect()
    }

    /// An error unless these are the groups of a schema of states.
    pub(super) fn agrees(&self, schema: &PartialSchema) -> Result<()> {
        let [keys, functions] = [schema.keys(), schema.states()]
            .map(|fields| fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>());
        if keys == self.keys && functions == self.functions {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "these are groups by {keys:?} with {functions:?}, where those by {:?} with {:?} are asked for",
            self.keys, self.functions
        )))
    }

    /// What groups by these columns are, of the states of groups by more.
    pub(super) fn partial_of_states(&self, finer: &PartialSchema) -> Result<PartialSchema> {
        let keys = self.keys.iter().filter_map(|key| finer.keys().iter().find(|field| field.name() == key));
        let fields = keys.chain(finer.states()).cloned().collect::<Vec<_>>();
        PartialSchema::of_own(&Schema::new(fields), &self.own_functions())
    }

    /// What answers look like: the columns of the key, and one for each name.
    pub(super) fn answers(&self, schema: &PartialSchema) -> SchemaRef {
        let fields = schema.answers().fields();
        let keys = fields.iter().take(self.keys.len()).cloned();
        let named = self.names.iter().map(|(name, place)| {
            let kind = match self.own_at(*place) {
                Some(own) => own.answer(),
                None => fields[self.keys.len() + place].data_type(),
            };
            Arc::new(Field::new(name, kind.clone(), true))
        });
        Arc::new(Schema::new(keys.chain(named).collect::<Vec<_>>()))
    }

    /// The answers of a function in a batch of the engine's answers.
    pub(super) fn answered(&self, place: usize, batch: &RecordBatch) -> Outcome<ArrayRef> {
        let column = batch.column(self.keys.len() + place);
        match self.own_at(place) {
            Some(own) => own.answered(column),
            None => Ok(ArrayRef::clone(column)),
        }
    }

    /// A batch of answers, by function, as one by name.
    pub(super) fn named_batch(&self, schema: &SchemaRef, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let mut columns = batch.columns().iter().take(self.keys.len()).cloned().collect::<Vec<_>>();
        let answers = (0..self.functions.len()).map(|place| self.answered(place, batch));
        let answers = answers.collect::<Outcome<Vec<_>>>()?;
        columns.extend(self.names.iter().map(|(_, place)| ArrayRef::clone(&answers[*place])));
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let made = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options);
        Ok(made.map_err(|error| Error::Bug(format!("answers make no record batch: {error}")))?)
    }
}

/// The columns of a key: a name or several.
pub(super) fn keys_of(key: &Bound<'_, PyAny>) -> Outcome<Vec<String>> {
    Ok(if key.is_instance_of::<PyString>() { vec![key.extract()?] } else { key.extract()? })
}

fn not_functions() -> Failure {
    Failure::type_error(
        "aggs is a dictionary of names and functions, as in {\"n\": forebay.count()}; a function is a text, or a \
         forebay.UserAggregate",
    )
}
