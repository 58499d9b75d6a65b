//! Answers of functions in Python, of lists of states: one merge and one evaluation for all of a record batch.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array, new_null_array};
use arrow_schema::DataType;
use forebay_aggregate::arrow::split_list;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString};

use super::Own;
use crate::failure::{Failure, Outcome};
use crate::kernel::called;

impl Own {
    /// What lists of states stand for, one for each; null for one without any. The thread is detached.
    pub(in crate::groups) fn answered(&self, lists: &ArrayRef) -> Outcome<ArrayRef> {
        let (mut states, mut groups, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0;
        let damaged = || Failure::invalid(format!("function `{}`: a list of states is damaged", self.name));
        let lists = lists.as_binary_opt::<i32>().ok_or_else(damaged)?;
        for list in lists {
            let list = split_list(list.unwrap_or(&[0])).ok_or_else(damaged)?;
            places.push((!list.is_empty()).then_some(u64::from(count)));
            groups.extend(list.iter().map(|_| count));
            count += u32::from(!list.is_empty());
            states.extend(list);
        }
        debug_assert_eq!(places.len(), lists.len(), "each list has a place");
        if count == 0 {
            return Ok(new_null_array(self.answer(), lists.len()));
        }
        let mut columns = self.decoded(&states)?;
        if states.len() > count as usize {
            let groups = UInt32Array::from(groups);
            let merged = called(|py| self.merge(py, columns, &groups, count as usize))?;
            columns = self.decoded(&merged.iter().flatten().collect::<Vec<_>>())?;
        }
        let answers = called(|py| self.evaluate(py, columns))?;
        match count as usize == lists.len() {
            true => Ok(answers),
            false => Ok(arrow_select::take::take(&answers, &UInt64Array::from(places), None)?),
        }
    }
}

/// A value of an array, as Python has it.
pub(in crate::groups) fn value_at<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    at: usize,
) -> Outcome<Bound<'py, PyAny>> {
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(at).into_pyobject(py)?.into_any()
        };
    }
    if array.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Boolean => PyBool::new(py, array.as_boolean().value(at)).to_owned().into_any(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Decimal128(..) => {
            let text = array.as_primitive::<Decimal128Type>().value_as_string(at);
            py.import("decimal")?.getattr("Decimal")?.call1((text,))?
        }
        DataType::Utf8 => PyString::new(py, array.as_string::<i32>().value(at)).into_any(),
        DataType::Binary => PyBytes::new(py, array.as_binary::<i32>().value(at)).into_any(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(at);
            let items = (0..items.len()).map(|at| value_at(py, &items, at)).collect::<Outcome<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        kind => {
            return Err(Failure::type_error(format!(
                "an answer of type {kind} comes in columns alone: get_many"
            )));
        }
    })
}
