//! Logic over truths and over bits, those of integers of any size and sign.

use crate::{FixedAggregate, StateType};

macro_rules! logic {
    ($($(#[$doc:meta])* $name:ident($value:ty) = $text:literal / $version:literal, $operator:tt;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl FixedAggregate for $name {
            type Input<'a> = $value;
            type Output = $value;
            type State = $value;

            fn state_type(&self) -> StateType {
                StateType::new($text, $version)
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
    BoolAnd(bool) = "bool_and" / 1, &;
    /// Whether any is true.
    BoolOr(bool) = "bool_or" / 1, |;
    /// The bits that all have.
    BitAnd(i128) = "bit_and" / 2, &;
    /// The bits that any has.
    BitOr(i128) = "bit_or" / 2, |;
    /// The bits that an odd number of values have.
    BitXor(i128) = "bit_xor" / 2, ^;
}
