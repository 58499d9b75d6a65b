//! The log: what was accepted and is not in lists yet. See `docs/format/log.md`.
//!
//! A segment file is the byte-for-byte image of one write buffer's arena: a batch is framed once
//! ([`frame`]), appended to the arena, and those same bytes go to the file ([`writer`]). After a crash the
//! segments are read back ([`recover`]).

mod ahead;
pub mod batch;
mod durability;
mod follow;
pub mod frame;
mod frames;
mod prepared_segment;
pub mod recover;
mod refill;
mod window;
mod writer;

pub use durability::Durability;
pub use follow::{LogTail, ReadOn};
pub use frames::Frames;
pub use prepared_segment::{PrepareError, PreparedSegment, SegmentFile};
pub use refill::Refill;
pub use writer::{Appended, Basis, Log, RECORD_BYTES_MIN, Writes, batches_of};
