//! Functions whose states are a few numbers: written as functions of those numbers, and compiled to a load,
//! an operation and a store.
//!
//! **Invariant:** a state's bytes are its numbers', little-endian, one behind the other, and all states of a
//! function are of one length.

use forebay_base::Result;

use crate::aggregate::Aggregate;
use crate::state_type::StateType;

/// What is written with a fixed number of bytes, little-endian.
pub trait Plain: Copy {
    /// How many bytes.
    const BYTES: usize;
    /// Writes to the first bytes of `into`, which has enough of them.
    fn write(self, into: &mut [u8]);
    /// What these bytes stand for, and the bytes behind; `None` where they stand for nothing.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])>;
}

macro_rules! plain_numbers {
    ($($number:ty),*) => {$(
        impl Plain for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline]
            fn write(self, into: &mut [u8]) {
                if let Some(place) = into.first_chunk_mut() {
                    *place = self.to_le_bytes();
                }
            }
            #[inline]
            fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
                let (head, tail) = bytes.split_first_chunk()?;
                Some((Self::from_le_bytes(*head), tail))
            }
        }
    )*};
}
plain_numbers!(u8, u64, i64, i128, f64);

impl Plain for bool {
    const BYTES: usize = 1;
    #[inline]
    fn write(self, into: &mut [u8]) {
        u8::from(self).write(into);
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (byte, tail) = u8::read(bytes)?;
        (byte < 2).then_some((byte == 1, tail))
    }
}

impl<const N: usize> Plain for [u8; N] {
    const BYTES: usize = N;
    #[inline]
    fn write(self, into: &mut [u8]) {
        if let Some(place) = into.first_chunk_mut() {
            *place = self;
        }
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        bytes.split_first_chunk().map(|(head, tail)| (*head, tail))
    }
}

impl<A: Plain, B: Plain> Plain for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;
    #[inline]
    fn write(self, into: &mut [u8]) {
        debug_assert!(into.len() >= Self::BYTES);
        let (head, tail) = into.split_at_mut(A::BYTES);
        self.0.write(head);
        self.1.write(tail);
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (first, rest) = A::read(bytes)?;
        let (second, rest) = B::read(rest)?;
        Some(((first, second), rest))
    }
}

impl<A: Plain, B: Plain, C: Plain> Plain for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;
    #[inline]
    fn write(self, into: &mut [u8]) {
        (self.0, (self.1, self.2)).write(into);
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ((first, (second, third)), rest) = <(A, (B, C))>::read(bytes)?;
        Some(((first, second, third), rest))
    }
}

/// A function over states of a few numbers. Every such function is an [`Aggregate`].
pub trait FixedAggregate: Send + Sync + 'static {
    /// One value.
    type Input<'a>;
    /// What a state stands for.
    type Output;
    /// The state's numbers.
    type State: Plain;

    /// See [`Aggregate::state_type`].
    fn state_type(&self) -> StateType;
    /// The state of one value.
    fn of(&self, value: Self::Input<'_>) -> Self::State;
    /// The merge of two states: the same whichever comes first.
    fn join(&self, one: Self::State, other: Self::State) -> Self::State;
    /// What a state stands for.
    fn output(&self, state: Self::State) -> Self::Output;
}

#[inline]
fn read<P: Plain>(state: &[u8]) -> Option<P> {
    if state.len() != P::BYTES {
        return None;
    }
    P::read(state).map(|(plain, _)| plain)
}

impl<F: FixedAggregate> Aggregate for F {
    type Input<'a> = F::Input<'a>;
    type Output = F::Output;

    fn state_type(&self) -> StateType {
        FixedAggregate::state_type(self)
    }

    #[inline]
    fn state_bytes(&self) -> Option<usize> {
        Some(F::State::BYTES)
    }

    #[inline]
    fn lift(&self, value: Self::Input<'_>, state: &mut Vec<u8>) -> Result<()> {
        let start = state.len();
        const { assert!(F::State::BYTES > 0, "a state is some bytes") };
        state.resize(start + F::State::BYTES, 0);
        self.of(value).write(&mut state[start..]);
        Ok(())
    }

    #[inline]
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let joined = states.iter().filter_map(|state| read(state)).reduce(|one, other| self.join(one, other));
        if let Some(state) = joined {
            let start = out.len();
            out.resize(start + F::State::BYTES, 0);
            state.write(&mut out[start..]);
        }
    }

    #[inline]
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        if let (Some(one), Some(other)) = (read(state), read(other)) {
            self.join(one, other).write(state);
        }
    }

    #[inline]
    fn add_in_place(&self, state: &mut [u8], value: Self::Input<'_>, _spare: &mut Vec<u8>) -> Result<()> {
        if let Some(one) = read(state) {
            self.join(one, self.of(value)).write(state);
        }
        Ok(())
    }

    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        let numbers = read(state).ok_or_else(|| FixedAggregate::state_type(self).malformed(state))?;
        Ok(self.output(numbers))
    }
}
