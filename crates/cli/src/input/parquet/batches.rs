//! Rows of Parquet by columns, as aggregation takes them: numbers as what they are, texts as they lie in the file
//! ([texts](super::texts)). All else is its text.

use std::sync::Arc;

use forebay::Error;
use forebay_aggregate::columns::{Bits, Items, Lane, Rows, Texts};
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType as ParquetType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{FileReader, RowGroupReader};

use super::text::Form;
use super::texts::TextColumn;
use super::{BATCH_ROWS, Chosen, Groups, ParquetFile, guarded, whole};
use crate::input::{Position, Trouble};

/// A batch has fewer rows where they take more than about this in the file.
const BATCH_BYTES: usize = 2 << 20;

/// See the module.
pub(crate) struct ParquetBatches<F> {
    groups: Groups<F>,
    columns: Vec<Decoder>,
    batch_rows: usize,
    /// Rows that are decoded.
    rows: usize,
    /// How many of them are passed over, and how many behind them are to be.
    passed: usize,
    to_pass: u64,
}

impl<F: FnMut(u64)> ParquetBatches<F> {
    /// The rows of a file's groups, none at first.
    pub(crate) fn of(file: &ParquetFile, read: F) -> Self {
        let columns = file.chosen.iter().cloned().map(|found| Decoder::new(Chosen::new(found))).collect();
        let groups = Groups::of(Arc::clone(&file.reader), 0..0, read);
        Self { groups, columns, batch_rows: 1, rows: 0, passed: 0, to_pass: 0 }
    }

    /// All rows of a file behind so many.
    pub(crate) fn behind(file: &ParquetFile, rows: u64, read: F) -> Self {
        let mut all = Self::of(file, read);
        all.to_pass = all.groups.go_behind(rows);
        all
    }

    /// Goes on with a row group.
    pub(crate) fn go_to(&mut self, group: usize) {
        (self.rows, self.passed) = (0, 0);
        self.groups.go_to(group..group + 1);
    }

    /// Decodes the next rows; `false` at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool, Trouble> {
        loop {
            self.groups.position.number += self.rows as u64;
            (self.rows, self.passed) = (0, 0);
            let decoded = guarded(|| self.decode());
            let has_rows = decoded.map_err(|error| self.groups.trouble(&error))?;
            let is_passed = has_rows && self.to_pass >= self.rows as u64;
            let passed = self.to_pass.min(self.rows as u64);
            self.to_pass -= passed;
            if !is_passed || self.rows == 0 {
                self.passed = passed as usize;
                return Ok(has_rows);
            }
        }
    }

    fn decode(&mut self) -> Result<bool, ParquetError> {
        let Self { groups, columns, batch_rows, .. } = self;
        let has_rows = groups.begin(|file, group| {
            let chunks = columns.iter().map(|column| group.metadata().column(column.chosen.place));
            let sizes = chunks.map(ColumnChunkMetaData::uncompressed_size);
            let bytes = sizes.fold(0, i64::saturating_add).try_into().unwrap_or(1);
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            *batch_rows = (BATCH_BYTES.saturating_mul(rows) / usize::max(bytes, 1)).clamp(1, BATCH_ROWS);
            columns.iter_mut().try_for_each(|column| column.begin(file.metadata(), group, *batch_rows))
        })?;
        let rows = groups.rows_left.min(*batch_rows);
        if has_rows {
            columns.iter_mut().try_for_each(|column| column.decode(rows))?;
            groups.rows_left -= rows;
            self.rows = rows;
        }
        Ok(has_rows)
    }

    /// The rows that are decoded, of which the first `keys` columns make the key.
    pub(crate) fn rows(&self, keys: usize) -> Result<Rows<'_>, Error> {
        let rows = Rows::new(self.columns.iter().map(Decoder::lane).collect::<Result<_, _>>()?, keys)?;
        Ok(if self.passed > 0 { rows.slice(self.passed, self.rows) } else { rows })
    }

    /// Where the row at this place stands.
    pub(crate) fn position(&self, at: usize) -> Position {
        let Position { number, offset } = self.before();
        Position { number: number + at as u64 + 1, offset }
    }

    /// How many rows there are before those that were shown last, or would be next: never fewer than are passed over.
    pub(crate) fn before(&self) -> Position {
        let Position { number, offset } = self.groups.position;
        Position { number: number + self.passed as u64 + self.to_pass, offset }
    }

    /// How many rows there are up to the last of these.
    pub(crate) fn end(&self) -> Position {
        let Position { number, offset } = self.groups.position;
        Position { number: number + self.rows as u64, offset }
    }
}

/// A column and its values.
struct Decoder {
    chosen: Chosen,
    values: Values,
    /// Which of them are values, where some are not: a bit each.
    valid: Option<Vec<u8>>,
}

enum Values {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Singles(Vec<f32>),
    Truths(Vec<bool>, Vec<u8>),
    Texts(Box<TextColumn>),
    /// Where the cells' texts begin and end.
    Cells(Vec<i32>),
}

