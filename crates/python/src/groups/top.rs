//! [`Top`]: the groups with the greatest answers of one function. Only those are kept, each copied out of its batch.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, SchemaRef};
use forebay::{Error, Result};
use forebay_aggregate::AnswerKind;
use forebay_aggregate::ordered::Number;

/// See the module.
pub(super) struct Top {
    column: usize,
    kind: AnswerKind,
    count: usize,
    /// The least of the greatest first.
    best: BinaryHeap<Reverse<Placed>>,
}

/// A value, in the order of its type.
#[derive(PartialEq)]
enum Rank {
    Whole(i128),
    Float(f64),
    /// Of an exact number that comes as a text.
    Number(Number),
    Text(Vec<u8>),
}

struct Placed {
    rank: Rank,
    row: RecordBatch,
}

impl Rank {
    /// That of a row; nulls have none, and neither has what is not a number.
    fn of(column: &ArrayRef, row: usize, kind: AnswerKind) -> Option<Self> {
        if column.is_null(row) {
            return None;
        }
        match column.data_type() {
            DataType::Int64 => Some(Self::Whole(column.as_primitive::<Int64Type>().value(row).into())),
            DataType::Decimal128(..) => Some(Self::Whole(column.as_primitive::<Decimal128Type>().value(row))),
            DataType::Boolean => Some(Self::Whole(column.as_boolean().value(row).into())),
            DataType::Float64 => {
                let value = column.as_primitive::<Float64Type>().value(row);
                (!value.is_nan()).then_some(Self::Float(value))
            }
            DataType::Utf8 if kind == AnswerKind::Number => {
                let number = Number::parse(column.as_string::<i32>().value(row));
                number.filter(|number| !number.as_f64().is_nan()).map(Self::Number)
            }
            DataType::Utf8 => Some(Self::Text(column.as_string::<i32>().value(row).as_bytes().to_vec())),
            DataType::Binary => Some(Self::Text(column.as_binary::<i32>().value(row).to_vec())),
            _ => None,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(other),
            (Self::Float(one), Self::Float(other)) => one.total_cmp(other),
            (Self::Number(one), Self::Number(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        }
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.order(&other.rank)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Placed {}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Bug(format!("rows cannot be copied: {error}"))
}

impl Top {
    /// None yet, of so many, by a column of answers of this kind.
    pub(super) fn new(column: usize, kind: AnswerKind, count: usize) -> Self {
        Self { column, kind, count, best: BinaryHeap::new() }
    }

    /// Whether answers of this type are put in order.
    pub(super) fn is_ordered(kind: &DataType) -> bool {
        use DataType::{Binary, Boolean, Decimal128, Float64, Int64, Utf8};
        matches!(kind, Int64 | Decimal128(..) | Boolean | Float64 | Utf8 | Binary)
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = batch.column(self.column);
        for at in 0..batch.num_rows() {
            let Some(rank) = Rank::of(column, at, self.kind) else { continue };
            let is_full = self.best.len() >= self.count;
            let is_greater =
                self.best.peek().is_some_and(|Reverse(least)| rank.order(&least.rank) == Ordering::Greater);
            if is_full && !is_greater {
                continue;
            }
            let place = UInt64Array::from(vec![at as u64]);
            let row = arrow_select::take::take_record_batch(batch, &place).map_err(failed)?;
            if is_full {
                self.best.pop();
            }
            self.best.push(Reverse(Placed { rank, row }));
            debug_assert!(self.best.len() <= self.count, "no more are kept than are asked for");
        }
        Ok(())
    }

    /// The greatest first.
    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let best = self.best.into_sorted_vec();
        let rows = best.iter().map(|Reverse(placed)| &placed.row);
        arrow_select::concat::concat_batches(schema, rows).map_err(failed)
    }
}
