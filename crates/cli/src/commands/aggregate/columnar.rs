//! Groups as a Parquet file: what they are grouped by as text, what they come to as numbers, truths or text. Some make a
//! row group, compressed with snappy.

use std::fs::File;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use forebay::Error;
use forebay_aggregate::Value;
use forebay_aggregate::arrow::units;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rapidhash::v3::rapidhash_v3;

use super::cells::{Cells, Column, Numbers, Texts};
use super::kinds::{DECIMAL_DIGITS, Kind};
use super::order::Arrangement;

/// A row group has this many rows, or fewer where they take this many bytes.
pub(super) const GROUP_ROWS: usize = 64 << 10;
pub(super) const GROUP_BYTES: usize = 8 << 20;

/// The file.
pub(super) struct Columnar(SerializedFileWriter<File>);

/// What makes row groups of cells.
pub(super) struct Groups {
    fields: Vec<(Arc<Field>, Kind)>,
    /// For columns with a dictionary, and for others.
    with_dictionaries: ArrowRowGroupWriterFactory,
    plain: ArrowRowGroupWriterFactory,
}

/// A column is written with a dictionary where each of its values comes this often or more, as far as some rows tell: so
/// many pieces of so many, side by side, since equal values may be.
const USES_MIN: usize = 4;
const SAMPLES: usize = 32;
const SAMPLE_ROWS: usize = 32;

impl Columnar {
    /// Begins a file of these columns.
    pub(super) fn begin(
        file: File,
        names: &[String],
        kinds: &[Kind],
        arrangement: Arrangement,
    ) -> Result<(Self, Groups), Error> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("forebay ", env!("CARGO_PKG_VERSION")).into());
        for (name, kind) in names.iter().zip(kinds) {
            // Where rows are in no order, every row group has texts from all over.
            if *kind == Kind::Text && arrangement == Arrangement::AsTheyCome {
                let path = ColumnPath::from(vec![name.clone()]);
                properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
            }
        }
        let plain = properties.clone().set_dictionary_enabled(false).build();
        let field =
            |(name, kind): (&String, &Kind)| (Arc::new(Field::new(name, data_type(*kind), true)), *kind);
        let fields: Vec<_> = names.iter().zip(kinds).map(field).collect();
        let schema = Schema::new(fields.iter().map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>());
        let begin = || {
            let written = ArrowSchemaConverter::new().schema_root("groups").convert(&schema)?;
            let writer =
                SerializedFileWriter::new(file, written.root_schema_ptr(), Arc::new(properties.build()))?;
            // A factory has what a writer is told.
            let other = SerializedFileWriter::new(io::sink(), written.root_schema_ptr(), Arc::new(plain))?;
            Ok((writer, other))
        };
        let (writer, other) = begin().map_err(|error: ParquetError| Error::invalid(error.to_string()))?;
        let schema = Arc::new(schema.clone());
        let with_dictionaries = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
        let plain = ArrowRowGroupWriterFactory::new(&other, schema);
        Ok((Self(writer), Groups { fields, with_dictionaries, plain }))
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
        let writers = [&self.with_dictionaries, &self.plain].map(|factory| factory.create_column_writers(0));
        let [with_dictionaries, plain] = writers;
        let writers = with_dictionaries.map_err(failed)?.into_iter().zip(plain.map_err(failed)?);
        let columns = self.fields.iter().zip(cells.columns_mut());
        let mut chunks = Vec::new();
        for (((field, kind), column), (with_dictionary, plain)) in columns.zip(writers) {
            let array = array(field.name(), *kind, column)?;
            let mut writer = if has_repeats(&array) { with_dictionary } else { plain };
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

/// Whether a dictionary of the values is worth it. Hardly any floating-point number comes again.
fn has_repeats(array: &ArrayRef) -> bool {
    let hash_of = |at: usize| match array.data_type() {
        _ if array.is_null(at) => Some(0),
        DataType::Utf8 => Some(rapidhash_v3(array.as_string::<i32>().value(at).as_bytes())),
        DataType::Int64 => Some(array.as_primitive::<Int64Type>().value(at).cast_unsigned()),
        DataType::Decimal128(..) => Some(array.as_primitive::<Decimal128Type>().value(at) as u64),
        _ => None,
    };
    let rows = array.len();
    let (pieces, length) = if rows <= SAMPLES * SAMPLE_ROWS { (1, rows) } else { (SAMPLES, SAMPLE_ROWS) };
    let looked_at = (0..pieces).flat_map(|piece| (piece * rows / pieces..).take(length));
    let Some(mut hashes) = looked_at.map(hash_of).collect::<Option<Vec<u64>>>() else { return false };
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    let repeats = count - hashes.len();
    // The fewer values there are, the more of some are equal by chance.
    repeats * USES_MIN > count * (USES_MIN - 1) || 2 * repeats * rows > USES_MIN * count * count
}

/// A column as an array of its kind.
fn array(name: &str, kind: Kind, column: &mut Column) -> Result<ArrayRef, Error> {
    let refused = |cell: &Value<'_>| {
        let text = String::from_utf8_lossy(&cell.to_text()).into_owned();
        Error::invalid(format!("{name}: {text} is not of the column's type"))
    };
    let values = match column {
        Column::Texts(texts) => return strings(name, mem::take(texts)),
        Column::Ints(ints) => {
            return Ok(Arc::new(numbers::<Int64Type>(ints).map_err(|cell| refused(&cell))?));
        }
        Column::Floats(floats) => {
            return Ok(Arc::new(numbers::<Float64Type>(floats).map_err(|cell| refused(&cell))?));
        }
        Column::Values(values) => mem::take(values),
    };
    let nulls = nulls(&values, |value| *value == Value::Null);
    Ok(match kind {
        Kind::Text => {
            let mut texts = Texts::default();
            for value in &values {
                texts.push((*value != Value::Null).then(|| value.to_text()).as_deref());
            }
            return strings(name, texts);
        }
        Kind::Int | Kind::Float => return Err(Error::bug("numbers are in columns of numbers")),
        Kind::Truth => {
            let truth = |cell: &Value<'_>| match cell {
                Value::Null => Ok(false),
                Value::Bool(value) => Ok(*value),
                cell => Err(refused(cell)),
            };
            let truths = values.iter().map(truth).collect::<Result<Vec<bool>, _>>()?;
            Arc::new(BooleanArray::new(BooleanBuffer::from(truths), nulls))
        }
        Kind::Decimal(scale) => {
            let decimals: Vec<i128> =
                values.iter().map(|cell| decimal(name, cell, scale)).collect::<Result<_, _>>()?;
            let array = PrimitiveArray::<Decimal128Type>::new(ScalarBuffer::from(decimals), nulls);
            Arc::new(array.with_data_type(data_type(kind)))
        }
    })
}

