//! What a load reads: bytes, which are unpacked where they have to be, or rows.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use crate::failure::Failure;
use crate::input::Position;
use crate::input::format::Column;
use crate::input::open::Opened;
use crate::input::parquet::ParquetRows;
use crate::input::rows::RowRecords;
use crate::input::unpack::{MAGIC_BYTES, Packer};
use crate::progress::Progress;

/// What is read.
pub(super) enum Input {
    Bytes(Box<dyn Read + Send>),
    Rows(Box<ParquetRecords>),
}

pub(super) type ParquetRecords =
    RowRecords<ParquetRows<Box<dyn FnMut(u64) + Send>>, Box<dyn Fn() -> u64 + Send + Sync>>;

/// The records of a Parquet file.
pub(super) fn parquet(
    input: Opened,
    key: &Column,
    value: &Column,
    progress: &Arc<Progress>,
) -> Result<Input, Failure> {
    let columns = [(key.clone(), "--key"), (value.clone(), "--value")];
    let (reading, read) = (Arc::clone(progress), Arc::clone(progress));
    let tell: Box<dyn FnMut(u64) + Send> = Box::new(move |bytes| reading.read(bytes));
    let Opened { name, file, .. } = input;
    let file = file.ok_or_else(|| {
        Failure::work(format!("cannot read {name}: Parquet is read from files only, not from a pipe"))
    })?;
    let rows = ParquetRows::open(file, &name, &columns, Position::default(), tell)?;
    Ok(Input::Rows(Box::new(RowRecords::new(rows, Box::new(move || read.bytes_read())))))
}

/// What begins as packed data do is unpacked. A pipe is not waited for before the load has begun.
pub(super) fn unpacked(input: Opened) -> Result<(Box<dyn Read + Send>, Packer), Failure> {
    let Opened { name, from, bytes, .. } = input;
    match bytes {
        Some(_) => begun(from, &name),
        None => Ok((Box::new(Pipe::Fresh(Some(from))), Packer::Nothing)),
    }
}

fn begun(mut from: Box<dyn Read + Send>, name: &str) -> Result<(Box<dyn Read + Send>, Packer), Failure> {
    let failed = |error| Failure::work(format!("cannot read {name}: {error}"));
    let mut head = Vec::new();
    (&mut from).take(MAGIC_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    let packer = Packer::of(&head, name)?;
    let whole = Cursor::new(head).chain(from);
    Ok((packer.unpack(whole, name).map_err(failed)?, packer))
}

/// A pipe, whose first bytes tell whether it has to be unpacked.
enum Pipe {
    Fresh(Option<Box<dyn Read + Send>>),
    Begun(Box<dyn Read + Send>),
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Self::Fresh(from) = self {
            let from = from.take().unwrap_or_else(|| Box::new(io::empty()));
            let begun =
                begun(from, "standard input").map_err(|failure| io::Error::other(failure.to_string()))?;
            *self = Self::Begun(begun.0);
        }
        match self {
            Self::Begun(from) => from.read(into),
            Self::Fresh(_) => Ok(0),
        }
    }
}
