//! Entries that expire: when they do, and changes of that. Forever is the greatest number.

use std::ffi::c_char;

use forebay::Error;

use crate::database::{Db, Snapshot};
use crate::error::ErrorOut;
use crate::kernel::{Out, fallible, given, plain, put};
use crate::table::Table;

const NEVER: u64 = u64::MAX;

fallible! { ErrorOut<'_>;
    fn forebay_table_get_with_expiry(
        table: &Table,
        snapshot: Option<&Snapshot>,
        key: &[u8] [key_bytes],
        value_bytes: Out<'_, usize>,
        unix_milliseconds: Out<'_, u64>,
    ) -> *mut c_char {
        let found = match snapshot {
            Some(snapshot) => snapshot.0.get_with_expiry(table, key),
            None => table.as_ref().get_with_expiry(key),
        }?;
        let (value, expiry) = match &found {
            Some((value, expiry)) => (given(value), expiry.unwrap_or(NEVER)),
            None => (std::ptr::null_mut(), NEVER),
        };
        put(value_bytes, found.as_ref().map_or(0, |(value, _)| value.len()));
        put(unix_milliseconds, expiry);
        Ok(value)
    }

    fn forebay_table_put_until(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        unix_milliseconds: u64,
    ) -> bool {
        table.as_ref().put_until(key, value, unix_milliseconds).map(|()| true)
    }

    fn forebay_table_expire(table: &Table, key: &[u8] [key_bytes], unix_milliseconds: u64) -> bool {
        is_there(table.as_ref().expire(key, unix_milliseconds)?, table)
    }

    fn forebay_table_persist(table: &Table, key: &[u8] [key_bytes]) -> bool {
        is_there(table.as_ref().persist(key)?, table)
    }
}

fn is_there(found: bool, table: &Table) -> Result<bool, Error> {
    match found {
        true => Ok(true),
        false => Err(Error::NotFound(format!("table `{}` has no such key", table.as_ref().name()))),
    }
}

plain! {
    fn forebay_db_unix_milliseconds(db: &Db) -> u64 {
        db.0.unix_milliseconds()
    }
}
