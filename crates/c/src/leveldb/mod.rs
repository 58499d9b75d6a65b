//! LevelDB's interface for C, `include/leveldb/c.h`, on one table in key order: its documented calls, so that a program
//! that was written for LevelDB is linked with this instead. What only tunes LevelDB is taken and does nothing.
//!
//! Where LevelDB demands what a caller does not give, as a pointer that is not null, this answers with an error where
//! the call can tell one, and else does nothing.

mod batch;
mod database;
mod iterator;
mod options;
mod snapshot;
mod stubs;
