//! [`StateRows`]: rows of Arrow's as bytes, each by itself, and back. They are kept in files: `docs/format`.
//!
//! A row is its values in the order of the columns. A value is a byte, 0 for a null and 1 before another, and
//!
//! - of a type of a fixed length its bytes, little-endian; of a truth 0 or 1;
//! - of texts and bytes a varint length and the bytes;
//! - of lists a varint number, and so many values.
//!
//! **Invariant:** no bytes make a call panic, or take more memory than a few times their number.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch, RecordBatchOptions, make_array};
use arrow_array::{OffsetSizeTrait, builder::BinaryBuilder, new_empty_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, Schema, SchemaRef};
use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

/// Lists in lists go no deeper.
const DEPTH_MAX: usize = 4;

/// Rows of one call take no more, as offsets have 32 bits.
const CALL_BYTES_MAX: usize = i32::MAX as usize;

fn too_long() -> Error {
    Error::invalid("the states of one call take more than 2 GiB; give fewer rows at once")
}

/// The columns of states.
#[derive(Debug)]
pub struct StateRows(SchemaRef);

impl StateRows {
    /// Those of these names and types: numbers, truths, times, decimals, texts, bytes, and lists of these. Texts and bytes
    /// come back with offsets of 32 bits, lists too; whatever goes in may be laid out otherwise.
    pub fn new(columns: Fields) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::invalid("a state has one column at least"));
        }
        let known = |column: &FieldRef| {
            let kind = plain(column.data_type(), 0).ok_or_else(|| {
                Error::invalid(format!(
                    "column `{}` of the state is of type {}, which is not kept",
                    column.name(),
                    column.data_type()
                ))
            })?;
            // The text of a type of states ends where its brackets do.
            if !is_closed(column.name()) {
                return Err(Error::invalid(format!(
                    "the name of column `{}` of the state has a bracket without its other one; rename it",
                    column.name()
                )));
            }
            Ok(column.as_ref().clone().with_data_type(kind).with_nullable(true))
        };
        let columns = columns.iter().map(known).collect::<Result<Vec<_>>>()?;
        Ok(Self(Arc::new(Schema::new(columns))))
    }

    /// The columns, as [`decode`](Self::decode) gives them.
    pub fn schema(&self) -> &SchemaRef {
        &self.0
    }

    /// The bytes of each row; or says which column is missing or of another type, or that they are too long together.
    /// Other columns do not count.
    pub fn encode(&self, rows: &RecordBatch) -> Result<BinaryArray> {
        let lanes = self.0.fields().iter().map(|field| {
            let told = || format!("column `{}`: of type {} is expected", field.name(), field.data_type());
            let column = rows.column_by_name(field.name());
            let column = column.ok_or_else(|| Error::invalid(format!("{}, and there is none", told())))?;
            if plain(column.data_type(), 0).as_ref() != Some(field.data_type()) {
                return Err(Error::invalid(format!("{}, and {} is there", told(), column.data_type())));
            }
            Lane::new(column).ok_or_else(|| Error::invalid(format!("{}, and cannot be read", told())))
        });
        let lanes = lanes.collect::<Result<Vec<_>>>()?;
        let mut out = BinaryBuilder::new();
        let (mut row, mut bytes) = (Vec::new(), 0);
        for at in 0..rows.num_rows() {
            row.clear();
            lanes.iter().for_each(|lane| lane.put(at, &mut row));
            bytes += row.len();
            if bytes > CALL_BYTES_MAX {
                return Err(too_long());
            }
            out.append_value(&row);
        }
        Ok(out.finish())
    }

    /// The rows of these bytes.
    pub fn decode(&self, rows: &[&[u8]]) -> Result<RecordBatch> {
        let mut built: Vec<Build> =
            self.0.fields().iter().map(|field| Build::new(field.data_type())).collect();
        for row in rows {
            let mut reader = Reader::new(row);
            let read = built.iter_mut().try_for_each(|built| built.read(&mut reader));
            if read.is_none() && rows.iter().map(|row| row.len()).sum::<usize>() > CALL_BYTES_MAX {
                return Err(too_long());
            }
            if read.is_none() || reader.remaining() > 0 {
                return Err(Error::invalid(format!("{} bytes are no row of {self}", row.len())));
            }
        }
        let columns = built.into_iter().map(Build::finish).collect::<Result<Vec<_>, ArrowError>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        columns
            .and_then(|columns| {
                RecordBatch::try_new_with_options(SchemaRef::clone(&self.0), columns, &options)
            })
            .map_err(|error| Error::invalid(format!("states are no rows of {self}: {error}")))
    }

    /// Whether these bytes are a row.
    pub fn is_sound(&self, row: &[u8]) -> bool {
        let mut reader = Reader::new(row);
        let mut kinds = self.0.fields().iter().map(|field| field.data_type());
        kinds.all(|kind| pass(kind, &mut reader).is_some()) && reader.remaining() == 0
    }
}

