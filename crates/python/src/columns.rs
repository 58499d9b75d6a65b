//! Arrow's arrays in and out, and the record batches of any object that has such.

use std::panic::resume_unwind;
use std::thread;

use arrow_array::ffi_stream::{ArrayStreamReader, RecordBatchStreamReader};
use arrow_array::{
    Array, ArrayReader, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay_env::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::{Failure, Outcome};
use crate::kernel::{array_capsules, array_of, field_capsule, schema_of, stream_of};
use crate::progress::Progress;

/// Threads that share record batches are given so many rows at a time, and so many parts before signals are looked for.
const PART_ROWS: usize = 64 << 10;
const PARTS_A_ROUND: usize = 16;

/// Whether an object gives Arrow's data.
pub(crate) fn is_arrow(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(data.hasattr("__arrow_c_array__")? || data.hasattr("__arrow_c_stream__")?)
}

/// The chunks of a column: an array, a chunked one, a series.
pub(crate) fn chunks(data: &Bound<'_, PyAny>) -> Outcome<Vec<ArrayRef>> {
    if data.hasattr("__arrow_c_array__")? {
        return Ok(vec![array_of(data)?.0]);
    }
    let mut reader = ArrayStreamReader::try_new(stream_of(data)?)?;
    let kind = reader.field().data_type().clone();
    let mut chunks = data.py().detach(|| reader.by_ref().collect::<Result<Vec<_>, _>>())?;
    if chunks.is_empty() {
        chunks.push(arrow_array::new_empty_array(&kind));
    }
    Ok(chunks)
}

/// One array of all chunks.
pub(crate) fn joined(chunks: &[ArrayRef]) -> Outcome<ArrayRef> {
    match chunks {
        [one] => Ok(ArrayRef::clone(one)),
        several => {
            let several: Vec<&dyn Array> = several.iter().map(|chunk| &**chunk).collect();
            Ok(arrow_select::concat::concat(&several)?)
        }
    }
}

/// The record batches of any object that has a stream of such, or is one.
pub(crate) fn batches(data: &Bound<'_, PyAny>) -> Outcome<Box<dyn RecordBatchReader + Send>> {
    if data.hasattr("__arrow_c_stream__")? {
        return Ok(Box::new(RecordBatchStreamReader::try_new(stream_of(data)?)?));
    }
    if !data.hasattr("__arrow_c_array__")? {
        let kind = data.get_type().name()?;
        return Err(Failure::type_error(format!(
            "{kind} has neither __arrow_c_stream__ nor __arrow_c_array__; give a table or record batch of Arrow, such as \
             pyarrow.table(..), polars.DataFrame(..), or a relation of DuckDB"
        )));
    }
    let (array, schema) = array_of(data)?;
    let rows = array.as_any().downcast_ref::<StructArray>().filter(|rows| rows.null_count() == 0);
    let Some(rows) = rows else {
        return Err(Failure::type_error(format!(
            "an array of {} is no record batch; give one, or a table",
            array.data_type()
        )));
    };
    let schema = SchemaRef::new(Schema::try_from(&schema)?);
    let batch = RecordBatch::try_new_with_options(
        SchemaRef::clone(&schema),
        rows.columns().to_vec(),
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len())),
    )?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// All rows of an object, as one batch.
pub(crate) fn batch(py: Python<'_>, data: &Bound<'_, PyAny>) -> Outcome<RecordBatch> {
    let mut input = batches(data)?;
    let schema = input.schema();
    let parts = py.detach(|| input.by_ref().collect::<Result<Vec<_>, _>>())?;
    match &parts[..] {
        [one] => Ok(one.clone()),
        several => Ok(arrow_select::concat::concat_batches(&schema, several)?),
    }
}

/// The schema that an object has, or its data have.
pub(crate) fn schema(data: &Bound<'_, PyAny>) -> Outcome<SchemaRef> {
    if data.hasattr("__arrow_c_schema__")? { schema_of(data) } else { Ok(batches(data)?.schema()) }
}

