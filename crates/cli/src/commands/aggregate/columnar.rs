//! Groups as a Parquet file: what they are grouped by as text, what they come to as numbers, truths or text. Some make a
//! row group, compressed with snappy.

use std::fs::File;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use forebay::Error;
use forebay_aggregate::Value;
use forebay_aggregate::arrow::units;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::cells::{Cells, Column, Texts};
use super::kinds::{DECIMAL_DIGITS, Kind};

/// A row group has this many rows, or fewer where they take this many bytes.
pub(super) const GROUP_ROWS: usize = 64 << 10;
pub(super) const GROUP_BYTES: usize = 8 << 20;

/// The file.
pub(super) struct Columnar(SerializedFileWriter<File>);

/// What makes row groups of cells.
pub(super) struct Groups {
    fields: Vec<(Arc<Field>, Kind)>,
    factory: ArrowRowGroupWriterFactory,
}

impl Columnar {
    /// Begins a file of these columns.
    pub(super) fn begin(file: File, names: &[String], kinds: &[Kind]) -> Result<(Self, Groups), Error> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("forebay ", env!("CARGO_PKG_VERSION")).into());
        for (name, kind) in names.iter().zip(kinds) {
            // Hardly any of them comes again.
            if *kind == Kind::Float {
                let path = ColumnPath::from(vec![name.clone()]);
                properties = properties.set_column_dictionary_enabled(path, false);
            }
        }
        let field =
            |(name, kind): (&String, &Kind)| (Arc::new(Field::new(name, data_type(*kind), true)), *kind);
        let fields: Vec<_> = names.iter().zip(kinds).map(field).collect();
        let schema = Schema::new(fields.iter().map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>());
        let begin = || {
            let written = ArrowSchemaConverter::new().schema_root("groups").convert(&schema)?;
            SerializedFileWriter::new(file, written.root_schema_ptr(), Arc::new(properties.build()))
        };
        let writer = begin().map_err(|error| Error::invalid(error.to_string()))?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::new(schema.clone()));
        Ok((Self(writer), Groups { fields, factory }))
    }

    /// Appends a row group.
    pub(super) fn append(&mut self, chunks: Vec<ArrowColumnChunk>, path: &Path) -> Result<(), Error> {
        let append = || {
            let mut group = self.0.next_row_group()?;
            chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))?;
            group.close().map(drop)
        };
        append().map_err(|error| failure(path, error))
    }

    /// Ends the file.
    pub(super) fn finish(self, path: &Path) -> Result<(), Error> {
        self.0.close().map(drop).map_err(|error| failure(path, error))
    }
}

impl Groups {
    /// The columns of a row group.
    pub(super) fn encode(&self, cells: &mut Cells) -> Result<Vec<ArrowColumnChunk>, Error> {
        let failed = |error: ParquetError| Error::invalid(error.to_string());
        let writers = self.factory.create_column_writers(0).map_err(failed)?;
        let columns = self.fields.iter().zip(cells.columns_mut());
        let mut chunks = Vec::new();
        for (((field, kind), column), mut writer) in columns.zip(writers) {
            let array = array(field.name(), *kind, column)?;
            let write = || {
                compute_leaves(field, &array)?.iter().try_for_each(|leaf| writer.write(leaf))?;
                writer.close()
            };
            chunks.push(write().map_err(failed)?);
        }
        Ok(chunks)
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text => DataType::Utf8,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Truth => DataType::Boolean,
        Kind::Decimal(scale) => DataType::Decimal128(DECIMAL_DIGITS as u8, scale as i8),
    }
}

