//! [`Optional`]: any function over values that may be missing.

use forebay_base::Result;

use crate::aggregate::Aggregate;
use crate::state_type::StateType;

pub(crate) const MISSING: u8 = 0;
pub(crate) const PRESENT: u8 = 1;

/// A function that passes over missing values. Its states are the function's behind a byte that tells
/// whether any value was there; where none was, zeros up to a fixed state's length.
#[derive(Clone, Copy, Debug)]
pub struct Optional<A>(pub A);

/// Whether there was a value to lift.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifted {
    /// Its state was appended.
    Present,
    /// Nothing was.
    Missing,
}

impl<A: Aggregate> Optional<A> {
    /// As [`lift`](Aggregate::lift), by a function that lifts the value if it finds one.
    pub fn lift_by(
        &self,
        state: &mut Vec<u8>,
        lift: impl FnOnce(&A, &mut Vec<u8>) -> Result<Lifted>,
    ) -> Result<()> {
        let start = state.len();
        state.push(PRESENT);
        let lifted = lift(&self.0, state);
        if !matches!(lifted, Ok(Lifted::Present)) {
            state.truncate(start);
        }
        if lifted? == Lifted::Missing {
            self.put_missing(state);
        }
        Ok(())
    }

    pub(crate) fn put_missing(&self, state: &mut Vec<u8>) {
        state.push(MISSING);
        state.resize(state.len() + self.0.state_bytes().unwrap_or(0), 0);
    }
}

impl<A: Aggregate> Aggregate for Optional<A> {
    type Input<'a> = Option<A::Input<'a>>;
    type Output = Option<A::Output>;

    fn state_type(&self) -> StateType {
        StateType::new("optional", 1).with("of", self.0.state_type())
    }

    fn state_bytes(&self) -> Option<usize> {
        self.0.state_bytes().map(|bytes| bytes + 1)
    }

    fn lift(&self, value: Self::Input<'_>, state: &mut Vec<u8>) -> Result<()> {
        self.lift_by(state, |function, state| {
            let Some(value) = value else { return Ok(Lifted::Missing) };
            function.lift(value, state)?;
            Ok(Lifted::Present)
        })
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let present: Vec<&[u8]> = states.iter().filter_map(|state| state.strip_prefix(&[PRESENT])).collect();
        if present.is_empty() {
            self.put_missing(out);
        } else {
            out.push(PRESENT);
            self.0.merge(&present, out);
        }
    }

    #[inline]
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        let Some((&PRESENT, more)) = other.split_first() else { return };
        if let Some((&mut PRESENT, one)) = state.split_first_mut() {
            self.0.merge_in_place(one, more);
        } else if state.len() == other.len() {
            state.copy_from_slice(other);
        }
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        match state.split_first() {
            Some((&PRESENT, state)) => self.0.finish(state).map(Some),
            Some((&MISSING, rest))
                if rest.len() == self.0.state_bytes().unwrap_or(0) && rest.iter().all(|&byte| byte == 0) =>
            {
                Ok(None)
            }
            _ => Err(self.state_type().malformed(state)),
        }
    }
}
