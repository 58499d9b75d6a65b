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
        let give = |value: &[u8]| (value.len(), given(value));
        let found = match snapshot {
            Some(snapshot) => snapshot.0.get_with(table, key, give),
            None => table.as_ref().get_with(key, give),
        }?;
        let (bytes, value) = found.unwrap_or((0, std::ptr::null_mut()));
        put(value_bytes, bytes);
        Ok(value)
    }

    fn forebay_table_multi_get(
        table: &Table,
        snapshot: Option<&Snapshot>,
        keys: Items<'_, Slice> where count,
        values: Room<'_, Slice> where count,
        count: usize,
    ) -> bool {
        let keys = bytes_of(&keys, "a key")?;
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(count));
        match snapshot {
            Some(snapshot) => snapshot.0.multi_get_into(table, &keys, &mut bytes, &mut places),
            None => table.as_ref().multi_get_into(&keys, &mut bytes, &mut places),
        }?;
        if places.len() != count {
            return Err(Error::bug("a lookup of many keys answered as many others"));
        }
        for (place, room) in places.into_iter().zip(values) {
            room.write(place.map_or(Slice::NONE, |place| Slice::given(&bytes[place])));
        }
        Ok(true)
    }
}

plain! {
    fn forebay_values_free(values: &mut [Slice] [count]) {
        values.iter_mut().for_each(Slice::free);
    }
}
