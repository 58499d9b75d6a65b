//! [`Aggregate`]: what a function must be so that partial results can be kept, moved and merged in any
//! order.
//!
//! A state *is* its canonical bytes. So what a state takes in memory is known exactly, and it goes to disk
//! and back as it is.

use forebay_base::{Combine, Result};

use crate::state_type::StateType;

/// An aggregation function: an algebra over states.
///
/// **Laws.** Merging is commutative and associative up to *equal bytes*: whatever order values come in and
/// however they are divided, the state is the same. Functions over floating-point sums and some sketches
/// keep this only up to rounding or their stated error, and say so. `merge` of one state gives that state.
///
/// **Malformed bytes.** Merging them gives some bytes, of a length that is bounded as any merge's, and never panics.
/// [`finish`](Self::finish) refuses what is not a state. A function that cannot tell damaged bytes from
/// whole ones, such as a sum, gives some value for them.
///
/// A function of one's own, here the longest string's length:
///
/// ```
/// use forebay_aggregate::{Aggregate, StateType};
/// use forebay_base::Result;
///
/// struct Longest;
///
/// impl Aggregate for Longest {
///     type Input<'a> = &'a str;
///     type Output = u64;
///
///     fn state_type(&self) -> StateType {
///         StateType::new("longest", 1)
///     }
///     fn lift(&self, value: &str, state: &mut Vec<u8>) -> Result<()> {
///         state.extend_from_slice(&(value.len() as u64).to_le_bytes());
///         Ok(())
///     }
///     fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
///         let longest = states.iter().filter_map(|state| self.finish(state).ok()).max();
///         out.extend_from_slice(&longest.unwrap_or(0).to_le_bytes());
///     }
///     fn finish(&self, state: &[u8]) -> Result<u64> {
///         let bytes = state.try_into().map_err(|_| self.state_type().malformed(state))?;
///         Ok(u64::from_le_bytes(bytes))
///     }
/// }
///
/// let (mut state, mut other, mut merged) = (Vec::new(), Vec::new(), Vec::new());
/// Longest.lift("ebb", &mut state)?;
/// Longest.lift("flood", &mut other)?;
/// Longest.merge(&[&state, &other], &mut merged);
/// assert_eq!(Longest.finish(&merged)?, 5);
/// # Ok::<(), forebay_base::Error>(())
/// ```
///
/// Where a state is a few numbers, [`FixedAggregate`](crate::FixedAggregate) is shorter and faster.
pub trait Aggregate: Send + Sync + 'static {
    /// One value.
    type Input<'a>;
    /// What a state stands for.
    type Output;

    /// Which states may be merged with this function's: those of an equal type.
    fn state_type(&self) -> StateType;

    /// How many bytes every state has, where that is one number.
    fn state_bytes(&self) -> Option<usize> {
        None
    }

    /// Appends the state of one value; or says why the value is refused, and leaves `state` as it was.
    fn lift(&self, value: Self::Input<'_>, state: &mut Vec<u8>) -> Result<()>;

    /// Appends the merge of states, of which there is at least one.
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>);

    /// Merges `other` into `state`. Called only where [`state_bytes`](Self::state_bytes) gives a number;
    /// worth writing for speed alone.
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        let mut merged = Vec::with_capacity(state.len());
        self.merge(&[state, other], &mut merged);
        if merged.len() == state.len() {
            state.copy_from_slice(&merged);
        }
    }

    /// Merges a value into `state`, or leaves it as it was. Called only where [`state_bytes`](Self::state_bytes) gives
    /// a number; worth writing for speed alone. `spare` is memory.
    fn add_in_place(&self, state: &mut [u8], value: Self::Input<'_>, spare: &mut Vec<u8>) -> Result<()> {
        spare.clear();
        self.lift(value, spare)?;
        self.merge_in_place(state, spare);
        Ok(())
    }

    /// The value that a state stands for; an error that names the state's type where the bytes are none.
    fn finish(&self, state: &[u8]) -> Result<Self::Output>;

    /// What no values at all come to, where that is something: 0 of a number of distinct values.
    fn of_nothing(&self) -> Option<Self::Output> {
        None
    }
}

/// A function as the rule by which records are merged, all of which are states, kept as puts.
#[derive(Clone, Copy, Debug)]
pub struct Merging<A>(pub A);

impl<A: Aggregate> Combine for Merging<A> {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        self.0.merge(&[older, newer], out);
    }
    fn merges_puts(&self) -> bool {
        true
    }
    fn keeps_length(&self) -> bool {
        self.0.state_bytes().is_some()
    }
    fn merge_states(&self, _key: &[u8], states: &[&[u8]], out: &mut Vec<u8>) {
        self.0.merge(states, out);
    }
    #[inline]
    fn merge_in_place(&self, newer: &mut [u8], older: &[u8]) -> bool {
        let fixed = self.0.state_bytes().is_some();
        if fixed {
            self.0.merge_in_place(newer, older);
        }
        fixed
    }
}

/// A function that is shared, or chosen at run time.
impl<A: Aggregate + ?Sized> Aggregate for std::sync::Arc<A> {
    type Input<'a> = A::Input<'a>;
    type Output = A::Output;

    fn state_type(&self) -> StateType {
        (**self).state_type()
    }
    #[inline]
    fn state_bytes(&self) -> Option<usize> {
        (**self).state_bytes()
    }
    #[inline]
    fn lift(&self, value: Self::Input<'_>, state: &mut Vec<u8>) -> Result<()> {
        (**self).lift(value, state)
    }
    #[inline]
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        (**self).merge(states, out);
    }
    #[inline]
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        (**self).merge_in_place(state, other);
    }
    #[inline]
    fn add_in_place(&self, state: &mut [u8], value: Self::Input<'_>, spare: &mut Vec<u8>) -> Result<()> {
        (**self).add_in_place(state, value, spare)
    }
    fn finish(&self, state: &[u8]) -> Result<Self::Output> {
        (**self).finish(state)
    }
    fn of_nothing(&self) -> Option<Self::Output> {
        (**self).of_nothing()
    }
}
