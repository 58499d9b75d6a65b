//! What a turn knows of keys.

use forebay::Result;
use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;

use crate::shared::Shared;
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
    /// All of it was looked at, and may be changed where it stands.
    pub(super) is_checked: bool,
    /// So much it is in the turn's sums.
    pub(super) bytes: usize,
}

impl Entry {
    pub(super) fn new(key: &[u8], stored: Option<Stored>, is_written: bool) -> Self {
        let mut entry = Self { stored, is_written, is_checked: false, bytes: 0 };
        entry.bytes = entry.bytes_with(key);
        entry
    }

    /// What it takes.
    pub(super) fn bytes_with(&self, key: &[u8]) -> usize {
        key.len() + size_of::<Self>() + self.stored.as_ref().map_or(0, |stored| stored.bytes.len())
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

/// What was read, and is not written, is forgotten beyond this: it can be looked up again.
const READ_BYTES_MAX: usize = 8 << 20;

/// What a turn knows of a key, by its entries and how much of them was only read; else it is looked up.
pub(super) fn entry_of<'e>(
    shared: &Shared,
    entries: &'e mut Entries,
    read_bytes: &mut usize,
    (database, key): (usize, &[u8]),
    now: u64,
) -> Result<&'e mut Entry> {
    let sought = Sought { database, bytes: key };
    if *read_bytes > READ_BYTES_MAX {
        entries.retain(|_, entry| entry.is_written);
        *read_bytes = 0;
    }
    let entry = match entries.entry_ref(&sought) {
        EntryRef::Occupied(found) => found.into_mut(),
        EntryRef::Vacant(vacant) => {
            let stored = shared.table(database)?.get_with_expiry(key)?.map(Stored::of);
            let entry = Entry::new(key, stored, false);
            *read_bytes += entry.bytes;
            vacant.insert_with_key(sought.owned(), entry)
        }
    };
    if entry.stored.as_ref().is_some_and(|stored| stored.expiry.is_some_and(|expiry| expiry <= now)) {
        entry.stored = None;
    }
    Ok(entry)
}