/// Does something with each record batch of an object. In between Python's signals are looked for, so that Ctrl+C ends a
/// long stream. Returns how many rows there were.
pub(crate) fn for_each(
    py: Python<'_>,
    mut input: Box<dyn RecordBatchReader + Send>,
    mut with: impl FnMut(&RecordBatch) -> Outcome<()> + Send,
) -> Outcome<u64> {
    let (mut rows, progress) = (0, Progress::begin(py, "rows", "row", None));
    loop {
        let (next, with) = (&mut input, &mut with);
        let seen = py.detach(move || {
            let Some(batch) = next.next().transpose()? else { return Ok::<_, Failure>(None) };
            with(&batch)?;
            Ok(Some(batch.num_rows() as u64))
        })?;
        match seen {
            Some(more) => {
                progress.add(more);
                rows += more;
            }
            None => return Ok(rows),
        }
        py.check_signals()?;
    }
}

/// The same by several threads, each of which is given parts of batches, and how many rows stand before them.
pub(crate) fn share(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
    threads: usize,
    with: impl Fn(&RecordBatch, usize) -> Outcome<()> + Sync,
) -> Outcome<u64> {
    let progress = Progress::begin(py, "rows", "row", None);
    let feed = Mutex::new(Feed { reader, batch: None, parts_left: 0, rows: 0, is_over: false });
    let work = || -> Outcome<()> {
        loop {
            let next = feed.lock().next();
            let Some((part, before)) = next? else { return Ok(()) };
            if let Err(failure) = with(&part, before) {
                feed.lock().is_over = true;
                return Err(failure);
            }
            progress.add(part.num_rows() as u64);
        }
    };
    loop {
        py.detach(|| {
            feed.lock().parts_left = threads * PARTS_A_ROUND;
            thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                others.into_iter().fold(work(), |ended, other| {
                    let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                    ended.and(other)
                })
            })
        })?;
        py.check_signals()?;
        let feed = feed.lock();
        if feed.is_over {
            return Ok(feed.rows);
        }
    }
}

/// Record batches in parts, some of them a round.
struct Feed {
    reader: Box<dyn RecordBatchReader + Send>,
    /// The batch here, and how many of its rows were given.
    batch: Option<(RecordBatch, usize)>,
    parts_left: usize,
    rows: u64,
    is_over: bool,
}

impl Feed {
    fn next(&mut self) -> Outcome<Option<(RecordBatch, usize)>> {
        while !self.is_over && self.parts_left > 0 {
            if let Some((batch, given)) = &mut self.batch
                && *given < batch.num_rows()
            {
                let (before, rows) = (*given, PART_ROWS.min(batch.num_rows() - *given));
                *given += rows;
                self.rows += rows as u64;
                self.parts_left -= 1;
                return Ok(Some((batch.slice(before, rows), before)));
            }
            let next = self.reader.next().transpose();
            self.is_over = !matches!(next, Ok(Some(_)));
            self.batch = next?.map(|batch| (batch, 0));
        }
        Ok(None)
    }
}

/// The column of a name, of a batch.
pub(crate) fn column<'b>(batch: &'b RecordBatch, name: &str) -> Outcome<&'b ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| {
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| &field.name()[..]).collect();
        Failure::invalid(format!("there is no column `{name}`; there are: {}", names.join(", ")))
    })
}

/// An array of Arrow's: give it to ``pyarrow.array``, ``polars.Series``, or whatever else takes such.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Column(pub(crate) ArrayRef);

#[pymethods]
impl Column {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Outcome<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        array_capsules(py, &self.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        field_capsule(py, &Field::new("", self.kind().clone(), true))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<forebay.Column: {} values of {}>", self.0.len(), self.kind())
    }
}

impl Column {
    fn kind(&self) -> &DataType {
        self.0.data_type()
    }
}
