//! A file of which row groups are read, one after the other.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::{Found, failed, guarded, reason};
use crate::failure::Failure;
use crate::input::format::Column;
use crate::input::{Position, Trouble, TroubleKind};

/// A file that is read by several threads at once, each at places of its own.
pub(crate) struct Shared(File);

/// What the library reads a file by.
pub(super) type Reader = SerializedFileReader<Shared>;

/// Reads on from a place.
pub(crate) struct From {
    file: File,
    at: u64,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for Shared {
    fn len(&self) -> u64 {
        Length::len(&self.0)
    }
}

impl ChunkReader for Shared {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(From { file: self.0.try_clone()?, at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // No more than there is, whatever a damaged file says.
        let left = usize::try_from(self.len().saturating_sub(start)).unwrap_or(usize::MAX);
        if length > left {
            return Err(ParquetError::EOF(format!("{length} bytes are needed, and {left} are left")));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A file, and what is to be read of it.
#[derive(Clone)]
pub(crate) struct ParquetFile {
    pub(super) reader: Arc<Reader>,
    pub(super) chosen: Vec<Found>,
}

impl ParquetFile {
    /// A file, and what is to be read of these columns, each with the option that asks for it.
    pub(crate) fn open(file: File, name: &str, columns: &[(Column, &'static str)]) -> Result<Self, Failure> {
        let reader =
            guarded(|| SerializedFileReader::new(Shared(file))).map_err(|error| failed(name, &error))?;
        let mut chosen = Vec::new();
        for (column, option) in columns {
            let found = guarded(|| Ok(Found::find(&reader, column, option)));
            let found = found.map_err(|error| failed(name, &error))?;
            chosen.push(found.map_err(|reason| Failure::work(format!("{name}: {reason}")))?);
        }
        Ok(Self { reader: Arc::new(reader), chosen })
    }

    /// How many row groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }
}

/// See the module.
pub(super) struct Groups<F> {
    file: Arc<Reader>,
    /// The row groups that are next, and the rows of the one before that are not decoded yet.
    next: Range<usize>,
    pub(super) rows_left: usize,
    pub(super) position: Position,
    /// Told of the bytes of row groups.
    read: F,
}

impl<F: FnMut(u64)> Groups<F> {
    /// Some row groups of a file. What they hold is counted from its first row.
    pub(super) fn of(file: Arc<Reader>, groups: Range<usize>, read: F) -> Self {
        let mut all = Self { file, next: 0..0, rows_left: 0, position: Position::default(), read };
        all.go_to(groups);
        all
    }

    /// Goes on with others.
    pub(super) fn go_to(&mut self, groups: Range<usize>) {
        let before = self.file.metadata().row_groups().iter().take(groups.start);
        let rows = before.map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum();
        self.position.number = rows;
        (self.next, self.rows_left) = (groups, 0);
    }

    /// Goes on with all row groups but those that come before so many rows. Returns how many of the rows do not: they are
    /// of the first group, or the file does not have them.
    pub(super) fn go_behind(&mut self, rows: u64) -> u64 {
        let groups = self.file.metadata().row_groups();
        let (mut left, mut first, all) = (rows, 0, groups.len());
        for group in groups {
            let group_rows = u64::try_from(group.num_rows()).unwrap_or(0);
            if left < group_rows {
                break;
            }
            (left, first) = (left - group_rows, first + 1);
        }
        self.go_to(first..all);
        left
    }

    /// Begins the next row group, if the one before is at its end: `begin` is given it. Returns whether there are rows
    /// left.
    pub(super) fn begin(
        &mut self,
        mut begin: impl FnMut(&Reader, &dyn RowGroupReader) -> Result<(), ParquetError>,
    ) -> Result<bool, ParquetError> {
        while self.rows_left == 0 {
            let Some(next) = self.next.next() else { return Ok(false) };
            let group = self.file.get_row_group(next)?;
            self.rows_left = group.metadata().num_rows().try_into().unwrap_or(0);
            (self.read)(group.metadata().compressed_size().try_into().unwrap_or(0));
            begin(&self.file, &*group)?;
            self.position.offset =
                group.metadata().columns().first().map_or(0, |column| column.byte_range().0);
        }
        Ok(true)
    }

    /// Why the rows behind those that were read cannot be.
    pub(super) fn trouble(&self, error: &ParquetError) -> Trouble {
        let (number, reason) = (self.position.number, reason(error));
        Box::new(TroubleKind::Read(io::Error::other(format!("after row {number}: {reason}"))))
    }
}
