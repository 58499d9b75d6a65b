//! Record batches in and out: streams of Arrow's C interface as record batches, and batches for whoever reads a stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_array::{
    Array, ArrayReader, ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray,
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use forebay::Error;
use forebay_env::sync::Arc;

/// So many rows make a record batch.
pub const BATCH_ROWS: usize = 64 << 10;

/// Record batches, one after the other.
pub type Batches = Box<dyn Iterator<Item = forebay::Result<RecordBatch>> + Send>;

/// Batches that are made while they are read. Errors of the engine are within those of Arrow's.
pub struct Rows {
    schema: SchemaRef,
    batches: Batches,
}

impl Rows {
    /// Batches of this schema.
    pub fn new(schema: SchemaRef, batches: Batches) -> Self {
        Self { schema, batches }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

/// Batches for who is no Rust, and takes neither a panic nor a text with a zero byte.
pub struct Caught<R>(pub R);

impl<R: RecordBatchReader> Iterator for Caught<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = catch_unwind(AssertUnwindSafe(|| self.0.next()));
        let told = match next {
            Ok(Some(Err(error))) => error.to_string().replace('\0', "\\0"),
            Ok(next) => return next,
            Err(_) => Error::bug("reading a batch panicked").to_string(),
        };
        Some(Err(ArrowError::ExternalError(told.into())))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Caught<R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// A structure as a record batch, which knows of no rows that are null as a whole.
pub fn record_batch(schema: &SchemaRef, array: &ArrayRef) -> Result<RecordBatch, ArrowError> {
    let rows = array.as_any().downcast_ref::<StructArray>();
    let rows = rows.ok_or_else(|| ArrowError::CDataInterface("a stream of something else".into()))?;
    if let Some(row) = (0..rows.len()).find(|row| rows.null_count() > 0 && rows.is_null(*row)) {
        let told = format!("row {} of a batch is null as a whole, and no row of a table", row + 1);
        return Err(ArrowError::InvalidArgumentError(told));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), rows.columns().to_vec(), &options)
}

/// A stream of structures as one of record batches; the type of its arrays where they are none.
pub fn record_batches(arrays: ArrayStreamReader) -> Result<impl RecordBatchReader + Send, DataType> {
    let field = Arc::clone(arrays.field());
    let DataType::Struct(fields) = field.data_type() else { return Err(field.data_type().clone()) };
    let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
    Ok(Structures { arrays, schema: SchemaRef::new(schema) })
}

struct Structures {
    arrays: ArrayStreamReader,
    schema: SchemaRef,
}

impl Iterator for Structures {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let array = self.arrays.next()?;
        Some(array.and_then(|array| record_batch(&self.schema, &array)))
    }
}

impl RecordBatchReader for Structures {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
