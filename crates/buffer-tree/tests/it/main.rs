//! The buffer tree against a model, over fragments in memory.

mod amplification;
mod damage;
mod harness;
mod memory;
mod model;
mod random;
mod splits;
