//! A file of which one row group after the other is read.

use std::fs::File;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::{Chosen, failed, guarded, reason};
use crate::failure::Failure;
use crate::input::format::Column;
use crate::input::{Position, Trouble, TroubleKind};

/// See the module.
pub(super) struct Groups<F> {
    pub(super) file: SerializedFileReader<File>,
    /// The row group that is read, and those of its rows that are not decoded yet.
    pub(super) group: usize,
    pub(super) rows_left: usize,
    pub(super) position: Position,
    /// Told of the bytes of row groups.
    pub(super) read: F,
}

impl<F: FnMut(u64)> Groups<F> {
    /// A file, and what is to be read of these columns, each with the option that asks for it.
    pub(super) fn open(
        file: File,
        name: &str,
        columns: &[(Column, &'static str)],
        read: F,
    ) -> Result<(Self, Vec<Chosen>), Failure> {
        let file = guarded(|| SerializedFileReader::new(file)).map_err(|error| failed(name, &error))?;
        let mut chosen = Vec::new();
        for (column, option) in columns {
            let found = guarded(|| Ok(Chosen::find(&file, column, option)));
            let found = found.map_err(|error| failed(name, &error))?;
            chosen.push(found.map_err(|reason| Failure::work(format!("{name}: {reason}")))?);
        }
        Ok((Self { file, group: 0, rows_left: 0, position: Position::default(), read }, chosen))
    }

    /// Begins the next row group, if the one before is at its end: `begin` is given it. Returns whether there are rows
    /// left.
    pub(super) fn begin(
        &mut self,
        mut begin: impl FnMut(&SerializedFileReader<File>, &dyn RowGroupReader) -> Result<(), ParquetError>,
    ) -> Result<bool, ParquetError> {
        while self.rows_left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.group)?;
            self.rows_left = group.metadata().num_rows().try_into().unwrap_or(0);
            (self.read)(group.metadata().compressed_size().try_into().unwrap_or(0));
            begin(&self.file, &*group)?;
            self.position.offset =
                group.metadata().columns().first().map_or(0, |column| column.byte_range().0);
            self.group += 1;
        }
        Ok(true)
    }

    /// Why the rows behind those that were read cannot be.
    pub(super) fn trouble(&self, error: &ParquetError) -> Trouble {
        let (number, reason) = (self.position.number, reason(error));
        Box::new(TroubleKind::Read(std::io::Error::other(format!("after row {number}: {reason}"))))
    }
}
