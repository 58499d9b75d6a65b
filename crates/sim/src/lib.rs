//! Whole-engine simulation: a database, its background work and its disk on one thread, from one seed.
//!
//! A seed expands to [`SimOptions`], which are printed. Then, for several rounds: open what is on the disk,
//! hold it against the model, do random operations, and lose power (or the process) at a random file
//! operation, also while opening. At the end the faults stop, and the engine must come to rest in a bounded
//! number of steps and give back the space it does not need.
//!
//! **Invariant:** the same seed does the same, to the last byte on the disk; [`Outcome::trace`] tells.

mod faults;
mod options;
mod run;
mod trace;

#[cfg(test)]
mod tests;

pub use options::SimOptions;
pub use run::{Outcome, run};
