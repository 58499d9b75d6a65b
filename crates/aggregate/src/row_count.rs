//! [`RowCount`]: `count` without a column.

use forebay_base::Result;

use crate::aggregate::Aggregate;
use crate::columns::{Accumulator, Counts, Kind};
use crate::fixed::FixedAggregate;
use crate::function::Function;
use crate::functions::Count;
use crate::state_type::StateType;
use crate::value::Value;

/// How many rows: the one function that needs no value, so that its states need not tell whether any was.
pub(crate) struct RowCount;

impl Function for RowCount {
    fn state_type(&self) -> StateType {
        FixedAggregate::state_type(&Count)
    }
    fn state_bytes(&self) -> Option<usize> {
        Count.state_bytes()
    }
    fn lift(&self, _row: &[Value<'_>], state: &mut Vec<u8>) -> Result<()> {
        Count.lift((), state)
    }
    fn lift_missing(&self, state: &mut Vec<u8>) {
        // A count takes whatever it is given.
        let _ = Count.lift((), state);
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        Count.merge(states, out);
    }
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        Count.merge_in_place(state, other);
    }
    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        Count.finish(state).map(Value::from)
    }
    fn accumulator(&self, _kinds: &[Kind]) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(Counts::default()))
    }
}
