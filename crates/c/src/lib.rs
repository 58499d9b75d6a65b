//! The C face: `include/forebay.h` for programs in C, and `include/leveldb/c.h` for those that were written for
//! LevelDB.
//!
//! A call is one function here and one declaration in its header, which a test holds against each other. Bodies are
//! thin: they take what the [`kernel`] made of C's parameters, ask the engine, and hand its answer over.
//!
//! **Invariant:** no call panics or unwinds into C, and none fails for a null pointer but by an error.

mod aggregator;
mod backups;
mod batch;
mod beside;
mod changes;
mod count;
mod cursor;
mod database;
mod error;
mod expiry;
mod kernel;
mod leveldb;
mod options;
mod outcome;
mod pool;
mod read;
mod scan;
mod table;
mod transaction;

use std::ffi::CStr;

/// What the headers say of threads.
const _: () = {
    const fn any_number<T: Send + Sync>() {}
    const fn one_at_a_time<T: Send>() {}
    any_number::<database::Db>();
    any_number::<database::Snapshot>();
    any_number::<table::Table>();
    any_number::<pool::Pool>();
    any_number::<aggregator::Aggregator>();
    any_number::<forebay::Snapshot>();
    any_number::<beside::ChangeServer>();
    one_at_a_time::<beside::Follower>();
    one_at_a_time::<backups::Backups>();
    one_at_a_time::<batch::Batch>();
    one_at_a_time::<scan::Scan>();
    one_at_a_time::<cursor::Cursor>();
    one_at_a_time::<forebay::Changes>();
    one_at_a_time::<options::Options>();
    one_at_a_time::<options::TableOptions>();
    one_at_a_time::<error::Error>();
};

/// That of the library, as a text of C.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};