/// Numbers as an array, or what is among them that is no such number.
fn numbers<T: ArrowPrimitiveType>(
    column: &mut Numbers<T::Native>,
) -> Result<PrimitiveArray<T>, Value<'static>> {
    let Numbers { values, nulls: is_null, refused } = mem::take(column);
    let array = PrimitiveArray::new(ScalarBuffer::from(values), nulls(&is_null, |is_null| *is_null));
    refused.map_or(Ok(array), Err)
}

/// Which of some values are none; nothing where none is.
fn nulls<T>(values: &[T], is_null: impl Fn(&T) -> bool) -> Option<NullBuffer> {
    values.iter().any(&is_null).then(|| values.iter().map(|value| !is_null(value)).collect())
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
    let nulls = nulls(&texts.nulls, |is_null| *is_null);
    let (offsets, bytes) = (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(texts.bytes));
    let strings = StringArray::try_new(offsets, bytes, nulls);
    strings.map(|strings| Arc::new(strings) as ArrayRef).map_err(|error| Error::invalid(error.to_string()))
}

/// A failure to write to `path`.
fn failure(path: &Path, error: ParquetError) -> Error {
    Error::io("write", path, &io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: impl Iterator<Item = usize>) -> ArrayRef {
        Arc::new(StringArray::from_iter(values.map(|value| (value > 0).then(|| format!("text {value}")))))
    }

    #[test]
    fn a_dictionary_is_for_values_that_come_again() {
        for rows in [100, 1000, 5000, GROUP_ROWS] {
            let mixed = |row: usize, values: usize| 1 + row.wrapping_mul(0x9e37_79b9_7f4a_7c15) / 7 % values;
            assert!(!has_repeats(&texts(1..rows + 1)), "{rows} texts");
            assert!(
                !has_repeats(&texts((0..rows).map(|row| mixed(row, rows)))),
                "{rows} draws of {rows} texts"
            );
            assert!(has_repeats(&texts((0..rows).map(|row| row % 9))), "nine texts");
            assert!(has_repeats(&texts((0..rows).map(|row| mixed(row, rows / 20)))), "each 20 times");
            assert!(has_repeats(&texts((0..rows).map(|row| row / 20))), "each 20 times, in order");
            let ints = |values: Vec<i64>| Arc::new(PrimitiveArray::<Int64Type>::from(values)) as ArrayRef;
            assert!(has_repeats(&ints(vec![1; rows])));
            assert!(!has_repeats(&ints((0..rows as i64).collect())));
        }
    }

    #[test]
    fn a_number_of_another_type_is_refused() {
        let mut cells = Cells::new(0, 2).of_kinds(&[Kind::Int, Kind::Float]);
        let rows = [
            [Value::I128(5), Value::I64(2)],
            [Value::Null, Value::Null],
            [Value::F64(0.5), Value::Bool(true)],
        ];
        for row in rows {
            cells.values(0, row.into_iter());
            cells.end_row();
        }
        for (column, (kind, refused)) in
            cells.columns_mut().iter_mut().zip([(Kind::Int, "0.5"), (Kind::Float, "true")])
        {
            let error = array("name", kind, column).expect_err("it has another").to_string();
            assert!(error.contains(&format!("name: {refused} is not")), "{error}");
            assert_eq!(array("name", kind, column).expect("it is empty now").len(), 0);
        }
    }
}
