//! What tests of the whole engine share.
//!
//! A [`Model`] says what a database must hold, at every sequence number. A [`Generator`] draws operations
//! from a seed. A [`Harness`] does each operation on a database and on the model and compares all answers;
//! it panics where they differ, and hands back the engine's errors for the test to judge.
//!
//! **Invariant:** everything follows from the seed.

mod check;
mod config;
mod data;
pub mod golden;
mod harness;
mod model;
mod ops;
mod rules;
mod sweep;
mod tables;
mod walk;

pub use check::{Seen, assert_checkpoint, assert_same};
pub use config::{Config, ordered_layouts};
pub use data::{Keys, Values};
pub use harness::Harness;
pub use model::{Change, Contents, Model, TABLES, Write};
pub use ops::{Generator, Kind, Op, Query};
pub use rules::{Merging, Multiset, Suffix};
pub use sweep::{Swept, sweep};
pub use tables::Tables;
pub use walk::Step;
