//! What a turn knows of keys.

use hashbrown::HashMap;

use crate::value::Header;

/// What a key holds, as it is stored, and when that expires, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expiry: Option<u64>,
}

impl Stored {
    pub(super) fn of((bytes, expiry): (Vec<u8>, Option<u64>)) -> Self {
        Self { bytes, expiry }
    }

    /// The number of the container that it is.
    pub(super) fn id(&self) -> Option<u64> {
        Header::of(&self.bytes).map(|header| header.id)
    }
}

/// A key of this turn.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stored: Option<Stored>,
    pub(super) is_written: bool,
    /// So much it is in the turn's sums.
    pub(super) bytes: usize,
}

impl Entry {
    pub(super) fn new(key: &[u8], stored: Option<Stored>, is_written: bool) -> Self {
        let bytes = key.len() + size_of::<Self>() + stored.as_ref().map_or(0, |stored| stored.bytes.len());
        Self { stored, is_written, bytes }
    }
}

pub(super) type Entries = HashMap<Key, Entry, rapidhash::fast::RandomState>;

/// A key, and the number of its database.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) database: usize,
    pub(super) bytes: Vec<u8>,
}

/// The same where it is looked for.
#[derive(Hash)]
pub(super) struct Sought<'k> {
    pub(super) database: usize,
    pub(super) bytes: &'k [u8],
}

impl hashbrown::Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.database == key.database && self.bytes == key.bytes
    }
}

impl Sought<'_> {
    pub(super) fn owned(&self) -> Key {
        Key { database: self.database, bytes: self.bytes.to_vec() }
    }
}
