//! The public face, used as a user would.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod cursors;
mod damage;
mod errors;
mod faults;
mod ingest;
mod layouts;
mod memory;
mod merging;
mod order;
mod ranges;
mod reads;
mod recovery;
mod rewrite;
mod simulate;
mod smoke;
mod suite;
mod threads;
