//! The steady state: what is left of a rate once data is many times the memory and trees merge all the time.

mod curve;
pub(super) mod levels;
mod limits;
pub(super) mod load;
mod lookups;
pub(super) mod mix;
pub(super) mod pace;
mod plan;
mod planned;
mod sizes;
pub(super) mod workers;

use crate::figures::part::{LEVELDB, LEVELED, UNIVERSAL};

/// Those that Forebay is held against wherever something is measured.
const RIVALS: [&str; 3] = [LEVELED, UNIVERSAL, LEVELDB];