/// A column as an array of its kind.
fn array(name: &str, kind: Kind, column: &mut Column) -> Result<ArrayRef, Error> {
    let values = match column {
        Column::Texts(texts) => return strings(name, mem::take(texts)),
        Column::Values(values) => mem::take(values),
    };
    let nulls: NullBuffer = values.iter().map(|value| *value != Value::Null).collect();
    let refused = |cell: &Value<'_>| {
        let text = String::from_utf8_lossy(&cell.to_text()).into_owned();
        Error::invalid(format!("{name}: {text} is not of the column's type"))
    };
    Ok(match kind {
        Kind::Text => {
            let mut texts = Texts::default();
            for value in &values {
                texts.push((*value != Value::Null).then(|| value.to_text()).as_deref());
            }
            return strings(name, texts);
        }
        Kind::Int => {
            let int = |cell: &Value<'_>| match cell {
                Value::Null => Ok(0),
                Value::I64(value) => Ok(*value),
                Value::I128(value) => i64::try_from(*value).map_err(|_| refused(cell)),
                cell => Err(refused(cell)),
            };
            let ints: Vec<i64> = values.iter().map(int).collect::<Result<_, _>>()?;
            Arc::new(PrimitiveArray::<Int64Type>::new(ScalarBuffer::from(ints), Some(nulls)))
        }
        Kind::Float => {
            let float = |cell: &Value<'_>| match cell {
                Value::Null => Ok(0.0),
                Value::F64(value) => Ok(*value),
                Value::I64(value) => Ok(*value as f64),
                Value::I128(_) | Value::F32(_) | Value::Decimal(_) => Ok(cell.as_f64().unwrap_or(f64::NAN)),
                cell => Err(refused(cell)),
            };
            let floats: Vec<f64> = values.iter().map(float).collect::<Result<_, _>>()?;
            Arc::new(PrimitiveArray::<Float64Type>::new(ScalarBuffer::from(floats), Some(nulls)))
        }
        Kind::Truth => {
            let truth = |cell: &Value<'_>| match cell {
                Value::Null => Ok(false),
                Value::Bool(value) => Ok(*value),
                cell => Err(refused(cell)),
            };
            let truths = values.iter().map(truth).collect::<Result<Vec<bool>, _>>()?;
            Arc::new(BooleanArray::new(BooleanBuffer::from(truths), Some(nulls)))
        }
        Kind::Decimal(scale) => {
            let decimals: Vec<i128> =
                values.iter().map(|cell| decimal(name, cell, scale)).collect::<Result<_, _>>()?;
            let array = PrimitiveArray::<Decimal128Type>::new(ScalarBuffer::from(decimals), Some(nulls));
            Arc::new(array.with_data_type(data_type(kind)))
        }
    })
}

/// A number in units of its column's last digit.
fn decimal(name: &str, cell: &Value<'_>, scale: u8) -> Result<i128, Error> {
    if *cell == Value::Null {
        return Ok(0);
    }
    let text = cell.to_text();
    units(&text, scale).ok_or_else(|| {
        let text = String::from_utf8_lossy(&text);
        Error::invalid(format!(
            "{name}: {text} has more than {DECIMAL_DIGITS} digits, of which {scale} stand after the point; write .csv \
             or .jsonl"
        ))
    })
}

/// Texts as what Parquet has: Unicode.
fn strings(name: &str, texts: Texts) -> Result<ArrayRef, Error> {
    let is_unicode = |text: Option<&[u8]>| text.is_none_or(|text| std::str::from_utf8(text).is_ok());
    // All at once first: there may be none but letters of a byte.
    if !texts.bytes.is_ascii()
        && let Some(row) = (0..texts.ends.len()).find(|row| !is_unicode(texts.get(*row)))
    {
        let text = texts.get(row).unwrap_or_default();
        return Err(Error::invalid(format!(
            "{name}: {:?} is not UTF-8, as texts of Parquet are; write .csv or .jsonl",
            String::from_utf8_lossy(&text[..text.len().min(64)])
        )));
    }
    let long = |_| Error::invalid(format!("{name}: the texts of a row group are too long together"));
    let ends = std::iter::once(&0).chain(&texts.ends).map(|end| i32::try_from(*end));
    let offsets = ends.collect::<Result<Vec<i32>, _>>().map_err(long)?;
    let nulls: NullBuffer = texts.nulls.iter().map(|is_null| !is_null).collect();
    let (offsets, bytes) = (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(texts.bytes));
    let strings = StringArray::try_new(offsets, bytes, Some(nulls));
    strings.map(|strings| Arc::new(strings) as ArrayRef).map_err(|error| Error::invalid(error.to_string()))
}

/// A failure to write to `path`.
fn failure(path: &Path, error: ParquetError) -> Error {
    Error::io("write", path, &std::io::Error::other(error))
}
