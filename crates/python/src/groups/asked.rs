//! [`Asked`]: by what rows are grouped, and the functions with the names that their answers are to have.

use std::ops::Deref;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use forebay::Result;
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema};
use forebay_env::sync::Arc;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::own::{self, Own};
use crate::failure::{Failure, Outcome};

/// See the module.
#[derive(Clone)]
pub(crate) struct Asked {
    core: forebay_groups::Asked,
    /// Those that are written in Python.
    own: Vec<Arc<Own>>,
}

/// The same key, and the same functions under the same names.
impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

impl Deref for Asked {
    type Target = forebay_groups::Asked;

    fn deref(&self) -> &forebay_groups::Asked {
        &self.core
    }
}

impl Asked {
    /// What is known of a key, functions and names, with those functions that are written in Python.
    pub(super) fn of_core(core: forebay_groups::Asked, own: Vec<Arc<Own>>) -> Self {
        Self { core, own }
    }

    /// What there is besides the functions that are written in Python.
    pub(super) fn core(&self) -> &forebay_groups::Asked {
        &self.core
    }

    /// What Python gives: a name or several, and a dictionary.
    pub(super) fn of(key: Option<&Bound<'_, PyAny>>, aggs: &Bound<'_, PyDict>) -> Outcome<Self> {
        let keys = match key {
            None => Vec::new(),
            Some(one) if one.is_instance_of::<PyString>() => vec![one.extract()?],
            Some(several) => several.extract()?,
        };
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
        let core = forebay_groups::Asked::new(keys, named, &own::functions(&own))?;
        Ok(Self { core, own })
    }

    /// The same functions of groups by one more column, before the others.
    pub(super) fn behind(self, column: &str) -> Result<Self> {
        Ok(Self { core: self.core.behind(column)?, own: self.own })
    }

    /// The same functions of groups by fewer columns.
    pub(super) fn coarser(&self, keys: Vec<String>) -> Result<Self> {
        Ok(Self { core: self.core.coarser(keys)?, own: self.own.clone() })
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
        self.core.partial(&self.with_own_columns(rows), &self.own_functions())
    }

    /// What groups by these columns are, of the states of groups by more.
    pub(super) fn partial_of_states(&self, finer: &PartialSchema) -> Result<PartialSchema> {
        self.core.partial_of_states(finer, &self.own_functions())
    }

    /// What answers look like: the columns of the key, and one for each name.
    pub(super) fn answers(&self, schema: &PartialSchema) -> SchemaRef {
        self.core.answers(schema, |place| self.own_at(place).map(|own| own.answer().clone()))
    }

    /// The answers of a function in a batch of the engine's answers.
    pub(super) fn answered(&self, place: usize, batch: &RecordBatch) -> Outcome<ArrayRef> {
        self.of_column(place, batch.column(self.keys.len() + place))
    }

    fn of_column(&self, place: usize, column: &ArrayRef) -> Outcome<ArrayRef> {
        match self.own_at(place) {
            Some(own) => own.answered(column),
            None => Ok(ArrayRef::clone(column)),
        }
    }

    /// A batch of answers, by function, as one by name.
    pub(super) fn named_batch(&self, schema: &SchemaRef, batch: &RecordBatch) -> Outcome<RecordBatch> {
        self.core.named_batch(schema, batch, |place, column| self.of_column(place, column))
    }
}

fn not_functions() -> Failure {
    Failure::type_error(
        "aggs is a dictionary of names and functions, as in {\"n\": forebay.count()}; a function is a text, or a \
         forebay.UserAggregate",
    )
}
