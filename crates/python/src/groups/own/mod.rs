//! [`Own`]: an aggregation function that is written in Python. It works on columns, many groups at a time.
//!
//! 1. Of up to a million rows the keys are numbered ([`rows`]), and one call of `update` makes a state for each group.
//! 2. States are bytes then, in lists that the engine puts together as it likes: `forebay_aggregate::arrow::StateList`.
//! 3. Who reads has the lists of some ten thousand groups merged by one call of `merge`, and answers made by one of
//!    `evaluate` ([`answers`]).
//! 4. In between a list that became long is merged alone, on whatever thread that is. The engine may hold locks there, so
//!    no call into Forebay is let in from within the three calls (`home::calling`), and whatever waits for the engine, or
//!    drops a part of it, is detached.
//! 5. What fails in 4 loses nothing: the list stays. The next call on the aggregator tells ([`merging`]).

mod answers;
mod calls;
mod laws;
mod merging;
mod object;
mod rows;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use forebay::Error;
use forebay_aggregate::arrow::{OwnFunctions, Shorten, StateList, StateRows};
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::sync::{Arc, Mutex};
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};

use merging::Merging;

pub(super) use answers::value_at;
pub(crate) use merging::Merges;
pub(super) use rows::with_states;

/// See the module.
pub(crate) struct Own {
    object: Py<PyAny>,
    /// The text that stands for it: `own:`, name, version, and columns.
    text: String,
    name: String,
    version: u16,
    columns: Vec<String>,
    states: Arc<StateRows>,
    /// Of one column.
    answers: StateRows,
    /// How far answers may differ that are to be the same; nothing where they are not compared.
    tolerance: Option<f64>,
    is_checked: AtomicBool,
    merging: Mutex<Arc<Merging>>,
}

impl Own {
    /// Checks its laws over these rows, unless they were found to hold before.
    fn check_once(&self, py: Python<'_>, values: &RecordBatch) -> Outcome<()> {
        if !self.is_checked.load(Ordering::Acquire) {
            laws::check(py, self, values)?;
            self.is_checked.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The type of what it answers.
    pub(super) fn answer(&self) -> &DataType {
        self.answers.schema().field(0).data_type()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.object.is(&other.object)
    }

    /// The column of its states, among those of rows.
    pub(super) fn column(&self) -> Field {
        Field::new(&self.text, DataType::Binary, true)
    }

    /// An error unless rows have the columns that it is given.
    pub(super) fn check_columns(&self, rows: &Schema) -> Result<(), Error> {
        let Some(missing) = self.columns.iter().find(|name| rows.column_with_name(name).is_none()) else {
            return Ok(());
        };
        let names: Vec<&str> = rows.fields().iter().map(|field| &field.name()[..]).collect();
        let told = format!("there is no column `{missing}`; there are: {}", names.join(", "));
        Err(Error::invalid(format!("function `{}`: {told}", self.name)))
    }

    /// Raises what a merge raised on a thread that had nobody to tell.
    pub(super) fn raise_failed(&self) -> Outcome<()> {
        self.merging().take_failed().map_or(Ok(()), |error| Err(Failure::Python(error)))
    }

    fn merging(&self) -> Arc<Merging> {
        Arc::clone(&self.merging.lock())
    }
}

/// These functions, as the engine's.
pub(super) fn functions(own: &[Arc<Own>]) -> OwnFunctions {
    own.iter().fold(OwnFunctions::default(), |all, one| {
        let function = Arc::clone(one);
        all.with(&one.text, move |place| {
            let shorten: Arc<dyn Shorten> = Arc::clone(&function) as _;
            Box::new(StateList::new(&function.name, function.version, &function.states, place, &shorten))
        })
    })
}
