//! What tests of the whole engine share.
//!
//! A [`Model`] says what a database must hold, at every sequence number. A [`Generator`] draws operations
//! from a seed. A [`Harness`] does each operation on a database and on the model and compares all answers;
//! it panics where they differ, and hands back the engine's errors for the test to judge.
//!
//! **Invariant:** everything follows from the seed.

mod altered;
mod beside;
mod check;
mod clock;
mod commit;
mod config;
mod damaged;
mod data;
mod feed;
mod following;
mod generator;
pub mod golden;
mod groups;
mod harness;
mod kernel;
mod lives;
mod model;
mod ops;
mod pieces;
mod recovered;
mod rules;
mod seen;
mod serial;
mod sweep;
mod tables;
mod theme;
mod transacting;
mod trip;
mod walk;
mod wide;

pub use check::assert_same;
pub use clock::Wall;
pub use config::{ASIDE, Aside, Config, is_dropped, ordered_layouts};
pub use data::{Keys, Values};
pub use generator::Generator;
pub use groups::{CUBE, Groups, WINDOWS, Whole};
pub use harness::Harness;
pub use kernel::CountingHeap;
pub use model::{Accepted, Change, Contents, Model, Moment, TABLES, Write};
pub use ops::{Act, Altered, Beside, Expected, Kind, Life, Op, Query, ReadBeside, Seen, Stale};
pub use rules::{Merging, Multiset, Short, Suffix};
pub use seen::{Kept, Shown, Time};
pub use serial::{Did, Done, Serial};
pub use sweep::{Swept, sweep};
pub use tables::{Tables, name_of};
pub use theme::Theme;
pub use trip::{Trip, Tripping};
pub use walk::Step;
