//! Streams of record batches, by which rows, states and answers cross: structures of Arrow's C interface at an address, or
//! the bytes of Arrow's IPC format. Whatever it is read for, a stream is read once.

use std::io::Cursor;

use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use forebay_env::sync::Mutex;
use forebay_groups::{record_batch, record_batches};
use jni::objects::JByteArray;
use jni::sys::jlong;

use crate::failure::{Failure, Outcome};
use crate::glue::{bytes, given, natives};
use crate::{handles, kernel};

/// A reader of record batches.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// See the module.
pub(crate) struct Stream(Mutex<State>);

enum State {
    /// Nobody has read of it.
    Fresh(Reader),
    /// It is read as bytes.
    Written(Box<StreamWriter<Vec<u8>>>, Reader),
    Over,
}

impl Stream {
    pub(crate) fn new(reader: impl RecordBatchReader + Send + 'static) -> Self {
        Self(Mutex::new(State::Fresh(Box::new(reader))))
    }

    /// The next bytes; none at the end.
    fn write(&self) -> Outcome<Option<Vec<u8>>> {
        let mut state = self.0.lock();
        let (mut writer, mut reader) = match std::mem::replace(&mut *state, State::Over) {
            State::Fresh(reader) => (Box::new(StreamWriter::try_new(Vec::new(), &reader.schema())?), reader),
            State::Written(writer, reader) => (writer, reader),
            State::Over => return Ok(None),
        };
        match reader.next().transpose()? {
            Some(batch) => {
                writer.write(&batch)?;
                let bytes = std::mem::take(writer.get_mut());
                *state = State::Written(writer, reader);
                Ok(Some(bytes))
            }
            None => {
                writer.finish()?;
                Ok(Some(std::mem::take(writer.get_mut())))
            }
        }
    }
}

/// Takes what a stream has; its number is no more.
pub(crate) fn take(number: jlong) -> Outcome<Reader> {
    let stream = handles::get::<Stream>(number)?;
    let state = std::mem::replace(&mut *stream.0.lock(), State::Over);
    drop(handles::release(number));
    match state {
        State::Fresh(reader) => Ok(reader),
        _ => Err(Failure::invalid("the stream was read before, by bytes or by another call")),
    }
}

/// The schema of a stream, which may still be read.
pub(crate) fn schema(number: jlong) -> Outcome<SchemaRef> {
    match &*handles::get::<Stream>(number)?.0.lock() {
        State::Fresh(reader) | State::Written(_, reader) => Ok(reader.schema()),
        State::Over => Err(Failure::Closed("stream of record batches")),
    }
}

/// A batch that another library made: its offsets, indices and texts were looked at by nobody yet.
fn checked(batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, ArrowError> {
    let batch = batch?;
    batch.columns().iter().try_for_each(|column| column.to_data().validate_full())?;
    Ok(batch)
}

natives! {
    fn stream_of_array(_env, array: jlong, schema: jlong) -> jlong {
        let (array, schema) = kernel::array(array, schema)?;
        let batch = checked(record_batch(&schema, &array))?;
        handles::hold(0, Stream::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }

    fn stream_of_stream(_env, stream: jlong) -> jlong {
        let reader = record_batches(kernel::stream(stream)?);
        let reader = reader.map_err(|kind| Failure::invalid(format!("a stream of {kind} is none of record batches")))?;
        let schema = reader.schema();
        handles::hold(0, Stream::new(RecordBatchIterator::new(reader.map(checked), schema)))
    }

    fn stream_of_bytes(env, ipc: [jbyte]) -> jlong {
        let ipc = bytes(env, &ipc, "ipc")?;
        handles::hold(0, Stream::new(StreamReader::try_new(Cursor::new(ipc), None)?))
    }

    fn export_stream(_env, number: jlong, room: jlong) -> void {
        kernel::export(take(number)?, room)
    }

    // The next bytes, or null at the end.
    fn stream_bytes(env, number: jlong) -> [jbyte] {
        let stream = handles::get::<Stream>(number)?;
        let ends = || drop(handles::release(number));
        match stream.write().inspect_err(|_| ends())? {
            Some(bytes) => given(env, &bytes).inspect_err(|_| ends()),
            None => {
                ends();
                Ok(JByteArray::default())
            }
        }
    }
}
