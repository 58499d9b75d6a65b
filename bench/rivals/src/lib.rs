//! Other storage engines behind the seam of `forebay-bench`, each tuned as its own experts would, within the
//! memory and the threads that all are given.

mod fjall;
mod gnu_sort;
mod kyoto;
mod leveldb;
mod lmdb;
mod native;
mod read_ahead;
mod redb;
mod rocksdb;
mod stores;
mod sync;
mod text;
mod wait;

use forebay_bench::Kind;
pub use read_ahead::ReadAhead;
pub use stores::Stores;
use rocksdb::{Adding, Style};

/// Every engine, in the order of results.
pub const KINDS: [&dyn Kind; 12] = [
    &rocksdb::RocksDb(Style::Leveled, Adding::ByBatch),
    &rocksdb::RocksDb(Style::Universal, Adding::ByBatch),
    &rocksdb::RocksDb(Style::Blob, Adding::ByBatch),
    &leveldb::LevelDb,
    &fjall::Fjall,
    &lmdb::Lmdb,
    &redb::Redb,
    &kyoto::KyotoHash,
    &rocksdb::RocksDb(Style::Leveled, Adding::OneByOne),
    &rocksdb::RocksDb(Style::Leveled, Adding::Merging),
    &forebay_bench::Sort,
    &gnu_sort::GnuSort,
];
