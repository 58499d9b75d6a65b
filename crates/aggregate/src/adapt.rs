//! Functions as the catalogue has them: where each finds its values in rows, what adds them up where they come by
//! columns, and what its answers look like.

use forebay_base::{Error, Result};

use crate::aggregate::Aggregate;
use crate::built_in::{bits, frequencies, number};
use crate::columns::{
    Accumulator, DistinctTexts, Extreme, ExtremeTexts, Floats, Folded, Kind, Paired, PresentCounts, Runs,
    Tops, Wanted,
};
use crate::fixed::FixedAggregate;
use crate::function::{Accumulate, Column, Function, over, over_columns};
use crate::functions::*;
use crate::number::{Number, NumberBytes};
use crate::optional::Lifted;
use crate::value::Value;

pub(crate) fn over_present(column: Column) -> Box<dyn Function> {
    let accumulate = by_column(&column, |_, at| Box::new(PresentCounts::new(at)));
    let find = move |count: &CountIf, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(count, Some(column.is_present(row)?), state)
    };
    over_columns(CountIf, find, Value::from, accumulate)
}

/// What adds up the values of a column, of a kind; nothing where there is no such column, so that rows tell.
pub(crate) fn by_column(
    column: &Column,
    make: impl Fn(Kind, usize) -> Box<dyn Accumulator> + Send + Sync + 'static,
) -> Accumulate {
    let at = column.index();
    Box::new(move |kinds| kinds.get(at).map(|kind| make(*kind, at)))
}

/// What a collection looks like.
pub(crate) fn collected(collected: Collected) -> Value<'static> {
    let mut values: Vec<Value<'static>> = collected.values.into_iter().map(Value::from).collect();
    if collected.is_cut {
        values.push(Value::Cut);
    }
    Value::List(values)
}

pub(crate) fn lift<'a, A: Aggregate>(
    function: &A,
    value: Option<A::Input<'a>>,
    state: &mut Vec<u8>,
) -> Result<Lifted> {
    let Some(value) = value else { return Ok(Lifted::Missing) };
    function.lift(value, state)?;
    Ok(Lifted::Present)
}

/// What is wrong, and what may be meant.
pub(crate) fn hinted(error: &Error, hint: &str) -> Error {
    Error::invalid(format!("{error}; {hint}"))
}

pub(crate) fn of_ints<A>(function: A, column: Column) -> Box<dyn Function>
where
    A: for<'a> Aggregate<Input<'a> = i128, Output = i128>,
{
    over(function, move |function, row, state| lift(function, column.int(row)?, state), bits)
}

pub(crate) fn of_truths<A>(function: A, column: Column) -> Box<dyn Function>
where
    A: for<'a> Aggregate<Input<'a> = bool, Output: Into<Value<'static>>>,
{
    over(function, move |function, row, state| lift(function, column.truth(row)?, state), A::Output::into)
}

pub(crate) fn of_numbers<A>(function: A, column: Column, wanted: Wanted) -> Box<dyn Function>
where
    A: for<'a> Aggregate<Input<'a> = NumberBytes, Output = NumberBytes>,
{
    let accumulate = by_column(&column, move |kind, at| Extreme::over(wanted, kind, at));
    let hint = match wanted {
        Wanted::Least => "min_text compares texts",
        Wanted::Greatest => "max_text compares texts",
    };
    let find = move |function: &A, row: &[Value<'_>], state: &mut Vec<u8>| {
        let number = column.number(row).map_err(|error| hinted(&error, hint))?;
        lift(function, number.map(Number::to_bytes), state)
    };
    over_columns(function, find, number, accumulate)
}

pub(crate) fn of_exact(column: Column) -> Box<dyn Function> {
    let accumulate = by_column(&column, SumDecimal::accumulator);
    let find = move |function: &SumDecimal, row: &[Value<'_>], state: &mut Vec<u8>| {
        let number = column.exact_number(row);
        let is_long = || matches!(column.number(row), Ok(Some(_)));
        let hint =
            |error: Error| if is_long() { hinted(&error, "fsum adds such numbers, rounded") } else { error };
        lift(function, number.map_err(hint)?, state)
    };
    over_columns(SumDecimal, find, |sum| sum, accumulate)
}

pub(crate) fn of_whole(column: Column) -> Box<dyn Function> {
    let at = column.index();
    let accumulate: Accumulate = Box::new(move |kinds| {
        matches!(kinds.get(at)?, Kind::I64)
            .then(|| Folded::over(Integers::<false>, at) as Box<dyn Accumulator>)
    });
    let find = move |function: &SumInt, row: &[Value<'_>], state: &mut Vec<u8>| {
        let hint = |error: Error| hinted(&error, "sum adds other numbers");
        lift(function, column.short_int(row).map_err(hint)?, state)
    };
    over_columns(SumInt, find, Value::from, accumulate)
}

