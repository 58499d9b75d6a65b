//! Parquet: rows of which some columns are read, each as its text, or by columns ([batches]).
//!
//! Columns are decoded some thousand rows at a time. A column holds single values, and stands at the top of the schema
//! or inside of structures, as `address.city`; lists and maps are refused.

mod batches;
mod delta;
mod groups;
mod guarded;
mod text;
mod texts;

use std::fs::File;

use forebay_aggregate::Value;
use forebay_aggregate::names::similar;
use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::format::Column;
use super::{Position, Rows, Trouble};
use crate::failure::Failure;
use crate::output::counted;
pub(crate) use batches::ParquetBatches;
use delta::Widened;
pub(crate) use groups::ParquetFile;
use groups::{Groups, Reader};
use guarded::guarded;
use text::{Cells, Form};

/// Rows that are decoded together.
const BATCH_ROWS: usize = 4096;

/// See the module.
pub(crate) struct ParquetRows<F> {
    groups: Groups<F>,
    chosen: Vec<Chosen>,
    /// Rows that are decoded, and the current one among them.
    rows: usize,
    row: usize,
}

/// A column that was found in a file.
#[derive(Clone)]
struct Found {
    place: usize,
    descriptor: ColumnDescPtr,
    form: Form,
}

/// A column that is read.
struct Chosen {
    place: usize,
    descriptor: ColumnDescPtr,
    form: Form,
    reader: Option<ColumnReader>,
    cells: Cells,
}

fn failed(name: &str, error: &ParquetError) -> Failure {
    Failure::work(format!("cannot read {name}: {}", reason(error)))
}

impl<F: FnMut(u64)> ParquetRows<F> {
    /// The rows of a file behind its first `behind.number`, with these columns, each with the option that asks for it.
    pub(crate) fn open(
        file: File,
        name: &str,
        columns: &[(Column, &'static str)],
        behind: Position,
        read: F,
    ) -> Result<Self, Failure> {
        let ParquetFile { reader, chosen } = ParquetFile::open(file, name, columns)?;
        let all = 0..reader.num_row_groups();
        let chosen = chosen.into_iter().map(Chosen::new).collect();
        let mut rows = Self { groups: Groups::of(reader, all, read), chosen, rows: 0, row: 0 };
        guarded(|| rows.skip(behind.number)).map_err(|error| failed(name, &error))?;
        Ok(rows)
    }

    /// Passes over the first `rows` rows.
    fn skip(&mut self, mut rows: u64) -> Result<(), ParquetError> {
        self.groups.position.number = rows;
        while rows > 0 && self.begin_group()? {
            let skipped = rows.min(self.groups.rows_left as u64);
            self.groups.rows_left -= skipped as usize;
            rows -= skipped;
            for chosen in &mut self.chosen {
                chosen.skip(skipped as usize)?;
            }
        }
        Ok(())
    }

    /// Begins the next row group, if the one before is at its end. Returns whether there are rows left.
    fn begin_group(&mut self) -> Result<bool, ParquetError> {
        let Self { groups, chosen, .. } = self;
        groups.begin(|_, group| chosen.iter_mut().try_for_each(|chosen| chosen.begin(group)))
    }

    fn decode(&mut self) -> Result<bool, ParquetError> {
        (self.row, self.rows) = (0, 0);
        if !self.begin_group()? {
            return Ok(false);
        }
        let rows = self.groups.rows_left.min(BATCH_ROWS);
        for chosen in &mut self.chosen {
            chosen.decode(rows)?;
        }
        self.groups.rows_left -= rows;
        self.rows = rows;
        Ok(true)
    }
}

impl Found {
    fn find(file: &Reader, column: &Column, option: &str) -> Result<Self, String> {
        let schema = file.metadata().file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let wanted = match column {
            Column::Place(place) => fields.get(*place).map(|field| field.name()).ok_or_else(|| {
                let columns = counted(fields.len() as u64, "column");
                format!("{columns}, but number {} is needed; {option} chooses another", place + 1)
            })?,
            Column::Name(name) => name,
        };
        let names = || fields.iter().map(|field| field.name());
        if matches!(column, Column::Name(_)) && names().filter(|name| *name == wanted).count() > 1 {
            return Err(format!("two columns are called {wanted:?}; name the one you mean by its number"));
        }
        // A field of a structure is called by the names that lead to it, with points between them.
        let is_it = |column: &ColumnDescPtr| match column.path().parts() {
            [name] => name == wanted,
            _ => column.path().string() == wanted,
        };
        let place = match column {
            Column::Place(place) => schema
                .columns()
                .iter()
                .enumerate()
                .position(|(leaf, _)| schema.get_column_root_idx(leaf) == *place),
            Column::Name(_) => schema.columns().iter().position(is_it),
        };
        let place = place.filter(|place| {
            let leaf = schema.column(*place);
            leaf.max_rep_level() == 0 && (leaf.path().parts().len() == 1 || is_it(&leaf))
        });
        let place = place.ok_or_else(|| {
            let inner = |column: &&ColumnDescPtr| {
                column.path().parts().first().is_some_and(|first| first == wanted)
                    && column.max_rep_level() == 0
            };
            if !names().any(|name| name == wanted) && !schema.columns().iter().any(is_it) {
                return match similar(wanted, names()) {
                    Some(other) => format!("no column is called {wanted:?}; did you mean {other:?}?"),
                    None => format!(
                        "no column is called {wanted:?}; there are {}",
                        names().collect::<Vec<_>>().join(", ")
                    ),
                };
            }
            let inner: Vec<String> =
                schema.columns().iter().filter(inner).map(|column| column.path().string()).collect();
            match inner.is_empty() {
                true => format!("column {wanted:?} holds lists or maps; only single values are read"),
                false => format!("column {wanted:?} holds structures; name a field: {}", inner.join(", ")),
            }
        })?;
        let descriptor = schema.column(place);
        let form = Form::of(&descriptor)?;
        for group in file.metadata().row_groups() {
            let compression = group.column(place).compression();
            if !is_known(compression) {
                return Err(format!(
                    "column {wanted:?} is compressed with {compression}, which is not read; snappy, gzip, lz4, zstd and brotli are"
                ));
            }
        }
        Ok(Self { place, descriptor, form })
    }
}

impl Chosen {
    fn new(found: Found) -> Self {
        let Found { place, descriptor, form } = found;
        Self { place, descriptor, form, reader: None, cells: Cells::default() }
    }

    fn begin(&mut self, group: &dyn RowGroupReader) -> Result<(), ParquetError> {
        self.reader = Some(get_column_reader(self.descriptor.clone(), self.pages(group)?));
        Ok(())
    }

    /// The pages of a row group.
    fn pages(&self, group: &dyn RowGroupReader) -> Result<Box<dyn PageReader>, ParquetError> {
        let pages = group.get_column_page_reader(self.place)?;
        Ok(Widened::over(pages, group.metadata().column(self.place)))
    }

    fn skip(&mut self, rows: usize) -> Result<(), ParquetError> {
        let skipped = match &mut self.reader {
            None => 0,
            Some(ColumnReader::BoolColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::Int32ColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::Int64ColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::Int96ColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::FloatColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::DoubleColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::ByteArrayColumnReader(reader)) => reader.skip_records(rows)?,
            Some(ColumnReader::FixedLenByteArrayColumnReader(reader)) => reader.skip_records(rows)?,
        };
        whole(skipped, rows)
    }

    fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        let Self { reader, cells, form, descriptor, .. } = self;
        cells.clear();
        let mut fault = None;
        let mut bytes =
            |value: &[u8], out: &mut Vec<u8>| fault = form.bytes(value, out).err().or(fault.take());
        match reader {
            None => whole(0, rows),
            Some(ColumnReader::BoolColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| text::truth(*value, out))
            }
            Some(ColumnReader::Int32ColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| form.int32(*value, out))
            }
            Some(ColumnReader::Int64ColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| form.int64(*value, out))
            }
            Some(ColumnReader::Int96ColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| text::int96(value.data(), out))
            }
            Some(ColumnReader::FloatColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| text::single(*value, out))
            }
            Some(ColumnReader::DoubleColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| text::float(*value, out))
            }
            Some(ColumnReader::ByteArrayColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| bytes(value.data(), out))
            }
            Some(ColumnReader::FixedLenByteArrayColumnReader(reader)) => {
                fill(reader, descriptor, rows, cells, |value, out| bytes(value.data(), out))
            }
        }?;
        let name = descriptor.name();
        fault.map_or(Ok(()), |fault| Err(ParquetError::General(format!("column {name:?} has {fault}"))))
    }
}

