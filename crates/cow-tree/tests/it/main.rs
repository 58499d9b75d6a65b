//! Trees against sorted maps, against damage, power losses and faults, and against the model of what they write.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod common;
mod cost;
mod damage;
mod disk;
mod filters;
mod format;
mod named;
mod portions;
mod power;
mod reads;
mod shapes;
mod values;
mod versions;
