//! The least and the greatest value, of numbers and of bytes. The greatest of equals is itself, so order
//! cannot matter: floating-point numbers are compared by their total order (`-0.0 < 0.0`, NaN at the ends).

use std::cmp::Ordering;
use std::marker::PhantomData;

use forebay_base::Result;

use crate::{Aggregate, FixedAggregate, Plain, StateType};

/// A number with a total order: equal means the same bytes.
pub trait Scalar: Plain + Send + Sync + 'static {
    /// What state types call it.
    const NAME: &'static str;
    /// The order.
    fn order(&self, other: &Self) -> Ordering;
}

impl Scalar for i64 {
    const NAME: &'static str = "i64";
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl Scalar for f64 {
    const NAME: &'static str = "f64";
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

macro_rules! extremes {
    ($($(#[$doc:meta])* $scalar:ident, $(#[$bytes_doc:meta])* $bytes:ident = $text:literal, $wins:ident, $pick:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $scalar<T>(PhantomData<fn() -> T>);

        impl<T> Default for $scalar<T> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }

        impl<T: Scalar> FixedAggregate for $scalar<T> {
            type Input<'a> = T;
            type Output = T;
            type State = T;

            fn state_type(&self) -> StateType {
                StateType::new($text, 1).with("type", T::NAME)
            }
            #[inline]
            fn of(&self, value: T) -> T {
                value
            }
            #[inline]
            fn join(&self, one: T, other: T) -> T {
                if other.order(&one).$wins() { other } else { one }
            }
            fn output(&self, state: T) -> T {
                state
            }
        }

        $(#[$bytes_doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $bytes;

        impl Aggregate for $bytes {
            type Input<'a> = &'a [u8];
            type Output = Vec<u8>;

            fn state_type(&self) -> StateType {
                StateType::new($text, 1).with("type", "bytes")
            }
            fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
                state.extend_from_slice(value);
                Ok(())
            }
            fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
                out.extend_from_slice(states.iter().$pick().copied().unwrap_or_default());
            }
            fn finish(&self, state: &[u8]) -> Result<Vec<u8>> {
                Ok(state.to_vec())
            }
        }
    )*};
}

extremes! {
    /// The least number.
    Min,
    /// The least byte string. A state is the string.
    MinBytes = "min", is_lt, min;
    /// The greatest number.
    Max,
    /// The greatest byte string. A state is the string.
    MaxBytes = "max", is_gt, max;
}
