//! Other storage engines behind the seam of `forebay-bench`, each tuned as its own experts would, within the
//! memory and the threads that all are given.

mod fjall;
mod kyoto;
mod leveldb;
mod lmdb;
mod native;
mod read_ahead;
mod rocksdb;
mod sync;
mod text;
mod wait;

use forebay_bench::Kind;
pub use read_ahead::ReadAhead;

/// Every engine, in the order of results.
pub const KINDS: [&dyn Kind; 6] = [
    &rocksdb::RocksDb(rocksdb::Style::Leveled),
    &rocksdb::RocksDb(rocksdb::Style::Universal),
    &leveldb::LevelDb,
    &fjall::Fjall,
    &lmdb::Lmdb,
    &kyoto::KyotoHash,
];