pub(crate) fn of_float_columns<A>(function: A, column: Column) -> Box<dyn Function>
where
    A: for<'a> FixedAggregate<Input<'a> = f64, Output: Into<Value<'static>>> + Copy,
    A::State: Default + Send + Sync,
{
    let accumulate = by_column(&column, move |_, at| Folded::over(Floats(function), at));
    let find =
        move |function: &A, row: &[Value<'_>], state: &mut Vec<u8>| lift(function, column.float(row)?, state);
    over_columns(function, find, A::Output::into, accumulate)
}

pub(crate) fn quantile(function: ApproxQuantiles, column: Column) -> Box<dyn Function> {
    let kept = function.clone();
    let accumulate = by_column(&column, move |_, at| Runs::over(kept.clone(), at));
    let find = move |function: &ApproxQuantiles, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(function, column.float(row)?, state)
    };
    over_columns(function, find, |values| Value::from(values.first().copied()), accumulate)
}

pub(crate) fn of_floats<A: for<'a> Aggregate<Input<'a> = f64>>(
    function: A,
    column: Column,
    show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
) -> Box<dyn Function> {
    over(function, move |function, row, state| lift(function, column.float(row)?, state), show)
}

/// Of rows in which both have a value.
pub(crate) fn of_pairs(function: Correlation, column: Column, other: Column) -> Box<dyn Function> {
    let lanes = [column.index(), other.index()];
    let accumulate: Accumulate = Box::new(move |kinds| {
        let is_there = lanes.iter().all(|lane| *lane < kinds.len());
        is_there.then(|| Paired::over(function, lanes))
    });
    let find = move |function: &Correlation, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(function, column.float(row)?.zip(other.float(row)?), state)
    };
    over_columns(function, find, Value::from, accumulate)
}

pub(crate) fn of_extreme<A>(function: A, column: Column, wanted: Wanted) -> Box<dyn Function>
where
    A: for<'a> Aggregate<Input<'a> = &'a [u8], Output = Vec<u8>>,
{
    let accumulate = by_column(&column, move |_, at| ExtremeTexts::over(wanted, at));
    let find = move |function: &A, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(function, column.text(row)?.as_deref(), state)
    };
    over_columns(function, find, Value::from, accumulate)
}

pub(crate) fn top_k(function: TopK, column: Column, by: Column) -> Box<dyn Function> {
    let (most, lanes) = (function.items_max(), [column.index(), by.index()]);
    let accumulate: Accumulate = Box::new(move |kinds| {
        let [of, by] = lanes.map(|lane| kinds.get(lane).copied());
        Tops::over(most, lanes, [of?, by?], TopK::write)
    });
    let find = move |function: &TopK, row: &[Value<'_>], state: &mut Vec<u8>| {
        let (place, value) = (by.place(row)?, column.text(row)?);
        lift(function, place.as_deref().zip(value.as_deref()), state)
    };
    let show = |ranked: Vec<(Vec<u8>, Vec<u8>)>| {
        Value::List(ranked.into_iter().map(|(_, value)| Value::from(value)).collect())
    };
    over_columns(function, find, show, accumulate)
}

pub(crate) fn of_texts<A: for<'a> Aggregate<Input<'a> = &'a [u8]>>(
    function: A,
    column: Column,
    show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
) -> Box<dyn Function> {
    over(function, move |function, row, state| lift(function, column.text(row)?.as_deref(), state), show)
}

pub(crate) fn distinct(function: ApproxDistinct, column: Column) -> Box<dyn Function> {
    let accumulate = by_column(&column, move |_, at| DistinctTexts::over(function, at));
    let find = move |function: &ApproxDistinct, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(function, column.text(row)?.as_deref(), state)
    };
    over_columns(function, find, |count| Value::from(count.round() as u64), accumulate)
}

pub(crate) fn of_places<A: for<'a> Aggregate<Input<'a> = (&'a [u8], &'a [u8])>>(
    function: A,
    column: Column,
    by: Column,
    show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
) -> Box<dyn Function> {
    let find = move |function: &A, row: &[Value<'_>], state: &mut Vec<u8>| {
        let (place, value) = (by.place(row)?, column.text(row)?);
        lift(function, place.as_deref().zip(value.as_deref()), state)
    };
    over(function, find, show)
}

pub(crate) fn sample(column: Column, k: usize, weight: Option<Column>) -> Result<Box<dyn Function>> {
    let find = move |sample: &Sample, row: &[Value<'_>], state: &mut Vec<u8>| {
        let weight = weight.as_ref().map_or(Ok(Some(1.0)), |weight| weight.float(row))?;
        lift(sample, column.text(row)?.as_deref().zip(weight), state)
    };
    Ok(over(Sample::new(k, 0)?, find, |items| {
        Value::List(items.into_iter().map(|(item, _)| Value::from(item)).collect())
    }))
}

pub(crate) fn frequent(function: FrequentItems, column: Column) -> Box<dyn Function> {
    let find = move |function: &FrequentItems, row: &[Value<'_>], state: &mut Vec<u8>| {
        lift(function, column.text(row)?.as_deref(), state)
    };
    over(function, find, frequencies)
}
