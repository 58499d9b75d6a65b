//! Groups as a Parquet file: what they are grouped by as text, what they come to as numbers, truths or text.
//!
//! 1. Rows gather column by column.
//! 2. This many make a row group, compressed with snappy.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use forebay::Error;
use forebay_aggregate::Value;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::kinds::{DECIMAL_DIGITS, Kind, units};

/// A row group has this many rows, or fewer where their texts come to this many bytes.
const GROUP_ROWS: usize = 64 << 10;
const GROUP_BYTES: usize = 8 << 20;
const DECIMAL_BYTES: i32 = 16;

/// See the module.
pub(super) struct Columnar {
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

/// The values of a column in a row group, without those that are missing.
struct Column {
    name: String,
    /// 1 for a value, 0 for none.
    levels: Vec<i16>,
    cells: Cells,
}

enum Cells {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Truth(Vec<bool>),
    /// Digits behind the point, and units.
    Decimal(u8, Vec<FixedLenByteArray>),
}

impl Columnar {
    /// Begins a file of these columns.
    pub(super) fn begin(file: File, names: &[String], kinds: &[Kind]) -> Result<Self, Error> {
        let columns: Vec<Column> =
            names.iter().zip(kinds).map(|(name, kind)| Column::new(name.clone(), *kind)).collect();
        let fields = columns.iter().zip(kinds).map(|(column, kind)| column.field(*kind).map(Arc::new));
        let schema = fields
            .collect::<Result<Vec<_>, _>>()
            .and_then(|fields| Type::group_type_builder("groups").with_fields(fields).build())
            .map_err(|error| refusal(&error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("forebay ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            .map_err(|error| refusal(&error))?;
        Ok(Self { writer, columns, rows: 0, bytes: 0 })
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[Value<'_>], path: &Path) -> Result<(), Error> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.bytes += column.push(cell)?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.bytes >= GROUP_BYTES { self.flush(path) } else { Ok(()) }
    }

    /// Writes what has gathered.
    fn flush(&mut self, path: &Path) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for column in &mut self.columns {
                if let Some(writer) = group.next_column()? {
                    column.write(writer)?;
                }
            }
            group.close().map(drop)
        };
        write().map_err(|error| failure(path, error))
    }

    /// Ends the file.
    pub(super) fn finish(mut self, path: &Path) -> Result<(), Error> {
        self.flush(path)?;
        self.writer.close().map(drop).map_err(|error| failure(path, error))
    }
}

impl Column {
    fn new(name: String, kind: Kind) -> Self {
        let cells = match kind {
            Kind::Text => Cells::Text(Vec::new()),
            Kind::Int => Cells::Int(Vec::new()),
            Kind::Float => Cells::Float(Vec::new()),
            Kind::Truth => Cells::Truth(Vec::new()),
            Kind::Decimal(scale) => Cells::Decimal(scale, Vec::new()),
        };
        Self { name, levels: Vec::new(), cells }
    }

    fn field(&self, kind: Kind) -> Result<Type, ParquetError> {
        let (physical, logical) = match kind {
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Int => (PhysicalType::INT64, None),
            Kind::Float => (PhysicalType::DOUBLE, None),
            Kind::Truth => (PhysicalType::BOOLEAN, None),
            Kind::Decimal(scale) => {
                let logical = LogicalType::decimal(i32::from(scale), DECIMAL_DIGITS as i32);
                (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(logical))
            }
        };
        let field = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        match kind {
            Kind::Decimal(scale) => field
                .with_length(DECIMAL_BYTES)
                .with_precision(DECIMAL_DIGITS as i32)
                .with_scale(i32::from(scale))
                .build(),
            _ => field.build(),
        }
    }

    /// Adds a cell, and tells about how many bytes it takes.
    fn push(&mut self, cell: &Value<'_>) -> Result<usize, Error> {
        self.levels.push(i16::from(*cell != Value::Null));
        match (&mut self.cells, cell) {
            (_, Value::Null) => {}
            (Cells::Int(cells), Value::I64(value)) => cells.push(*value),
            (Cells::Decimal(scale, cells), cell) => {
                let text = cell.to_text();
                let units = units(&text, *scale).ok_or_else(|| {
                    let text = String::from_utf8_lossy(&text);
                    Error::invalid(format!(
                        "{}: {text} has more than {DECIMAL_DIGITS} digits, of which {scale} stand after the point; \
                         write .csv or .jsonl",
                        self.name
                    ))
                })?;
                cells.push(ByteArray::from(units.to_be_bytes().to_vec()).into());
                return Ok(DECIMAL_BYTES as usize);
            }
            (Cells::Int(cells), Value::I128(value)) if i64::try_from(*value).is_ok() => {
                cells.push(*value as i64)
            }
            (Cells::Float(cells), Value::I128(_) | Value::F32(_) | Value::Decimal(_)) => {
                cells.push(cell.as_f64().unwrap_or(f64::NAN));
            }
            (Cells::Float(cells), Value::F64(value)) => cells.push(*value),
            (Cells::Float(cells), Value::I64(value)) => cells.push(*value as f64),
            (Cells::Truth(cells), Value::Bool(value)) => cells.push(*value),
            (Cells::Text(cells), cell) => {
                let text = cell.to_text();
                if std::str::from_utf8(&text).is_err() {
                    return Err(Error::invalid(format!(
                        "{}: {:?} is not UTF-8, as texts of Parquet are; write .csv or .jsonl",
                        self.name,
                        String::from_utf8_lossy(&text[..text.len().min(64)])
                    )));
                }
                cells.push(text.into_owned().into());
                return Ok(cells.last().map_or(0, ByteArray::len));
            }
            (_, cell) => {
                let text = String::from_utf8_lossy(&cell.to_text()).into_owned();
                return Err(Error::invalid(format!("{}: {text} is not of the column's type", self.name)));
            }
        }
        Ok(size_of::<i64>())
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match &mut self.cells {
            Cells::Text(cells) => {
                writer.typed::<ByteArrayType>().write_batch(cells, levels, None)?;
                cells.clear();
            }
            Cells::Int(cells) => {
                writer.typed::<Int64Type>().write_batch(cells, levels, None)?;
                cells.clear();
            }
            Cells::Float(cells) => {
                writer.typed::<DoubleType>().write_batch(cells, levels, None)?;
                cells.clear();
            }
            Cells::Decimal(_, cells) => {
                writer.typed::<FixedLenByteArrayType>().write_batch(cells, levels, None)?;
                cells.clear();
            }
            Cells::Truth(cells) => {
                writer.typed::<BoolType>().write_batch(cells, levels, None)?;
                cells.clear();
            }
        }
        self.levels.clear();
        writer.close()
    }
}

fn refusal(error: &ParquetError) -> Error {
    Error::invalid(error.to_string())
}

/// A failure to write to `path`.
fn failure(path: &Path, error: ParquetError) -> Error {
    Error::io("write", path, &std::io::Error::other(error))
}
