//! [`Rows`]: record batches for any consumer of Arrow's. Each consumer gets a stream of its own, from the beginning.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use forebay::Error;
use forebay_env::sync::{Arc, Mutex};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::Column;
use crate::failure::{Failure, Outcome};
use crate::home::Home;
use crate::kernel::{schema_capsule, stream_capsule};

pub(crate) use forebay_groups::{BATCH_ROWS, Batches};

/// What begins them anew.
pub(crate) type Begin = Box<dyn Fn() -> forebay::Result<Batches> + Send + Sync>;

/// Record batches of Arrow's: give them to ``pyarrow.table``, ``polars.DataFrame``, a query of DuckDB's, and so on.
///
/// Each consumer gets a stream from the beginning, as of when it asks. Batches have at most 65,536 rows, and are made
/// while they are read, without the interpreter's lock.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Rows(Home<Source>);

struct Source {
    schema: SchemaRef,
    begin: Begin,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef, begin: Begin) -> Self {
        Self(Home::new(Source { schema, begin }))
    }

    /// Rows that are there.
    pub(crate) fn of(batch: RecordBatch) -> Self {
        let schema = batch.schema();
        let begin = move || -> forebay::Result<Batches> { Ok(Box::new(std::iter::once(Ok(batch.clone())))) };
        Self::new(schema, Box::new(begin))
    }
}

#[pymethods]
impl Rows {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Outcome<Vec<String>> {
        Ok(self.0.get()?.schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Outcome<Bound<'py, PyCapsule>> {
        // The interface lets a producer pass by what is wished for.
        let _ = requested_schema;
        let source = self.0.get()?;
        let batches = py.detach(|| (source.begin)())?;
        stream(py, SchemaRef::clone(&source.schema), batches)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.get()?.schema)
    }

    /// The record batches one by one, from the beginning: each is an array of Arrow's, a structure of the columns.
    fn batches(&self, py: Python<'_>) -> Outcome<BatchIterator> {
        let source = self.0.get()?;
        Ok(BatchIterator::new(py.detach(|| (source.begin)())?))
    }

    fn __repr__(&self) -> String {
        let Ok(source) = self.0.get() else { return "<forebay.Rows of before a fork>".into() };
        let fields = source.schema.fields().iter();
        let fields: Vec<String> =
            fields.map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!("<forebay.Rows: {}>", fields.join(", "))
    }
}

/// Record batches one by one, each an array of Arrow's: a structure of the columns.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct BatchIterator(Home<Mutex<Batches>>);

impl BatchIterator {
    pub(crate) fn new(batches: Batches) -> Self {
        Self(Home::new(Mutex::new(batches)))
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<Column>> {
        let batches = self.0.get()?;
        py.check_signals()?;
        let next = py.detach(|| batches.lock().next()).transpose().map_err(Failure::from)?;
        Ok(next.map(|batch| Column(Arc::new(StructArray::from(batch)))))
    }
}

/// A capsule of record batches.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: Batches,
) -> Outcome<Bound<'py, PyCapsule>> {
    Ok(stream_capsule(py, Box::new(Reader { schema, batches: Home::new(Mutex::new(batches)) }))?)
}

/// Batches that a consumer reads, without the interpreter's lock.
struct Reader {
    schema: SchemaRef,
    batches: Home<Mutex<Batches>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Ok(batches) = self.batches.get() else {
            let told = "this stream was begun before a fork, and is the parent process's";
            return Some(Err(ArrowError::CDataInterface(told.into())));
        };
        // Who reads is no Rust, and takes neither a panic nor a text with a zero byte.
        let next = catch_unwind(AssertUnwindSafe(|| batches.lock().next()));
        let told = match next.unwrap_or_else(|_| Some(Err(Error::bug("reading a batch panicked"))))? {
            Ok(batch) => return Some(Ok(batch)),
            Err(error) => error.to_string().replace('\0', "\\0"),
        };
        Some(Err(ArrowError::ExternalError(told.into())))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
