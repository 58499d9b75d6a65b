//! What every layout stands on: the log, the manifest, list files with their filters and page search, the
//! page cache, the write buffer, and the counters of all of them.
//!
//! **Invariant:** nothing here knows how lists are organised; that is a layout's business.

pub mod buffer;
pub mod cache;
pub mod leases;
pub mod list;
pub mod log;
pub mod manifest;
pub mod memory;
pub mod metrics;
pub mod names;
mod read_ahead;
mod renew;
pub mod salvage;
pub mod values;

pub use buffer::{BufferCursor, WriteBuffer};
pub use cache::{BlockCache, Cached, Caching, Held, PageCache};
pub use leases::{Lease, Leases, Place};
pub use list::{ListCursor, ListFile, ListStore, ListWriter};
pub use memory::{MemoryClaim, MemoryUse, Owner};
pub use metrics::{Cause, Metrics};
pub use read_ahead::read_ahead;
pub use renew::renew;
pub use values::{ValueFile, ValueFiles};
