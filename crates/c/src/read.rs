//! Lookups: of one key or many, now or in a snapshot. Values are copies for C to free.

use std::ffi::c_char;

use forebay::Error;

use crate::database::Snapshot;
use crate::error::ErrorOut;
use crate::kernel::{Items, Out, Room, Slice, bytes_of, fallible, given, plain, put};
use crate::table::Table;

fallible! { ErrorOut<'_>;
    fn forebay_table_get(
        table: &Table,
        snapshot: Option<&Snapshot>,
        key: &[u8] [key_bytes],
        value_bytes: Out<'_, usize>,
    ) -> *mut c_char {
        let found = match snapshot {
            Some(snapshot) => snapshot.0.get(table, key),
            None => table.as_ref().get(key),
        }?;
        put(value_bytes, found.as_ref().map_or(0, Vec::len));
        Ok(found.map_or(std::ptr::null_mut(), |value| given(&value)))
    }

    fn forebay_table_multi_get(
        table: &Table,
        snapshot: Option<&Snapshot>,
        keys: Items<'_, Slice> where count,
        values: Room<'_, Slice> where count,
        count: usize,
    ) -> bool {
        let keys = bytes_of(&keys, "a key")?;
        let found = match snapshot {
            Some(snapshot) => snapshot.0.multi_get(table, &keys),
            None => table.as_ref().multi_get(&keys),
        }?;
        if found.len() != count {
            return Err(Error::bug("a lookup of many keys answered as many others"));
        }
        for (value, room) in found.iter().zip(values) {
            room.write(value.as_ref().map_or(Slice::NONE, |value| Slice::given(value)));
        }
        Ok(true)
    }
}

plain! {
    fn forebay_values_free(values: &mut [Slice] [count]) {
        values.iter_mut().for_each(Slice::free);
    }
}
