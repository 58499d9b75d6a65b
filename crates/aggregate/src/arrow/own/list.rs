//! [`StateList`]: a function whose states are lists of a program's own states, which that merges many groups at a time.
//!
//! 1. Rows bring one state for each group that they have.
//! 2. To merge is to put lists one behind the other: nobody has to be asked, on whatever thread that is.
//! 3. Whoever reads groups has the lists of many merged by one call, and writes none of it back.
//! 4. A list that has become long is merged alone, by [`Shorten`]: so a list has a bound, and a state of a group costs a
//!    small share of a call. Where that fails the list stays as it is, and the next merge of the group tries again.
//!
//! **Invariant:** a list is a varint number of states, and each of them behind its varint length. In none is less than one
//! of the program's states, but in that of no rows at all.

use std::fmt;

use forebay_base::Result;
use forebay_base::wire::Reader;
use forebay_env::sync::Arc;

use super::rows::StateRows;
use crate::function::Function;
use crate::lists::{PREFIX, merge_lists, put_list, split_list};
use crate::state_type::StateType;
use crate::value::Value;

/// A list of more states than this is merged.
const STATES_MAX: u64 = 32;
/// So is one of more bytes than this and twice its longest state's: a long state is merged with others of its length.
const BYTES_MAX: usize = 16 << 10;

/// Merges states of one group.
pub trait Shorten: Send + Sync + 'static {
    /// One state for several; nothing where that cannot be done now.
    fn shorten(&self, states: &[&[u8]]) -> Option<Vec<u8>>;
}

/// See the module.
pub struct StateList {
    kind: StateType,
    rows: Arc<StateRows>,
    /// Of its column, among those of a row.
    place: usize,
    shorten: Arc<dyn Shorten>,
}

/// Whether a list of so many states, of these bytes, is to be merged.
fn is_long(count: u64, states: &[u8]) -> bool {
    if count < 2 || count <= STATES_MAX && states.len() <= BYTES_MAX {
        return false;
    }
    let mut reader = Reader::new(states);
    let lengths = std::iter::from_fn(|| reader.bytes().map(<[u8]>::len));
    count > STATES_MAX || states.len() > BYTES_MAX + 2 * lengths.max().unwrap_or(0)
}

impl StateList {
    /// The function of a name and a version, over the column at a place.
    pub fn new(
        name: &str,
        version: u16,
        rows: &Arc<StateRows>,
        place: usize,
        shorten: &Arc<dyn Shorten>,
    ) -> Self {
        let kind = StateType::new(&format!("{PREFIX}{name}"), version).with("state", rows);
        Self { kind, rows: Arc::clone(rows), place, shorten: Arc::clone(shorten) }
    }

    fn shortened(&self, list: &[u8]) -> Option<Vec<u8>> {
        let one = self.shorten.shorten(&split_list(list)?)?;
        let mut list = Vec::new();
        put_list(&[&one], &mut list);
        Some(list)
    }
}

impl Function for StateList {
    fn state_type(&self) -> StateType {
        self.kind.clone()
    }

    fn state_bytes(&self) -> Option<usize> {
        None
    }

    fn lift(&self, row: &[Value<'_>], state: &mut Vec<u8>) -> Result<()> {
        match row.get(self.place) {
            Some(Value::Bytes(one)) => put_list(&[one], state),
            _ => self.lift_missing(state),
        }
        Ok(())
    }

    fn lift_missing(&self, state: &mut Vec<u8>) {
        put_list(&[], state);
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let start = out.len();
        let (count, head) = merge_lists(states, out);
        if is_long(count, &out[head..])
            && let Some(list) = self.shortened(&out[start..])
        {
            out.truncate(start);
            out.extend_from_slice(&list);
        }
    }

    fn merge_in_place(&self, _state: &mut [u8], _other: &[u8]) {
        debug_assert!(false, "no length is fixed");
    }

    /// The list, as it is.
    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        let states = split_list(state).filter(|states| states.iter().all(|state| self.rows.is_sound(state)));
        match states {
            Some(_) => Ok(Value::bytes(state.to_vec())),
            None => Err(self.kind.malformed(state)),
        }
    }
}

impl fmt::Debug for StateList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateList").field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field};

    /// Adds numbers up; or does nothing.
    struct Sum(bool);

    impl Shorten for Sum {
        fn shorten(&self, states: &[&[u8]]) -> Option<Vec<u8>> {
            let number = |state: &&[u8]| i64::from_le_bytes(state[1..].try_into().expect("eight bytes"));
            let sum: i64 = states.iter().map(number).sum();
            self.0.then(|| [&[1][..], &sum.to_le_bytes()].concat())
        }
    }

    fn summed(list: &[u8]) -> i64 {
        let one = Sum(true).shorten(&split_list(list).expect("a list"));
        one.map_or(0, |one| i64::from_le_bytes(one[1..].try_into().expect("eight bytes")))
    }

    fn list(shortens: bool) -> StateList {
        let rows =
            StateRows::new(vec![Field::new("n", DataType::Int64, true)].into()).expect("of a known type");
        let shorten: Arc<dyn Shorten> = Arc::new(Sum(shortens));
        StateList::new("sum", 2, &Arc::new(rows), 0, &shorten)
    }

    #[test]
    fn lists_have_a_bound_and_lose_nothing() {
        for shortens in [true, false] {
            let function = list(shortens);
            assert_eq!(function.state_type().as_str(), "own.sum/2(state=n:Int64)");
            let mut state = Vec::new();
            function.lift_missing(&mut state);
            for number in 0..1000_i64 {
                let (mut more, mut merged) = (Vec::new(), Vec::new());
                let one = [&[1][..], &number.to_le_bytes()].concat();
                function.lift(&[Value::bytes(one)], &mut more).expect("bytes");
                function.merge(&[&more, &state], &mut merged);
                function.finish(&merged).expect("a list");
                state = merged;
                let longest = if shortens { STATES_MAX } else { 1000 };
                assert!(split_list(&state).expect("a list").len() as u64 <= longest);
            }
            assert_eq!(summed(&state), 999 * 500);
        }
    }

    #[test]
    fn long_states_are_merged_with_as_long_ones() {
        let state = |states: &[usize]| {
            let states: Vec<Vec<u8>> = states.iter().map(|bytes| vec![0; *bytes]).collect();
            let mut list = Vec::new();
            put_list(&states.iter().map(|state| &state[..]).collect::<Vec<_>>(), &mut list);
            is_long(states.len() as u64, &list[1..])
        };
        assert!(!state(&[1 << 20]) && !state(&[1 << 20, 9]) && !state(&[9; 32]) && state(&[9; 33]));
        assert!(!state(&[1 << 20, 1 << 20]) && state(&[1 << 20, 1 << 20, 1 << 15]));
    }

    #[test]
    fn damaged_lists_are_told_and_do_no_harm() {
        let function = list(true);
        for damaged in [&[][..], &[1], &[2, 1, 1], &[0, 0], &[255; 12], &[1, 2, 1, 1], &[200, 1, 1, 0]] {
            assert!(function.finish(damaged).is_err(), "{damaged:?}");
            function.merge(&[damaged, damaged], &mut Vec::new());
        }
    }
}
