//! Record batches of partial states as a file of Arrow's IPC format, with a checksum in its footer.
//!
//! 1. The schema and the batches are written as Arrow has it; all of that is summed up.
//! 2. The sum stands in the footer's metadata.
//! 3. Who reads looks at the sum first, and then reads what it vouches for, from the front. Nothing else in the footer
//!    counts.
//!
//! **Invariant:** no bytes of such a file are taken for others.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Take, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_ipc::MetadataVersion;
use arrow_ipc::reader::{StreamReader, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, SchemaRef};
use forebay_base::checksum::append;
use forebay_base::{Error, Result};
use forebay_env::jobs::text_of;
use forebay_env::sync::Arc;

use super::column::refusal;
use super::schema::PartialSchema;

/// Under this the footer has the sum and how many bytes it is of.
const SUM_KEY: &str = "forebay.crc32c";
/// What is in the file begins at multiples of this,
const ALIGNMENT_BYTES: usize = 8;
/// and so the schema here, behind the format's name.
const HEAD_BYTES: u64 = 8;
/// How long its end is, behind the footer.
const TAIL_BYTES: usize = 10;
/// A footer longer than this is none: a batch has 24 bytes there.
const FOOTER_BYTES_MAX: usize = 256 << 20;

/// Writes record batches to a file.
pub struct PartialWriter<W: Write>(FileWriter<Summed<W>>);

impl<W: Write> PartialWriter<W> {
    /// Begins the file.
    pub fn new(to: W, schema: &PartialSchema) -> io::Result<Self> {
        let to = Summed { to, sum: 0, bytes: 0 };
        let options = IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, MetadataVersion::V5);
        let writer =
            options.and_then(|options| FileWriter::try_new_with_options(to, schema.schema(), options));
        writer.map(Self).map_err(io_error)
    }

    /// Writes a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(io_error)
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<W> {
        let Summed { sum, bytes, .. } = self.0.get_ref();
        let sum = format!("{sum:08x} {bytes}");
        self.0.write_metadata(SUM_KEY, sum);
        self.0.finish().map_err(io_error)?;
        Ok(self.0.into_inner().map_err(io_error)?.to)
    }
}

/// Sums up what is written.
struct Summed<W> {
    to: W,
    sum: u32,
    bytes: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sum = append(self.sum, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Reads the record batches of a file that [`PartialWriter`] wrote.
pub struct PartialReader<R> {
    schema: SchemaRef,
    /// None behind the end, and behind an error.
    stream: Option<StreamReader<BufReader<Take<R>>>>,
}

impl<R: Read + Seek> PartialReader<R> {
    /// Begins with a file, once all of it is found to be as it was written.
    pub fn open(mut from: R) -> Result<Self> {
        let bytes = checked(&mut from)?;
        from.seek(SeekFrom::Start(HEAD_BYTES)).map_err(read_failure)?;
        let stream = guarded(|| StreamReader::try_new_buffered(from.take(bytes - HEAD_BYTES), None))?;
        Ok(Self { schema: stream.schema(), stream: Some(stream) })
    }

    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl<R: Read> Iterator for PartialReader<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut stream = self.stream.take()?;
        let batch = guarded(|| stream.next().transpose()).transpose()?;
        if batch.is_ok() {
            self.stream = Some(stream);
        }
        Some(batch)
    }
}

/// The library of Arrow panics at some of what somebody may have written with a checksum that matches. What it was at
/// work on is not used any more then.
fn guarded<T>(work: impl FnOnce() -> std::result::Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(refusal),
        Err(panic) => Err(refusal(format_args!("the file is damaged: {}", text_of(&*panic)))),
    }
}

/// How many bytes of a file there are that its sum vouches for.
fn checked(from: &mut (impl Read + Seek)) -> Result<u64> {
    let (told, bytes, footer_at) = told_sum(from)?;
    let damaged = || Error::invalid("the file is damaged: its checksum does not match; make it again");
    if !(HEAD_BYTES..=footer_at).contains(&bytes) {
        return Err(damaged());
    }
    from.rewind().map_err(read_failure)?;
    let (mut sum, mut left, mut block) = (0, bytes, vec![0; 64 << 10]);
    while left > 0 {
        let wanted = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let block = &mut block[..wanted];
        from.read_exact(block).map_err(read_failure)?;
        sum = append(sum, block);
        left -= wanted as u64;
    }
    if sum == told { Ok(bytes) } else { Err(damaged()) }
}

/// The sum in the footer, how many bytes it is of, and where the footer begins.
fn told_sum(from: &mut (impl Read + Seek)) -> Result<(u32, u64, u64)> {
    let none = || Error::invalid("this is no whole file of partial states");
    let end = from.seek(SeekFrom::End(0)).map_err(read_failure)?;
    let tail_at = end.checked_sub(TAIL_BYTES as u64).ok_or_else(none)?;
    let mut tail = [0; TAIL_BYTES];
    from.seek(SeekFrom::Start(tail_at)).map_err(read_failure)?;
    from.read_exact(&mut tail).map_err(read_failure)?;
    let footer_bytes = read_footer_length(tail).map_err(|_| none())?;
    let footer_at = tail_at.checked_sub(footer_bytes as u64).ok_or_else(none)?;
    if footer_bytes > FOOTER_BYTES_MAX {
        return Err(none());
    }
    let mut footer = vec![0; footer_bytes];
    from.seek(SeekFrom::Start(footer_at)).map_err(read_failure)?;
    from.read_exact(&mut footer).map_err(read_failure)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|_| none())?;
    let mut metadata = footer.custom_metadata().into_iter().flatten();
    let sum = metadata.find(|entry| entry.key() == Some(SUM_KEY)).and_then(|entry| entry.value());
    let sum = sum.ok_or_else(|| {
        Error::invalid("the file has no checksum of partial states; write it as they are written")
    })?;
    let (sum, bytes) = sum.split_once(' ').ok_or_else(none)?;
    let sum = u32::from_str_radix(sum, 16).map_err(|_| none())?;
    Ok((sum, bytes.parse().map_err(|_| none())?, footer_at))
}

fn read_failure(error: io::Error) -> Error {
    refusal(format_args!("cannot be read: {error}"))
}

/// The error of writing that is in one of columns.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
