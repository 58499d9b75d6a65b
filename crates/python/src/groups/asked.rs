//! [`Asked`]: by what rows are grouped, and the functions with the names that their answers are to have.

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use forebay::{Error, Result};
use forebay_aggregate::arrow::PartialSchema;
use forebay_aggregate::names::split_words;
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::failure::{Failure, Outcome};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(super) keys: Vec<String>,
    /// Each name, and the place of its function.
    pub(super) names: Vec<(String, usize)>,
    /// Each once: several names may stand for one.
    pub(super) functions: Vec<String>,
}

impl Asked {
    /// Functions such as `sum:amount`, under their names.
    pub(super) fn new(keys: Vec<String>, named: Vec<(String, String)>) -> Result<Self> {
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
        Ok(Self { keys, names, functions })
    }

    /// What Python gives: a name or several, and a dictionary.
    pub(super) fn of(key: Option<&Bound<'_, PyAny>>, aggs: &Bound<'_, PyDict>) -> Outcome<Self> {
        let keys = match key {
            None => Vec::new(),
            Some(one) if one.is_instance_of::<PyString>() => vec![one.extract()?],
            Some(several) => several.extract()?,
        };
        let named = aggs
            .iter()
            .map(|(name, function)| Ok::<(String, String), PyErr>((name.extract()?, function.extract()?)));
        let named = named.collect::<PyResult<Vec<_>>>().map_err(|_| {
            Failure::type_error("aggs is a dictionary of names and functions, as in {\"n\": forebay.count()}")
        })?;
        Ok(Self::new(keys, named)?)
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

    /// What answers look like: the columns of the key, and one for each name.
    pub(super) fn answers(&self, schema: &PartialSchema) -> SchemaRef {
        let fields = schema.answers().fields();
        let keys = fields.iter().take(self.keys.len()).cloned();
        let named = self.names.iter().map(|(name, place)| {
            Arc::new(Field::new(name, fields[self.keys.len() + place].data_type().clone(), true))
        });
        Arc::new(Schema::new(keys.chain(named).collect::<Vec<_>>()))
    }

    /// A batch of answers, by function, as one by name.
    pub(super) fn named_batch(&self, schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.len();
        let columns = (0..keys).chain(self.names.iter().map(|(_, place)| keys + place));
        let columns = columns.map(|at| Arc::clone(batch.column(at))).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)
            .map_err(|error| Error::Bug(format!("answers make no record batch: {error}")))
    }
}
