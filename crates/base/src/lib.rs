//! What every part of Forebay agrees on: records and their one order, sorting and merging them,
//! checksums, codecs, limits and errors.
//!
//! **Invariant:** nothing here does I/O, starts a thread, reads a clock or draws a random number.

mod block;
pub mod checksum;
pub mod codec;
pub mod combine;
pub mod digest;
mod error;
pub mod expiry;
pub mod hash;
pub mod limits;
pub mod merge;
pub mod order;
pub mod planted;
mod pointer;
mod prefix_filter;
pub mod rare;
pub mod record;
pub mod sort;
pub mod wire;

pub use block::Block;
pub use combine::{Combine, LastWriterWins};
pub use error::{Error, Result};
pub use order::{Bound, Order, Range};
pub use pointer::{POINTED_BYTES_MAX, POINTED_OFFSET_MAX, POINTER_BYTES, ValuePointer};
pub use prefix_filter::PrefixFilter;
pub use record::{Kind, Record};
