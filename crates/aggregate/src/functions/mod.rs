//! The functions that come with the crate. Their states are listed byte by byte in
//! [docs/guide/aggregates.md](../../../../docs/guide/aggregates.md).

mod average;
mod collect;
mod correlation;
mod count;
mod decimal;
mod decimal_columns;
mod extremes;
mod flags;
mod histogram;
mod hyper_log_log;
mod quantiles;
mod ranked;
mod sample;
mod sketches;
mod sorted;
mod spread;
mod sum;

pub use average::{Average, AverageInt};
pub use collect::{Collect, Collected, Distinct, Joined, StringAgg};
pub use correlation::{Correlation, Fit};
pub use count::{Count, CountIf};
pub use decimal::SumDecimal;
pub(crate) use decimal_columns::Integers;
pub use extremes::{Max, MaxBytes, Min, MinBytes, Scalar};
pub use flags::{BitAnd, BitOr, BitXor, BoolAnd, BoolOr};
pub use histogram::{Bin, Histogram};
pub use hyper_log_log::ApproxDistinct;
pub use quantiles::{ApproxQuantiles, Centroids};
pub use ranked::{End, TopK, ValueAt};
pub use sample::Sample;
pub use sketches::{FrequentItem, FrequentItems, ThetaDistinct};
pub use spread::{Spread, Variance};
pub use sum::{SumFloat, SumInt};