/// Decodes the next rows of a column.
fn fill<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    descriptor: &ColumnDescriptor,
    rows: usize,
    cells: &mut Cells,
    mut write: impl FnMut(&T::T, &mut Vec<u8>),
) -> Result<(), ParquetError> {
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let present = descriptor.max_def_level();
    if present == 0 {
        values.iter().for_each(|value| cells.push(|out| write(value, out)));
        return whole(read, rows);
    }
    let mut values = values.iter();
    for level in levels {
        match if level == present { values.next() } else { None } {
            Some(value) => cells.push(|out| write(value, out)),
            None => cells.push_null(),
        }
    }
    whole(read, rows)
}

/// A column has as many rows as its group.
fn whole(read: usize, rows: usize) -> Result<(), ParquetError> {
    match read == rows {
        true => Ok(()),
        false => Err(ParquetError::General(match rows.checked_sub(read) {
            Some(missing) => format!("a column ends {missing} rows before its group"),
            None => "a column goes on behind its group".to_string(),
        })),
    }
}

fn is_known(compression: Compression) -> bool {
    use Compression::{BROTLI, GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(compression, UNCOMPRESSED | SNAPPY | GZIP(_) | LZ4 | LZ4_RAW | ZSTD(_) | BROTLI(_))
}

/// An error of the library's, without its kind.
fn reason(error: &ParquetError) -> String {
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_string()
}

impl<F: FnMut(u64)> Rows for ParquetRows<F> {
    fn advance(&mut self) -> Result<bool, Trouble> {
        self.row += 1;
        if self.row >= self.rows {
            let decoded = guarded(|| self.decode()).map_err(|error| self.groups.trouble(&error))?;
            if !decoded {
                return Ok(false);
            }
        }
        self.groups.position.number += 1;
        Ok(true)
    }

    #[inline]
    fn column(&self, at: usize) -> Option<&[u8]> {
        self.chosen[at].cells.get(self.row)
    }

    fn value(&self, at: usize) -> Value<'_> {
        let Some(text) = self.column(at) else { return Value::Null };
        let single = || std::str::from_utf8(text).ok()?.parse().ok().map(Value::F32);
        let is_single = self.chosen[at].form.is_single(&self.chosen[at].descriptor);
        is_single.then(single).flatten().unwrap_or(Value::bytes(text))
    }

    fn position(&self) -> Position {
        self.groups.position
    }

    /// Where the row group begins: rows have no places of their own.
    fn end(&self) -> u64 {
        self.groups.position.offset
    }
}
