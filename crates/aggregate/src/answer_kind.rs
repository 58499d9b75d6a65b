//! What a function answers, as its name tells.

use crate::catalog::name_of;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// An integer of 64 bits.
    Int,
    /// A floating-point number.
    Float,
    /// A truth.
    Truth,
    /// An exact number, of a type that depends on the values.
    Number,
    /// A text, or a list of such.
    Text,
}

impl AnswerKind {
    /// That of a function such as `sum:amount`.
    pub fn of(function: &str) -> Self {
        match name_of(function) {
            "count" | "count_if" | "distinct" => Self::Int,
            "fsum" | "avg" | "mean" | "var_pop" | "var_samp" | "variance" => Self::Float,
            "stddev_pop" | "stddev_samp" | "stddev" => Self::Float,
            "corr" | "r2" | "approx_distinct" | "theta" | "approx_quantile" => Self::Float,
            "bool_and" | "bool_or" => Self::Truth,
            "min" | "max" | "sum" | "isum" | "bit_and" | "bit_or" | "bit_xor" => Self::Number,
            _ => Self::Text,
        }
    }
}
