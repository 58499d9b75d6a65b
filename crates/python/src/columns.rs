//! Arrow's arrays in and out, and the record batches of any object that has such.

use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_array::{Array, ArrayReader, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay_groups::{record_batch, record_batches};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::{Failure, Outcome};
use crate::kernel::{array_capsules, array_of, field_capsule, schema_of, stream_of};
use crate::progress::Progress;
use crate::scan::Scan;

/// Whether an object gives a column of Arrow's. A scan is taken for what a loop over it gives: its stream has two.
pub(crate) fn is_arrow(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_scan = data.is_instance_of::<Scan>();
    Ok(!is_scan && (data.hasattr("__arrow_c_array__")? || data.hasattr("__arrow_c_stream__")?))
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
        let reader = ArrayStreamReader::try_new(stream_of(data)?)?;
        return Ok(Box::new(record_batches(reader).map_err(|kind| no_batch(&kind))?));
    }
    if !data.hasattr("__arrow_c_array__")? {
        let kind = data.get_type().name()?;
        return Err(Failure::type_error(format!(
            "{kind} has neither __arrow_c_stream__ nor __arrow_c_array__; give a table or record batch of Arrow, such as \
             pyarrow.table(..), polars.DataFrame(..), or a relation of DuckDB"
        )));
    }
    let (array, schema) = array_of(data)?;
    let schema = SchemaRef::new(Schema::try_from(&schema).map_err(|_| no_batch(array.data_type()))?);
    let batch = record_batch(&schema, &array)?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

fn no_batch(kind: &DataType) -> Failure {
    Failure::type_error(format!("an array of {kind} is no record batch; give one, or a table"))
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
