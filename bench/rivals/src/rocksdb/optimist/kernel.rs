//! Optimistic transactions by RocksDB's C interface, and a safe face for them.

use std::ptr::null_mut;

use forebay_bench::Failure;
use librocksdb_sys as c;

use crate::native::kernel::{Owned, checked, shown};
use crate::rocksdb::kernel::Hand;
use crate::sync::SyncWhen;

/// What makes optimistic transactions, one after the other.
pub(in crate::rocksdb) struct Transacts<'a> {
    /// The transaction, whose memory is used again.
    transaction: Owned<c::rocksdb_transaction_t>,
    optimistic: *mut c::rocksdb_optimistictransactiondb_t,
    options: Owned<c::rocksdb_optimistictransaction_options_t>,
    read: Owned<c::rocksdb_readoptions_t>,
    hand: Hand<'a>,
}

// SAFETY: RocksDB takes transactions of several threads at once, and all else here is nobody else's.
unsafe impl Send for Transacts<'_> {}

impl<'a> Transacts<'a> {
    /// The database has to be open for as long as this is used.
    pub(in crate::rocksdb) fn new(
        optimistic: *mut c::rocksdb_optimistictransactiondb_t,
        hand: Hand<'a>,
    ) -> Result<Self, Failure> {
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object.
        unsafe {
            let create = c::rocksdb_optimistictransaction_options_create;
            let options = Owned::new(create(), c::rocksdb_optimistictransaction_options_destroy)?;
            let write = hand.write_options(SyncWhen::Later);
            let begun =
                c::rocksdb_optimistictransaction_begin(optimistic, write, options.as_ptr(), null_mut());
            let transaction = Owned::new(begun, c::rocksdb_transaction_destroy)?;
            let read = Owned::new(c::rocksdb_readoptions_create(), c::rocksdb_readoptions_destroy)?;
            Ok(Self { transaction, optimistic, options, read, hand })
        }
    }

    /// Begins the next one; the last one is over.
    pub(in crate::rocksdb) fn begin(&mut self, sync: SyncWhen) {
        let (whole, write) = (self.optimistic, self.hand.write_options(sync));
        let (options, last) = (self.options.as_ptr(), self.transaction.as_ptr());
        // SAFETY: all are ours and alive. With a transaction of before RocksDB begins that one anew and gives it back.
        let begun = unsafe { c::rocksdb_optimistictransaction_begin(whole, write, options, last) };
        debug_assert_eq!(begun, last, "a transaction that is given is used again");
    }

    /// Reads a key that must be the same at the commit.
    pub(in crate::rocksdb) fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let (transaction, read) = (self.transaction.as_ptr(), self.read.as_ptr());
        let mut bytes = 0;
        // SAFETY: the slice outlives the call; the value is null or ours, and given back once.
        unsafe {
            let found = checked(c::rocksdb_free, |error| {
                let length = &raw mut bytes;
                c::rocksdb_transaction_get_for_update(
                    transaction,
                    read,
                    key.as_ptr().cast(),
                    key.len(),
                    length,
                    1,
                    error,
                )
            })?;
            if found.is_null() {
                return Ok(false);
            }
            value.extend_from_slice(shown(found, bytes));
            c::rocksdb_free(found.cast());
        }
        Ok(true)
    }

    pub(in crate::rocksdb) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let transaction = self.transaction.as_ptr();
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            checked(c::rocksdb_free, |error| {
                let (key, value) = (key.cast(), value.cast());
                c::rocksdb_transaction_put(transaction, key, key_bytes, value, value_bytes, error);
            })
        }
    }

    /// `false` where others were quicker.
    pub(in crate::rocksdb) fn commit(&mut self) -> Result<bool, Failure> {
        let transaction = self.transaction.as_ptr();
        // SAFETY: it is ours and alive.
        let committed =
            unsafe { checked(c::rocksdb_free, |error| c::rocksdb_transaction_commit(transaction, error)) };
        match committed {
            Ok(()) => Ok(true),
            Err(error) if TRIED_AGAIN.iter().any(|status| error.to_string().starts_with(status)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// How the texts of RocksDB begin that say that others were quicker.
const TRIED_AGAIN: [&str; 2] = ["Resource busy", "Operation failed. Try again."];
