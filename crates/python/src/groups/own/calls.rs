//! The three calls. What they return is held against what was asked for before any of it is used.

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array};
use arrow_schema::{Field, Schema};
use forebay::Error;
use forebay_aggregate::arrow::Shorten;
use forebay_env::sync::Arc;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Own;
use crate::columns::{self, Column, chunks, joined};
use crate::failure::{Failure, Outcome};
use crate::home::calling;
use crate::kernel::attached;

impl Own {
    /// An error of one of the calls.
    fn wrong(&self, call: &str, reason: impl std::fmt::Display) -> Failure {
        Failure::invalid(format!("function `{}`: {call}: {reason}", self.name))
    }

    /// Calls a method with columns, and does something with what it returns, which may be code of the caller's, too.
    fn call<T>(
        &self,
        py: Python<'_>,
        method: &str,
        columns: impl IntoIterator<Item = ArrayRef>,
        with: impl FnOnce(&Bound<'_, PyAny>) -> Outcome<T>,
    ) -> Outcome<T> {
        let columns =
            columns.into_iter().map(|column| Bound::new(py, Column(column))).collect::<PyResult<Vec<_>>>()?;
        let columns = PyTuple::new(py, columns)?;
        let object = match method {
            // Also where the engine asks this one for another handle.
            "merge" => self.merging().object(py),
            _ => self.object.clone_ref(py),
        };
        let done = calling(|| {
            let told = object.bind(py).call_method1(method, columns).inspect_err(|error| {
                let note = format!("in {method} of the function `{}`", self.name);
                // Without the note the exception is the same.
                let _ = error.value(py).call_method1("add_note", (note,));
            });
            with(&told?)
        });
        match done {
            // What it returned was refused.
            Err(Failure::Engine(error)) => Err(self.wrong(method, error)),
            done => done,
        }
    }

    fn check_count(found: usize, expected: usize) -> Outcome<()> {
        if found == expected {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "it returned {found} rows, where {expected} are expected, one for each group"
        )))
    }

    /// States that a call returns.
    fn states(
        &self,
        py: Python<'_>,
        method: &str,
        columns: [ArrayRef; 2],
        count: usize,
    ) -> Outcome<BinaryArray> {
        let told = self.call(py, method, columns, |told| {
            let told = columns::batch(py, told)?;
            Self::check_count(told.num_rows(), count)?;
            Ok(told)
        })?;
        py.detach(|| self.states.encode(&told)).map_err(|error| self.wrong(method, error))
    }

    /// The columns that it is given, of a batch.
    pub(super) fn values(&self, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        for name in &self.columns {
            let column = columns::column(batch, name)?;
            fields.push(Field::new(name, column.data_type().clone(), true));
            values.push(ArrayRef::clone(column));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), values, &options)?)
    }

    /// The states of so many groups, of which each row has one.
    pub(super) fn update(
        &self,
        py: Python<'_>,
        values: RecordBatch,
        groups: &UInt32Array,
        count: usize,
    ) -> Outcome<BinaryArray> {
        debug_assert_eq!(values.num_rows(), groups.len(), "each row has a group");
        let values: ArrayRef = Arc::new(StructArray::from(values));
        self.states(py, "update", [values, Arc::new(groups.clone())], count)
    }

    /// The same of states, of which each is one of a group.
    pub(super) fn merge(
        &self,
        py: Python<'_>,
        states: RecordBatch,
        groups: &UInt32Array,
        count: usize,
    ) -> Outcome<BinaryArray> {
        debug_assert_eq!(states.num_rows(), groups.len(), "each state has a group");
        let states: ArrayRef = Arc::new(StructArray::from(states));
        self.states(py, "merge", [states, Arc::new(groups.clone())], count)
    }

    /// What states stand for.
    pub(super) fn evaluate(&self, py: Python<'_>, states: RecordBatch) -> Outcome<ArrayRef> {
        let count = states.num_rows();
        let states: ArrayRef = Arc::new(StructArray::from(states));
        let answers = self.call(py, "evaluate", [states], |told| {
            if !columns::is_arrow(told)? {
                let kind = told.get_type().name()?;
                return Err(Failure::invalid(format!(
                    "it returned {kind}, where an array of Arrow's is expected"
                )));
            }
            let answers = joined(&chunks(told)?)?;
            Self::check_count(answers.len(), count)?;
            Ok(answers)
        })?;
        if answers.data_type() == self.answer() {
            return Ok(answers);
        }
        // Texts and lists may be laid out in another way.
        let field = Field::new("answer", answers.data_type().clone(), true);
        let answers = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![answers])?;
        let encoded = self.answers.encode(&answers).map_err(|error| self.wrong("evaluate", error))?;
        let decoded = self.answers.decode(&encoded.iter().flatten().collect::<Vec<_>>())?;
        Ok(ArrayRef::clone(decoded.column(0)))
    }

    /// States as columns again.
    pub(super) fn decoded(&self, states: &[&[u8]]) -> Result<RecordBatch, Error> {
        self.states.decode(states)
    }

    fn shortened(&self, py: Python<'_>, states: &[&[u8]]) -> Outcome<Vec<u8>> {
        let groups = UInt32Array::from(vec![0; states.len()]);
        let merged = self.merge(py, self.decoded(states)?, &groups, 1)?;
        debug_assert_eq!(merged.len(), 1, "one group has one state");
        Ok(merged.value(0).to_vec())
    }
}

impl Shorten for Own {
    fn shorten(&self, states: &[&[u8]]) -> Option<Vec<u8>> {
        // After a failure nobody is asked again before somebody was told.
        let merging = self.merging();
        if merging.is_failed() {
            return None;
        }
        // There is no interpreter any more where the process ends. All of it is amid the engine, not only the call: Python
        // may run finalizers wherever it makes an object.
        let attempt = |py: Python<'_>| {
            let error = match self.shortened(py, states) {
                Ok(state) => return Some(state),
                Err(failure) => PyErr::from(failure),
            };
            match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // It is not the function's, and comes again where somebody is told.
                true => {
                    let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
                }
                false => merging.fail(error),
            }
            None
        };
        calling(|| attached(attempt)).flatten()
    }
}
