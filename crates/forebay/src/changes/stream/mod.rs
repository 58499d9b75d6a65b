//! The feed of changes as a stream of bytes, for whoever follows a database elsewhere: commits as they stand in the log,
//! and between them what tables there are. See `docs/format/change_stream.md`.
//!
//! **Invariant:** a stream tells only what is durable, so nobody who follows is ahead of the database after a crash.

mod durable;
mod meeting;
mod message;
mod messages;
mod writer;

pub(crate) use meeting::Meeting;
pub(crate) use message::{BatchOf, Ending, Greeting, Message, Request, Round};
pub(crate) use messages::{HUNG_UP, Messages};
pub(crate) use writer::serve;
pub use writer::{ChangeStream, requested_position};

/// What errors call a stream that has no name.
pub(crate) const STREAM: &str = "the change stream";