/// Names and types, as they stand in the type of a state.
impl fmt::Display for StateRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, field) in self.0.fields().iter().enumerate() {
            let separator = if at == 0 { "" } else { ";" };
            write!(f, "{separator}{}:{}", field.name(), field.data_type())?;
        }
        Ok(())
    }
}

/// Whether each bracket that opens closes behind that.
fn is_closed(name: &str) -> bool {
    let deeper = |depth: usize, byte| match byte {
        b'(' => Some(depth + 1),
        b')' => depth.checked_sub(1),
        _ => Some(depth),
    };
    name.bytes().try_fold(0, deeper) == Some(0)
}

/// A type as it comes back, if its values are kept.
fn plain(kind: &DataType, depth: usize) -> Option<DataType> {
    Some(match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Boolean => DataType::Boolean,
        DataType::List(item) | DataType::LargeList(item) if depth < DEPTH_MAX => {
            DataType::new_list(plain(item.data_type(), depth + 1)?, true)
        }
        DataType::Interval(_) => return None,
        kind => {
            kind.primitive_width()?;
            kind.clone()
        }
    })
}

/// A column that is read.
struct Lane<'a> {
    nulls: Option<NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Fixed(usize, Buffer),
    Truths(&'a BooleanArray),
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    Lists(Vec<usize>, Box<Lane<'a>>),
}

impl<'a> Lane<'a> {
    fn new(array: &'a ArrayRef) -> Option<Self> {
        let values = match array.data_type() {
            DataType::Boolean => Values::Truths(array.as_boolean_opt()?),
            DataType::Utf8 => {
                let texts = array.as_string_opt::<i32>()?;
                Values::Bytes(Box::new(|at| texts.value(at).as_bytes()))
            }
            DataType::LargeUtf8 => {
                let texts = array.as_string_opt::<i64>()?;
                Values::Bytes(Box::new(|at| texts.value(at).as_bytes()))
            }
            DataType::Utf8View => {
                let texts = array.as_string_view_opt()?;
                Values::Bytes(Box::new(|at| texts.value(at).as_bytes()))
            }
            DataType::Binary => {
                let bytes = array.as_binary_opt::<i32>()?;
                Values::Bytes(Box::new(|at| bytes.value(at)))
            }
            DataType::LargeBinary => {
                let bytes = array.as_binary_opt::<i64>()?;
                Values::Bytes(Box::new(|at| bytes.value(at)))
            }
            DataType::BinaryView => {
                let bytes = array.as_binary_view_opt()?;
                Values::Bytes(Box::new(|at| bytes.value(at)))
            }
            DataType::List(_) => Self::lists::<i32>(array)?,
            DataType::LargeList(_) => Self::lists::<i64>(array)?,
            kind => {
                let width = kind.primitive_width()?;
                let data = array.to_data();
                let (offset, bytes) = (data.offset() * width, array.len() * width);
                let values = data.buffers().first().filter(|values| values.len() >= offset + bytes)?;
                Values::Fixed(width, values.slice_with_length(offset, bytes))
            }
        };
        Some(Self { nulls: array.nulls().cloned(), values })
    }

    fn lists<O: OffsetSizeTrait>(array: &'a ArrayRef) -> Option<Values<'a>> {
        let lists = array.as_list_opt::<O>()?;
        let bounds = lists.value_offsets().iter().map(|bound| bound.as_usize()).collect();
        Some(Values::Lists(bounds, Box::new(Self::new(lists.values())?)))
    }

    fn put(&self, at: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            out.push(0);
            return;
        }
        out.push(1);
        match &self.values {
            Values::Fixed(width, values) => out.extend_from_slice(&values[at * width..][..*width]),
            Values::Truths(truths) => out.push(truths.value(at).into()),
            Values::Bytes(value) => put_bytes(out, value(at)),
            Values::Lists(bounds, items) => {
                let (start, end) = (bounds[at], bounds[at + 1]);
                put_varint(out, (end - start) as u64);
                (start..end).for_each(|item| items.put(item, out));
            }
        }
    }
}

/// A column that is made.
struct Build {
    kind: DataType,
    present: Vec<bool>,
    /// What stands in its buffer: the values; of truths a byte each.
    values: Vec<u8>,
    /// Of texts, bytes and lists.
    bounds: Vec<i32>,
    items: Option<Box<Build>>,
}

impl Build {
    fn new(kind: &DataType) -> Self {
        let items = match kind {
            DataType::List(item) => Some(Box::new(Self::new(item.data_type()))),
            _ => None,
        };
        Self { kind: kind.clone(), present: Vec::new(), values: Vec::new(), bounds: vec![0], items }
    }

    fn read(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let is_present = truth(reader)?;
        self.present.push(is_present);
        if let Some(items) = &mut self.items {
            let count = if is_present { reader.varint()? } else { 0 };
            (0..count).try_for_each(|_| items.read(reader))?;
            self.bounds.push(i32::try_from(items.present.len()).ok()?);
            return Some(());
        }
        match self.kind.primitive_width() {
            Some(width) if is_present => self.values.extend_from_slice(reader.take(width)?),
            Some(width) => self.values.resize(self.values.len() + width, 0),
            None if self.kind == DataType::Boolean => {
                self.values.push((is_present && truth(reader)?).into());
            }
            None => {
                self.values.extend_from_slice(if is_present { reader.bytes()? } else { &[] });
                self.bounds.push(i32::try_from(self.values.len()).ok()?);
            }
        }
        Some(())
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.present.contains(&false).then(|| NullBuffer::from(&self.present[..]));
        if self.kind == DataType::Boolean {
            let truths = self.values.iter().map(|truth| *truth == 1).collect::<Vec<_>>();
            return Ok(Arc::new(BooleanArray::new(truths.into(), nulls)));
        }
        let data = new_empty_array(&self.kind).to_data().into_builder().buffers(Vec::new());
        let data = data.child_data(Vec::new()).len(self.present.len()).nulls(nulls).align_buffers(true);
        let data = match self.items {
            Some(items) => {
                data.add_buffer(Buffer::from_vec(self.bounds)).add_child_data(items.finish()?.to_data())
            }
            None if self.kind.primitive_width().is_some() => data.add_buffer(Buffer::from_vec(self.values)),
            None => data.add_buffer(Buffer::from_vec(self.bounds)).add_buffer(Buffer::from_vec(self.values)),
        };
        Ok(make_array(data.build()?))
    }
}

fn truth(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Passes by a value, which is one of its type.
fn pass(kind: &DataType, reader: &mut Reader<'_>) -> Option<()> {
    if !truth(reader)? {
        return Some(());
    }
    match kind {
        DataType::Boolean => truth(reader).map(drop),
        DataType::Utf8 => std::str::from_utf8(reader.bytes()?).ok().map(drop),
        DataType::Binary => reader.bytes().map(drop),
        DataType::List(item) => {
            let count = reader.varint()?;
            (0..count).try_for_each(|_| pass(item.data_type(), reader))
        }
        kind => reader.take(kind.primitive_width()?).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{Int32Builder, LargeListBuilder, ListBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{Decimal128Array, Float32Array, ListArray, StringViewArray};
    use arrow_schema::Field;

    fn rows() -> RecordBatch {
        let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
        lists.append_value([Some(vec![Some(1), None]), None, Some(vec![])]);
        lists.append_null();
        lists.append_value([Some(vec![Some(7)])]);
        RecordBatch::try_from_iter([
            (
                "t",
                Arc::new(StringViewArray::from(vec![
                    Some("a text that is too long for a view"),
                    None,
                    Some(""),
                ])) as ArrayRef,
            ),
            ("b", Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"\xff"), Some(b"")]))),
            ("f", Arc::new(Float32Array::from(vec![Some(f32::NAN), Some(-0.0), None]))),
            ("d", Arc::new(Decimal128Array::from(vec![Some(-5), None, Some(7)]))),
            ("o", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
            ("l", Arc::new(lists.finish())),
        ])
        .expect("a batch")
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let batch = rows();
        let kinds = StateRows::new(batch.schema().fields().clone()).expect("known types");
        let whole = kinds.encode(&batch).expect("rows");
        let back = kinds.decode(&whole.iter().flatten().collect::<Vec<_>>()).expect("rows");
        assert_eq!(back.column(0).as_string::<i32>().value(0), "a text that is too long for a view");
        assert!(back.column(2).as_primitive::<arrow_array::types::Float32Type>().value(0).is_nan());
        for (was, is) in batch
            .columns()
            .iter()
            .zip(back.columns())
            .skip(1)
            .filter(|(was, _)| was.data_type() != &DataType::Float32)
        {
            assert_eq!(was.to_data(), is.to_data());
        }
        // Slices are their rows.
        let one = kinds.encode(&batch.slice(2, 1)).expect("a row");
        assert_eq!(one.value(0), whole.value(2));
        assert!(kinds.decode(&[]).expect("no rows").num_rows() == 0);
        // Damage is told, wherever it is, and a part of a row is no row.
        for at in 0..whole.value(0).len() {
            let part = &whole.value(0)[..at];
            assert!(!kinds.is_sound(part) && kinds.decode(&[part]).is_err());
            for damage in [0, 1, 2, 0x7f, 0xff] {
                let mut damaged = whole.value(0).to_vec();
                damaged[at] = damage;
                assert_eq!(kinds.is_sound(&damaged), kinds.decode(&[&damaged]).is_ok(), "{at} {damage}");
            }
        }
    }

    #[test]
    fn other_layouts_are_taken_and_other_types_told() {
        let kinds = |kind| StateRows::new(vec![Field::new("l", kind, false)].into());
        let of_lists = kinds(DataType::new_list(DataType::Int32, false)).expect("a list");
        let mut large = LargeListBuilder::new(Int32Builder::new());
        large.append_value([Some(3)]);
        let batch =
            RecordBatch::try_from_iter([("l", Arc::new(large.finish()) as ArrayRef)]).expect("a batch");
        let row = of_lists.encode(&batch).expect("a row");
        let back = of_lists.decode(&[row.value(0)]).expect("a row");
        let expected = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(3)])]);
        assert_eq!(back.column(0).as_list::<i32>(), &expected);
        let told = of_lists.encode(&rows().project(&[0]).expect("a column")).expect_err("no such column");
        assert!(told.to_string().contains("column `l`"), "{told}");
        let ints = kinds(DataType::Int64).expect("a number");
        assert!(ints.encode(&batch).expect_err("lists").to_string().contains("Int64 is expected"));
        let text = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        assert!(kinds(text).is_err() && StateRows::new(Fields::empty()).is_err());
        assert!(kinds((0..6).fold(DataType::Int8, |kind, _| DataType::new_list(kind, true))).is_err());
    }

    /// The type of states was one that nobody knows: where no program had named the function, no table took writes.
    #[test]
    fn names_of_columns_whose_brackets_are_not_closed_are_refused() {
        let kinds = |name| StateRows::new(vec![Field::new(name, DataType::Int64, false)].into());
        for name in ["a(", "a)", ")a(", "a(()"] {
            let told = kinds(name).expect_err("a bracket alone").to_string();
            assert!(told.contains(&format!("column `{name}`")), "{told}");
        }
        for name in ["n (of rows)", "a,b", "a=b", "f(g(x), y)"] {
            let kind = crate::StateType::new("own.f", 1).with("state", kinds(name).expect("closed"));
            let composite = format!("composite/1(0={kind},1=count/1)");
            let found = crate::BuiltIn::of(&composite).expect("lists, and a count");
            assert_eq!(found.unfinished(), ["own.f"]);
        }
    }
}
