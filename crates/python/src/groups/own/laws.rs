//! The laws of a function in Python, checked over some rows: states of rows, however they are merged, answer what all
//! rows at once do, and groups do not mix.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use pyo3::prelude::*;

use super::{Own, value_at};
use crate::failure::{Failure, Outcome};

/// Raises Invalid where a law does not hold over these rows.
pub(super) fn check(py: Python<'_>, own: &Own, values: &RecordBatch) -> Outcome<()> {
    let rows = values.num_rows();
    if rows == 0 {
        return Ok(());
    }
    let laws = Laws { py, own };
    let numbers = |number: &dyn Fn(usize) -> usize| -> UInt32Array {
        (0..rows).map(|row| number(row) as u32).collect::<Vec<_>>().into()
    };
    let (alone, together) = (numbers(&|row| row), numbers(&|_| 0));
    // Of more groups each has a row.
    let (two, three) = (2.min(rows), 3.min(rows));
    let (apart, parts) = (numbers(&|row| row % two), numbers(&|row| row * three / rows));
    let states = own.update(py, values.clone(), &alone, rows)?;
    let all = laws.answers(&own.update(py, values.clone(), &together, 1)?)?;
    let each = laws.answers(&states)?;
    let merged = laws.merged(&states, &alone, rows)?;
    laws.hold("the merge of one state answers what the state does", &merged, &each)?;
    let merged = laws.merged(&states, &together, 1)?;
    laws.hold("the merge of the states of rows answers what all rows do", &merged, &all)?;
    let backwards = UInt64Array::from_iter_values((0..rows as u64).rev());
    let backwards = arrow_select::take::take(&states, &backwards, None)?;
    let merged = laws.merged(backwards.as_binary(), &together, 1)?;
    laws.hold("the merge does not hang on the order of states", &merged, &all)?;
    let of_parts = laws.merge(&states, &parts, three)?;
    let merged = laws.merged(&of_parts, &UInt32Array::from(vec![0; three]), 1)?;
    laws.hold("merged states merge as those that they are of", &merged, &all)?;
    let expected = laws.answers(&own.update(py, values.clone(), &apart, two)?)?;
    let merged = laws.merged(&states, &apart, two)?;
    laws.hold("groups do not mix", &merged, &expected)
}

struct Laws<'py, 'o> {
    py: Python<'py>,
    own: &'o Own,
}

impl Laws<'_, '_> {
    fn answers(&self, states: &BinaryArray) -> Outcome<ArrayRef> {
        self.own.evaluate(self.py, self.own.decoded(&states.iter().flatten().collect::<Vec<_>>())?)
    }

    fn merge(&self, states: &BinaryArray, groups: &UInt32Array, count: usize) -> Outcome<BinaryArray> {
        let states = self.own.decoded(&states.iter().flatten().collect::<Vec<_>>())?;
        self.own.merge(self.py, states, groups, count)
    }

    fn merged(&self, states: &BinaryArray, groups: &UInt32Array, count: usize) -> Outcome<ArrayRef> {
        self.answers(&self.merge(states, groups, count)?)
    }

    fn hold(&self, law: &str, found: &ArrayRef, expected: &ArrayRef) -> Outcome<()> {
        debug_assert_eq!(found.len(), expected.len(), "as many answers as groups");
        let Some(tolerance) = self.own.tolerance else { return Ok(()) };
        let differs = |at: &usize| !is_like(&found.slice(*at, 1), &expected.slice(*at, 1), tolerance);
        let Some(at) = (0..found.len()).find(differs) else { return Ok(()) };
        let shown = |array| match value_at(self.py, array, at) {
            Ok(value) => value.repr().map_or_else(|_| "?".into(), |text| text.to_string()),
            Err(_) => format!("{:?}", array.slice(at, 1)),
        };
        Err(Failure::invalid(format!(
            "function `{}` breaks a law: {law}; here it is {}, where {} is expected (`tolerance` is {tolerance})",
            self.own.name,
            shown(found),
            shown(expected),
        )))
    }
}

/// Whether answers are the same, but for rounding.
fn is_like(one: &ArrayRef, other: &ArrayRef, tolerance: f64) -> bool {
    let is_near = |one: f64, other: f64| {
        one == other
            || one.is_nan() && other.is_nan()
            || (one - other).abs() <= tolerance * one.abs().max(other.abs()).max(1.0)
    };
    let near = |(one, other): (Option<f64>, Option<f64>)| match (one, other) {
        (Some(one), Some(other)) => is_near(one, other),
        (one, other) => one == other,
    };
    match one.data_type() {
        _ if one.len() != other.len() => false,
        DataType::Float64 => {
            let [one, other] = [one, other].map(|array| array.as_primitive::<Float64Type>().iter());
            one.zip(other).all(near)
        }
        DataType::Float32 => {
            let [one, other] = [one, other]
                .map(|array| array.as_primitive::<Float32Type>().iter().map(|v| v.map(f64::from)));
            one.zip(other).all(near)
        }
        DataType::List(_) => {
            one.as_list::<i32>().iter().zip(other.as_list::<i32>().iter()).all(|pair| match pair {
                (Some(one), Some(other)) => is_like(&one, &other, tolerance),
                (one, other) => one.is_none() && other.is_none(),
            })
        }
        _ => one.to_data() == other.to_data(),
    }
}
