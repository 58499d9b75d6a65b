//! Logic over truths and over bits.

use crate::{FixedAggregate, StateType};

macro_rules! logic {
    ($($(#[$doc:meta])* $name:ident($value:ty) = $text:literal, $operator:tt;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl FixedAggregate for $name {
            type Input<'a> = $value;
            type Output = $value;
            type State = $value;

            fn state_type(&self) -> StateType {
                StateType::new($text, 1)
            }
            #[inline]
            fn of(&self, value: $value) -> $value {
                value
            }
            #[inline]
            fn join(&self, one: $value, other: $value) -> $value {
                one $operator other
            }
            fn output(&self, state: $value) -> $value {
                state
            }
        }
    )*};
}

logic! {
    /// Whether all are true.
    BoolAnd(bool) = "bool_and", &;
    /// Whether any is true.
    BoolOr(bool) = "bool_or", |;
    /// The bits that all have.
    BitAnd(i64) = "bit_and", &;
    /// The bits that any has.
    BitOr(i64) = "bit_or", |;
    /// The bits that an odd number of values have.
    BitXor(i64) = "bit_xor", ^;
}
