//! Streams of Arrow's IPC format, in and out. What comes in is trusted in nothing: no length that it tells is taken for
//! more than what has arrived.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use forebay::Error;

use crate::commands::{Answer, Refusal};

/// Stands before each message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The least that a row takes in a column that is not all null, in bits.
const BITS_PER_ROW_MIN: usize = 1;

fn refused(reason: impl std::fmt::Display) -> Refusal {
    format!("ERR the Arrow stream cannot be read: {reason}").into()
}

/// The library of Arrow panics at some of what is damaged.
fn guarded<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, Refusal> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(refused),
        Err(_) => Err(refused("it is damaged")),
    }
}

/// An error if a message says that it is longer than what there is.
fn check_lengths(stream: &[u8]) -> Answer {
    let mut rest = stream;
    let cut = || refused("it ends amid a message");
    while !rest.is_empty() {
        let head = rest.get(..8).ok_or_else(cut)?;
        if head[..4] != CONTINUATION {
            return Err(refused("a message does not begin as one of Arrow's streams"));
        }
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if length == 0 {
            return Ok(());
        }
        let metadata = rest[8..].get(..length).ok_or_else(cut)?;
        let message = guarded(|| {
            arrow_ipc::root_as_message(metadata).map_err(|error| ArrowError::ParseError(error.to_string()))
        })?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| cut())?;
        rest = rest[8 + length..].get(body..).ok_or_else(cut)?;
    }
    Ok(())
}

/// The record batches of a stream, and first what columns they have.
pub(super) struct Batches<'s> {
    reader: StreamReader<&'s [u8]>,
    /// There cannot be more.
    rows_left: usize,
}

impl<'s> Batches<'s> {
    pub(super) fn open(stream: &'s [u8]) -> Result<Self, Refusal> {
        check_lengths(stream)?;
        let reader = guarded(|| StreamReader::try_new(stream, None))?;
        Ok(Self { reader, rows_left: stream.len() * 8 / BITS_PER_ROW_MIN })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, Refusal> {
        let next = guarded(|| self.reader.next().transpose())?;
        if let Some(batch) = &next {
            // Columns that are all null, or none, take nothing however many rows they say they have.
            let left = self.rows_left.checked_sub(batch.num_rows());
            self.rows_left = left.ok_or_else(|| refused("it tells of more rows than it has bytes for"))?;
        }
        Ok(next)
    }
}

/// A stream of batches of this schema.
pub(super) fn write(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, Refusal> {
    let failed = |error: ArrowError| Error::bug(format!("an Arrow stream cannot be written: {error}"));
    let mut writer = StreamWriter::try_new(Vec::new(), schema).map_err(failed)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(failed)?;
    Ok(writer.into_inner().map_err(failed)?)
}
