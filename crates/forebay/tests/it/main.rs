//! The public face, used as a user would.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use forebay_testkit::CountingHeap;

mod alter;
mod aside;
mod asynchronous;
mod backups;
mod bound;
mod changes;
mod closed;
mod compaction;
mod cube;
mod cursors;
mod damage;
mod descriptors;
mod dump;
mod encryption;
mod errors;
mod expiry;
mod faults;
mod filter;
mod forgotten;
mod format;
mod golden;
mod group_files;
mod guests;
mod ingest;
mod interleaved;
mod jungle;
mod layouts;
mod lent;
mod lives;
mod log;
mod lost_edits;
mod memory;
mod merging;
mod no_log;
mod options;
mod order;
mod pieces;
mod pool;
mod rangemerge;
mod ranges;
mod read_back;
mod reads;
mod recovery;
mod reorder;
mod rescue;
mod savepoints;
mod simulate;
mod smoke;
mod space;
mod suite;
mod surface;
mod threads;
mod transactions;
mod value_levels;
mod values;
mod windows;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;
