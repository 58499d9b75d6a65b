//! The laws of every function, and every aggregator against a plain map.

mod answers;
mod laws;
mod values;
