//! [`Function`]: an aggregation chosen at run time, from rows of values to a value. Missing values are
//! passed over.

use std::borrow::Cow;

use forebay_base::{Error, Result};

use crate::aggregate::Aggregate;
use crate::columns::{Accumulator, Kind};
use crate::optional::{Lifted, Optional};
use crate::ordered::Number;
use crate::state_type::StateType;
use crate::value::Value;

/// An [`Aggregate`] over rows, behind one type for all.
pub trait Function: Send + Sync {
    /// See [`Aggregate::state_type`].
    fn state_type(&self) -> StateType;
    /// See [`Aggregate::state_bytes`].
    fn state_bytes(&self) -> Option<usize>;
    /// See [`Aggregate::lift`].
    fn lift(&self, row: &[Value<'_>], state: &mut Vec<u8>) -> Result<()>;
    /// Appends the state of a row without a value that the function takes; of one that counts every row, of a row.
    fn lift_missing(&self, state: &mut Vec<u8>);
    /// See [`Aggregate::merge`].
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>);
    /// See [`Aggregate::merge_in_place`].
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]);
    /// See [`Aggregate::finish`]; null where no value was there.
    fn finish(&self, state: &[u8]) -> Result<Value<'static>>;
    /// What adds up groups where rows come by columns of these kinds: to the states that the same rows come to one by
    /// one. None where it is given rows then too.
    fn accumulator(&self, _kinds: &[Kind]) -> Option<Box<dyn Accumulator>> {
        None
    }
}

/// See [`Function::accumulator`].
pub(crate) type Accumulate = Box<dyn Fn(&[Kind]) -> Option<Box<dyn Accumulator>> + Send + Sync>;

/// An aggregate as a function: `lift` finds its value in a row, `show` turns what it stands for into a value.
pub fn over<A: Aggregate>(
    function: A,
    lift: impl Fn(&A, &[Value<'_>], &mut Vec<u8>) -> Result<Lifted> + Send + Sync + 'static,
    show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
) -> Box<dyn Function> {
    over_columns(function, lift, show, Box::new(|_| None))
}

/// The same of one that can be given columns.
pub(crate) fn over_columns<A: Aggregate>(
    function: A,
    lift: impl Fn(&A, &[Value<'_>], &mut Vec<u8>) -> Result<Lifted> + Send + Sync + 'static,
    show: impl Fn(A::Output) -> Value<'static> + Send + Sync + 'static,
    accumulate: Accumulate,
) -> Box<dyn Function> {
    Box::new(Over { function: Optional(function), lift, show, accumulate })
}

struct Over<A, L, S> {
    function: Optional<A>,
    lift: L,
    show: S,
    accumulate: Accumulate,
}

impl<A, L, S> Function for Over<A, L, S>
where
    A: Aggregate,
    L: Fn(&A, &[Value<'_>], &mut Vec<u8>) -> Result<Lifted> + Send + Sync,
    S: Fn(A::Output) -> Value<'static> + Send + Sync,
{
    fn state_type(&self) -> StateType {
        self.function.state_type()
    }

    fn state_bytes(&self) -> Option<usize> {
        self.function.state_bytes()
    }

    fn lift(&self, row: &[Value<'_>], state: &mut Vec<u8>) -> Result<()> {
        self.function.lift_by(state, |function, state| (self.lift)(function, row, state))
    }

    fn lift_missing(&self, state: &mut Vec<u8>) {
        self.function.put_missing(state);
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.function.merge(states, out);
    }

    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        self.function.merge_in_place(state, other);
    }

    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        let output = self.function.finish(state)?.or_else(|| self.function.0.of_nothing());
        Ok(output.map_or(Value::Null, &self.show))
    }

    fn accumulator(&self, kinds: &[Kind]) -> Option<Box<dyn Accumulator>> {
        (self.accumulate)(kinds)
    }
}

/// A column of rows, and how its values are read. A null is `None`; a value of another kind is an error that
/// names the column.
#[derive(Clone, Debug)]
pub struct Column {
    index: usize,
    name: String,
}

impl Column {
    /// The column at `index`, called `name` in errors.
    pub fn new(index: usize, name: &str) -> Self {
        Self { index, name: name.into() }
    }

    /// Its place among the columns.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    fn value<'r, 'v>(&self, row: &'r [Value<'v>]) -> Result<Option<&'r Value<'v>>> {
        let value = row.get(self.index).ok_or_else(|| {
            Error::invalid(format!("a row of {} values has no column `{}`", row.len(), self.name))
        })?;
        Ok(Some(value).filter(|value| **value != Value::Null))
    }

    fn read<T>(
        &self,
        row: &[Value<'_>],
        kind: &str,
        read: impl Fn(&Value<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(row)? else { return Ok(None) };
        let refused = || {
            let text = String::from_utf8_lossy(&value.to_text()).chars().take(64).collect::<String>();
            Error::invalid(format!("column `{}`: `{text}` is not {kind}", self.name))
        };
        read(value).map(Some).ok_or_else(refused)
    }

    /// Whether there is a value.
    pub fn is_present(&self, row: &[Value<'_>]) -> Result<bool> {
        Ok(self.value(row)?.is_some())
    }

    /// A number of either kind.
    pub fn number(&self, row: &[Value<'_>]) -> Result<Option<Number>> {
        self.read(row, "a number", |value| value.as_number())
    }

    /// A number that needs no rounding.
    pub fn exact_number(&self, row: &[Value<'_>]) -> Result<Option<Number>> {
        self.read(row, "a number of at most 38 digits", |value| value.as_exact_number())
    }

    /// A floating-point number.
    pub fn float(&self, row: &[Value<'_>]) -> Result<Option<f64>> {
        self.read(row, "a number", |value| value.as_f64())
    }

    /// An integer.
    pub fn int(&self, row: &[Value<'_>]) -> Result<Option<i128>> {
        self.read(row, "an integer of at most 128 bits", |value| value.as_exact_number()?.as_i128())
    }

    /// An integer of 64 bits.
    pub(crate) fn short_int(&self, row: &[Value<'_>]) -> Result<Option<i64>> {
        let read = |value: &Value<'_>| i64::try_from(value.as_exact_number()?.as_i128()?).ok();
        self.read(row, "an integer of at most 64 bits", read)
    }

    /// A truth.
    pub fn truth(&self, row: &[Value<'_>]) -> Result<Option<bool>> {
        self.read(row, "true, t, yes, y, 1 or false, f, no, n, 0", |value| value.as_bool())
    }

    /// The value's text.
    pub fn text<'r>(&self, row: &'r [Value<'_>]) -> Result<Option<Cow<'r, [u8]>>> {
        Ok(self.value(row)?.map(Value::to_text))
    }

    /// The value's place in the order of all values, as bytes: numbers first, by size, then texts.
    pub fn place(&self, row: &[Value<'_>]) -> Result<Option<Vec<u8>>> {
        Ok(self.value(row)?.map(place_of))
    }
}

/// The place of a value in the order of all.
pub(crate) fn place_of(value: &Value<'_>) -> Vec<u8> {
    match value.as_number() {
        Some(number) => [&[1], &number.to_bytes().as_bytes()[..]].concat(),
        None => [&[2], &*value.to_text()].concat(),
    }
}
