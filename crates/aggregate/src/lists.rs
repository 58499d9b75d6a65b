//! States that are lists of a program's own states. Lists merge by being put one behind the other, which needs nobody who
//! knows what the states are: so [`Lists`] merges those of a program that is not there.
//!
//! **Invariant:** a list is a varint number of states, and each of them behind its varint length.

#![cfg_attr(
    not(feature = "arrow"),
    expect(unreachable_pub, reason = "programs' own states come by columns alone")
)]

use std::fmt;

use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Error, Result};

use crate::function::Function;
use crate::state_type::StateType;
use crate::value::Value;

/// What the types of such states begin with.
pub(crate) const PREFIX: &str = "own.";

/// Appends a list of states.
pub fn put_list(states: &[&[u8]], out: &mut Vec<u8>) {
    put_varint(out, states.len() as u64);
    states.iter().for_each(|state| put_bytes(out, state));
}

/// The states of a list; nothing where these bytes are none.
pub fn split_list(list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader::new(list);
    let count = usize::try_from(reader.varint()?).ok()?;
    // Each takes a byte at least: what is damaged asks for no more memory than there are bytes.
    if count > reader.remaining() {
        return None;
    }
    let states = (0..count).map(|_| reader.bytes()).collect::<Option<Vec<_>>>()?;
    (reader.remaining() == 0).then_some(states)
}

/// Appends the list of the states of all lists. Returns how many that are, and where they begin.
pub(crate) fn merge_lists(lists: &[&[u8]], out: &mut Vec<u8>) -> (u64, usize) {
    let parts = lists.iter().filter_map(|list| {
        let mut reader = Reader::new(list);
        let count = reader.varint()?;
        let rest = reader.take(reader.remaining())?;
        // What is damaged may tell of any number.
        Some((count.min(rest.len() as u64), rest))
    });
    let (mut count, mut bytes) = (0, 0);
    for (more, rest) in parts.clone() {
        count += more;
        bytes += rest.len();
    }
    out.reserve(bytes + 2);
    put_varint(out, count);
    let head = out.len();
    parts.for_each(|(_, rest)| out.extend_from_slice(rest));
    (count, head)
}

/// A function of a program's own of which only the type of its states is known. It answers with the list.
pub(crate) struct Lists(StateType);

impl Lists {
    /// Of a type such as `own.mean/1(state=..)`, with what its answers are called.
    pub(crate) fn of(state_type: &str) -> Option<(String, Self)> {
        let name = state_type.split(['/', '(']).next()?;
        name.strip_prefix(PREFIX)?;
        Some((name.to_string(), Self(StateType::of_text(state_type))))
    }
}

impl Function for Lists {
    fn state_type(&self) -> StateType {
        self.0.clone()
    }

    fn state_bytes(&self) -> Option<usize> {
        None
    }

    fn lift(&self, _row: &[Value<'_>], _state: &mut Vec<u8>) -> Result<()> {
        Err(Error::invalid("a function known only by its states takes no values"))
    }

    fn lift_missing(&self, state: &mut Vec<u8>) {
        put_list(&[], state);
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        merge_lists(states, out);
    }

    fn merge_in_place(&self, _state: &mut [u8], _other: &[u8]) {
        debug_assert!(false, "no length is fixed");
    }

    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        match split_list(state) {
            Some(_) => Ok(Value::bytes(state.to_vec())),
            None => Err(self.0.malformed(state)),
        }
    }
}

impl fmt::Debug for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuiltIn;

    const TYPE: &str = "composite/1(0=count/1,1=own.mean/1(state=logs:Float64;n (of rows):Int64))";

    fn list(states: &[&[u8]]) -> Vec<u8> {
        let mut list = Vec::new();
        put_list(states, &mut list);
        list
    }

    #[test]
    fn lists_merge_to_the_list_of_all_states() {
        let states: [&[u8]; 5] = [b"", b"a", b"bc", &[7; 300], b""];
        for cut in 0..=states.len() {
            for second in cut..=states.len() {
                let parts = [&states[..cut], &states[cut..second], &states[second..]].map(list);
                let mut merged = b"before".to_vec();
                let (count, head) = merge_lists(&parts.each_ref().map(Vec::as_slice), &mut merged);
                assert_eq!((count, &merged[..6]), (5, &b"before"[..]));
                assert_eq!(split_list(&merged[6..]).expect("a list"), states);
                assert_eq!(
                    merged.len() - head,
                    states.iter().map(|state| state.len() + 1).sum::<usize>() + 1
                );
            }
        }
        // More than a byte tells how many there are.
        let many = vec![&b"x"[..]; 300];
        let mut merged = Vec::new();
        merge_lists(&[&list(&many[..200]), &list(&many[200..])], &mut merged);
        assert_eq!(merged, list(&many));
    }

    #[test]
    fn what_is_no_list_is_told() {
        let (name, lists) = Lists::of("own.mean/1(state=n:Int64)").expect("a program's own");
        assert_eq!(name, "own.mean");
        for damaged in [&[][..], &[1], &[2, 1, 1], &[0, 0], &[255; 12], &[200, 1, 1, 0]] {
            assert_eq!(split_list(damaged), None, "{damaged:?}");
            let error = lists.finish(damaged).unwrap_err().to_string();
            assert!(error.contains("own.mean/1(state=n:Int64)"), "{error}");
            lists.merge(&[damaged, damaged], &mut Vec::new());
        }
        assert!(lists.lift(&[], &mut Vec::new()).is_err(), "it takes no rows");
        let mut none = Vec::new();
        lists.lift_missing(&mut none);
        assert!(split_list(&none).expect("a list").is_empty());
    }

    /// Each is known by the text of its type alone, and has exactly that type.
    #[test]
    fn types_of_a_programs_own_are_found_beside_others() {
        assert!(Lists::of("count/1").is_none() && BuiltIn::of("own.mean/1(state=n:Int64)").is_none());
        let function = BuiltIn::of(TYPE).expect("a count, and lists");
        assert_eq!(function.state_type().as_str(), TYPE);
        assert_eq!((function.names(), function.unfinished()), (vec!["count", "own.mean"], vec!["own.mean"]));
        assert!(BuiltIn::of("count/1").expect("built in").unfinished().is_empty());
    }
}