impl Decoder {
    fn new(chosen: Chosen) -> Self {
        let column = &chosen.descriptor;
        let values = match (column.physical_type(), chosen.form) {
            (PhysicalType::INT32 | PhysicalType::INT64, Form::Plain) => Values::Ints(Vec::new()),
            (PhysicalType::INT32, Form::Unsigned) => Values::Ints(Vec::new()),
            (PhysicalType::DOUBLE, _) => Values::Floats(Vec::new()),
            (PhysicalType::FLOAT, _) => Values::Singles(Vec::new()),
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, Form::Half) if column.type_length() == 2 => {
                Values::Singles(Vec::new())
            }
            (PhysicalType::BOOLEAN, _) => Values::Truths(Vec::new(), Vec::new()),
            // Where nulls are not those of structures around it.
            (PhysicalType::BYTE_ARRAY, Form::Plain) if column.max_def_level() <= 1 => {
                Values::Texts(Box::default())
            }
            _ => Values::Cells(Vec::new()),
        };
        Self { chosen, values, valid: None }
    }

    fn begin(
        &mut self,
        file: &ParquetMetaData,
        group: &dyn RowGroupReader,
        batch_rows: usize,
    ) -> Result<(), ParquetError> {
        match &mut self.values {
            Values::Texts(texts) => texts.begin(&self.chosen, file, group, batch_rows),
            _ => self.chosen.begin(group),
        }
    }

    fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        let Self { chosen, values, valid } = self;
        *valid = None;
        let is_unsigned = chosen.form == Form::Unsigned;
        let present = chosen.descriptor.max_def_level();
        match (values, &mut chosen.reader) {
            (Values::Ints(values), Some(ColumnReader::Int64ColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| *value)?;
            }
            (Values::Ints(values), Some(ColumnReader::Int32ColumnReader(reader))) if is_unsigned => {
                *valid = fill(reader, present, rows, values, |value| value.cast_unsigned().into())?;
            }
            (Values::Ints(values), Some(ColumnReader::Int32ColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| i64::from(*value))?;
            }
            (Values::Floats(values), Some(ColumnReader::DoubleColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| *value)?;
            }
            (Values::Singles(values), Some(ColumnReader::FloatColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| *value)?;
            }
            (Values::Singles(values), Some(ColumnReader::FixedLenByteArrayColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| half(value.data()))?;
            }
            (Values::Truths(values, packed), Some(ColumnReader::BoolColumnReader(reader))) => {
                *valid = fill(reader, present, rows, values, |value| *value)?;
                *packed = bits(values.iter().copied());
            }
            (Values::Texts(texts), _) => texts.decode(rows)?,
            (Values::Cells(offsets), _) => {
                chosen.decode(rows)?;
                let (_, ends) = chosen.cells.all();
                offsets.clear();
                offsets.push(0);
                let long = || ParquetError::General("values of a column are too long together".into());
                for (end, _) in ends {
                    offsets.push(i32::try_from(end).map_err(|_| long())?);
                }
                let (_, ends) = chosen.cells.all();
                *valid = Some(bits(ends.map(|(_, is_value)| is_value)));
            }
            _ => return whole(0, rows),
        }
        Ok(())
    }

    fn lane(&self) -> Result<Lane<'_>, Error> {
        let items = match &self.values {
            Values::Ints(values) => Items::I64(values),
            Values::Floats(values) => Items::F64(values),
            Values::Singles(values) => Items::F32(values),
            Values::Truths(values, packed) => Items::Bool(Bits::new(packed, 0), values.len()),
            Values::Texts(texts) => return texts.lane(),
            Values::Cells(offsets) => Items::Bytes(Texts::new(offsets, self.chosen.cells.all().0)?),
        };
        Lane::new(items, self.valid.as_deref().map(|valid| Bits::new(valid, 0)))
    }
}

/// Decodes the next rows of a column; returns which are values, where some are not.
fn fill<T: ParquetType, V: Default>(
    reader: &mut ColumnReaderImpl<T>,
    present: i16,
    rows: usize,
    out: &mut Vec<V>,
    convert: impl Fn(&T::T) -> V,
) -> Result<Option<Vec<u8>>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::with_capacity(rows));
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    whole(read, rows)?;
    out.clear();
    if values.len() == rows {
        out.extend(values.iter().map(convert));
        return Ok(None);
    }
    let mut values = values.iter();
    let value = |level: &i16| if *level == present { values.next().map(&convert) } else { None };
    out.extend(levels.iter().map(value).map(Option::unwrap_or_default));
    Ok(Some(bits(levels.iter().map(|level| *level == present))))
}

/// A number of two bytes.
fn half(bytes: &[u8]) -> f32 {
    bytes.first_chunk().map_or(0.0, |bytes| half::f16::from_le_bytes(*bytes).to_f32())
}

fn bits(truths: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bits = Vec::new();
    for (at, truth) in truths.enumerate() {
        if at.is_multiple_of(8) {
            bits.push(0);
        }
        bits[at / 8] |= u8::from(truth) << (at % 8);
    }
    bits
}
