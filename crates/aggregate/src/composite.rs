//! [`Composite`]: several functions over the same rows, in one state, so that a key is looked for once.
//!
//! **Invariant:** a state is the functions' states one behind the other; those of no fixed length behind
//! their lengths. If all are fixed, so is the whole.

use std::fmt;

use forebay_base::wire::{Reader, put_bytes};
use forebay_base::{Error, Result};

use crate::aggregate::Aggregate;
use crate::function::Function;
use crate::state_type::StateType;
use crate::value::Value;

/// Several functions as one.
pub struct Composite {
    functions: Vec<Named>,
    /// The sum of the functions' state lengths, where all have one.
    state_bytes: Option<usize>,
}

struct Named {
    name: String,
    function: Box<dyn Function>,
    state_bytes: Option<usize>,
}

impl Named {
    fn blame(&self, error: &Error) -> Error {
        Error::invalid(format!("{}: {error}", self.name))
    }
}

impl Composite {
    /// Functions and what their answers are called; at least one.
    pub fn new(functions: Vec<(String, Box<dyn Function>)>) -> Result<Self> {
        if functions.is_empty() {
            return Err(Error::invalid("no function is given; `count` is the simplest"));
        }
        let named = |(name, function): (String, Box<dyn Function>)| Named {
            name,
            state_bytes: function.state_bytes(),
            function,
        };
        let functions: Vec<Named> = functions.into_iter().map(named).collect();
        let state_bytes = functions.iter().map(|named| named.state_bytes).sum();
        Ok(Self { functions, state_bytes })
    }

    /// What the answers are called, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|named| &named.name[..])
    }

    /// The functions, in order.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &dyn Function> {
        self.functions.iter().map(|named| &*named.function)
    }

    /// As [`lift`](Aggregate::lift), but that a function which refuses its value takes none, as SQL's `TRY_CAST` has
    /// it. Returns how many did.
    pub fn lift_what_is_taken(&self, row: &[Value<'_>], state: &mut Vec<u8>) -> u64 {
        let mut refused = 0;
        for named in &self.functions {
            Self::put(named, state, |part| {
                if named.function.lift(row, part).is_err() {
                    named.function.lift_missing(part);
                    refused += 1;
                }
            });
        }
        refused
    }

    /// Says which of these, one for each function, is no state, by its place.
    #[cfg(feature = "arrow")]
    pub(crate) fn check_parts(&self, states: &[&[u8]]) -> Result<(), (usize, Error)> {
        debug_assert_eq!(states.len(), self.functions.len(), "a state for each function");
        for (at, (named, state)) in self.functions.iter().zip(states).enumerate() {
            named.function.finish(state).map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Appends the state that has these, one for each function.
    #[cfg(feature = "arrow")]
    pub(crate) fn join(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        for (named, state) in self.functions.iter().zip(states) {
            Self::put(named, out, |out| out.extend_from_slice(state));
        }
    }

    /// As [`finish`](Aggregate::finish), but that the answers are appended to others.
    pub fn finish_into(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<()> {
        let mut reader = Reader::new(state);
        let malformed = || self.state_type().malformed(state);
        for named in &self.functions {
            let part = match named.state_bytes {
                Some(bytes) => reader.take(bytes),
                None => reader.bytes(),
            };
            let part = part.ok_or_else(malformed)?;
            answers.push(named.function.finish(part).map_err(|error| named.blame(&error))?);
        }
        if reader.remaining() == 0 { Ok(()) } else { Err(malformed()) }
    }

    /// The functions' states in a state.
    pub(crate) fn split<'a>(&self, state: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let mut reader = Reader::new(state);
        let parts = self.functions.iter().map(|named| match named.state_bytes {
            Some(bytes) => reader.take(bytes),
            None => reader.bytes(),
        });
        let parts = parts.collect::<Option<Vec<_>>>()?;
        (reader.remaining() == 0).then_some(parts)
    }

    /// Appends one function's state, as `fill` makes it.
    fn put<T>(named: &Named, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        if named.state_bytes.is_some() {
            return fill(out);
        }
        let mut state = Vec::new();
        let filled = fill(&mut state);
        put_bytes(out, &state);
        filled
    }
}

impl Aggregate for Composite {
    /// A row: the values of all columns.
    type Input<'a> = &'a [Value<'a>];
    /// The functions' answers, in order.
    type Output = Vec<Value<'static>>;

    fn state_type(&self) -> StateType {
        let parts = self.functions.iter().map(|named| named.function.state_type()).enumerate();
        parts.fold(StateType::new("composite", 1), |all, (index, part)| all.with(&index.to_string(), part))
    }

    fn state_bytes(&self) -> Option<usize> {
        self.state_bytes
    }

    fn lift(&self, row: &[Value<'_>], state: &mut Vec<u8>) -> Result<()> {
        let start = state.len();
        let lift = |named: &Named| {
            Self::put(named, state, |part| named.function.lift(row, part))
                .map_err(|error| named.blame(&error))
        };
        let lifted = self.functions.iter().try_for_each(lift);
        lifted.inspect_err(|_| state.truncate(start))
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let split: Vec<_> = states.iter().filter_map(|state| self.split(state)).collect();
        if split.is_empty() {
            return;
        }
        let mut parts = Vec::with_capacity(split.len());
        for (index, named) in self.functions.iter().enumerate() {
            parts.clear();
            parts.extend(split.iter().map(|split| split[index]));
            Self::put(named, out, |out| named.function.merge(&parts, out));
        }
    }

    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        let (mut state, mut other) = (state, other);
        for named in &self.functions {
            let bytes = named.state_bytes.unwrap_or(0);
            let (Some((one, rest)), Some((more, others))) =
                (state.split_at_mut_checked(bytes), other.split_at_checked(bytes))
            else {
                return;
            };
            named.function.merge_in_place(one, more);
            (state, other) = (rest, others);
        }
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        let mut answers = Vec::with_capacity(self.functions.len());
        self.finish_into(state, &mut answers)?;
        Ok(answers)
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
