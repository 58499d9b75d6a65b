//! A turn: what the requests of a loop read and write between two rounds of its sockets, with one commit at its end.
//!
//! **Invariant:** the lock of each key that is read or written is held, and what was written is in `entries` and `elements`
//! until it is committed.

mod elements;

use forebay::{Batch, Durability, Result};
use forebay_env::sync::MutexGuard;
use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;

use crate::shared::{DATABASES, STRIPES, Shared, Stripe};
use crate::value::Header;
use elements::Elements;

pub(crate) use elements::{Element, Way};

/// What a key holds, as it is stored, and when that expires, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expiry: Option<u64>,
}

impl Stored {
    fn of((bytes, expiry): (Vec<u8>, Option<u64>)) -> Self {
        Self { bytes, expiry }
    }

    /// The number of the container that it is.
    fn id(&self) -> Option<u64> {
        Header::of(&self.bytes).map(|header| header.id)
    }
}

/// A key of this turn.
#[derive(Debug)]
struct Entry {
    stored: Option<Stored>,
    is_written: bool,
}

type Entries = HashMap<Key, Entry, rapidhash::fast::RandomState>;

/// A key, and the number of its database.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    database: usize,
    bytes: Vec<u8>,
}

/// The same where it is looked for.
#[derive(Hash)]
struct Sought<'k> {
    database: usize,
    bytes: &'k [u8],
}

impl hashbrown::Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.database == key.database && self.bytes == key.bytes
    }
}

impl Sought<'_> {
    fn owned(&self) -> Key {
        Key { database: self.database, bytes: self.bytes.to_vec() }
    }
}

/// The keys that a turn needs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    stripes: Vec<usize>,
    is_whole: bool,
    /// What will be read, for each database.
    reads: [Vec<Vec<u8>>; DATABASES],
    /// Keys of containers, and what is looked for in them by name.
    names: [Vec<(Vec<u8>, Vec<u8>)>; DATABASES],
}

impl Plan {
    pub(crate) fn key(&mut self, database: usize, key: &[u8], is_read: bool) {
        self.stripes.push(Shared::stripe_of(key));
        if is_read {
            self.reads[database].push(key.to_vec());
        }
    }

    pub(crate) fn lock(&mut self, key: &[u8]) {
        self.stripes.push(Shared::stripe_of(key));
    }

    /// A field or member that will be read.
    pub(crate) fn name(&mut self, database: usize, key: &[u8], name: &[u8]) {
        self.names[database].push((key.to_vec(), name.to_vec()));
    }

    /// All keys.
    pub(crate) fn whole(&mut self) {
        self.is_whole = true;
    }
}

/// See the module.
pub(crate) struct Turn<'s> {
    pub(crate) shared: &'s Shared,
    /// By their numbers: in this order all turns take them.
    locks: Vec<(usize, MutexGuard<'s, Stripe>)>,
    entries: Entries,
    elements: [Elements; DATABASES],
    /// The time by which keys expire.
    pub(crate) now: u64,
    has_written: bool,
    durability: Durability,
}

impl<'s> Turn<'s> {
    /// Locks the keys that a turn needs, and looks those up that it reads.
    pub(crate) fn begin(shared: &'s Shared, plan: &mut Plan) -> Result<Self> {
        if plan.is_whole {
            plan.stripes = (0..STRIPES).collect();
        }
        plan.stripes.sort_unstable();
        plan.stripes.dedup();
        let locks = plan.stripes.iter().map(|stripe| (*stripe, shared.lock(*stripe))).collect();
        let mut turn = Self {
            shared,
            locks,
            entries: Entries::default(),
            elements: Default::default(),
            now: shared.database.unix_milliseconds(),
            has_written: false,
            durability: Durability::Memory,
        };
        for (database, keys) in plan.reads.iter_mut().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            // A hot key comes once.
            keys.sort_unstable();
            keys.dedup();
            let found = shared.table(database)?.multi_get_with_expiry(keys)?;
            for (key, found) in keys.drain(..).zip(found) {
                let entry = Entry { stored: found.map(Stored::of), is_written: false };
                turn.entries.insert(Key { database, bytes: key }, entry);
            }
        }
        for (database, names) in plan.names.iter_mut().enumerate().filter(|(_, names)| !names.is_empty()) {
            let mut keys = Vec::with_capacity(names.len());
            for (key, name) in names.drain(..) {
                if let Some(id) = turn.get(database, &key)?.and_then(Stored::id) {
                    keys.push(crate::elements::named(id, &name));
                }
            }
            turn.look_up(database, keys)?;
        }
        Ok(turn)
    }

    /// What a key holds.
    pub(crate) fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<&Stored>> {
        debug_assert!(self.stripe(key).is_some(), "the plan has the key");
        let now = self.now;
        let sought = Sought { database, bytes: key };
        let entry = match self.entries.entry_ref(&sought) {
            EntryRef::Occupied(found) => found.into_mut(),
            EntryRef::Vacant(vacant) => {
                let stored = self.shared.table(database)?.get_with_expiry(key)?.map(Stored::of);
                vacant.insert_with_key(sought.owned(), Entry { stored, is_written: false })
            }
        };
        if entry.stored.as_ref().is_some_and(|stored| stored.expiry.is_some_and(|expiry| expiry <= now)) {
            entry.stored = None;
        }
        Ok(entry.stored.as_ref())
    }

    /// Has a key hold something, or nothing. A container that it held is dropped; of one that nobody has looked at here,
    /// the sweeper finds out.
    pub(crate) fn set(&mut self, database: usize, key: &[u8], stored: Option<Stored>) {
        let now = stored.as_ref().and_then(Stored::id);
        let before = self.write(database, key, stored);
        if before != now {
            let elements = &mut self.elements[database];
            before.into_iter().for_each(|id| elements.drop_container(id));
            now.into_iter().for_each(|id| elements.own(id, key));
        }
    }

    /// Gives what a key holds to another one.
    pub(crate) fn rename(&mut self, database: usize, from: &[u8], to: &[u8], stored: Stored) {
        debug_assert!(from != to, "then there is nothing to do");
        self.set(database, to, Some(stored));
        self.write(database, from, None);
    }

    /// The same, where no container is dropped. Returns the number of the one that the key held.
    fn write(&mut self, database: usize, key: &[u8], stored: Option<Stored>) -> Option<u64> {
        self.touch(database, key);
        let entry = Entry { stored, is_written: true };
        let sought = Sought { database, bytes: key };
        match self.entries.entry_ref(&sought) {
            EntryRef::Occupied(mut found) => found.insert(entry).stored?.id(),
            EntryRef::Vacant(vacant) => {
                vacant.insert_with_key(sought.owned(), entry);
                None
            }
        }
    }

    /// Notes that what a key holds was changed.
    pub(crate) fn touch(&mut self, database: usize, key: &[u8]) {
        let stripe = self.stripe(key);
        debug_assert!(stripe.is_some(), "the plan has the key");
        if let Some(stripe) = stripe {
            stripe.written(database, key);
        }
        self.has_written = true;
    }

    /// The lock of a key, if the turn has it.
    pub(crate) fn stripe(&mut self, key: &[u8]) -> Option<&mut Stripe> {
        let stripe = Shared::stripe_of(key);
        let at = self.locks.binary_search_by_key(&stripe, |lock| lock.0).ok()?;
        Some(&mut self.locks[at].1)
    }

    /// Has the turn's commit survive at least this.
    pub(crate) fn asks_for(&mut self, durability: Durability) {
        self.durability = self.durability.max(durability);
    }

    /// Writes what the turn has written so far where scans see it.
    pub(crate) fn write_out(&mut self) -> Result<()> {
        let mut batch = Batch::new();
        for (Key { database, bytes: key }, entry) in
            self.entries.iter_mut().filter(|(_, entry)| entry.is_written)
        {
            let table = self.shared.table(*database)?;
            match &entry.stored {
                Some(Stored { bytes, expiry: None }) => batch.put(&table, key, bytes),
                Some(Stored { bytes, expiry: Some(expiry) }) => {
                    batch.put_until(&table, key, bytes, *expiry);
                }
                None => batch.delete(&table, key),
            }
            entry.is_written = false;
        }
        for (database, elements) in self.elements.iter_mut().enumerate() {
            match elements.is_written() {
                true => elements.write_out(&self.shared.elements(database)?, &mut batch),
                false => *elements = Elements::default(),
            }
        }
        if !batch.is_empty() {
            // The disk is waited for without locks.
            self.shared.database.commit(batch, self.durability.min(Durability::Os))?;
        }
        Ok(())
    }

    /// Memory that elements take which it has looked at or written.
    pub(crate) fn elements_bytes(&self) -> usize {
        self.elements.iter().map(Elements::bytes).sum()
    }

    /// Forgets what it knows of keys: they were dropped.
    pub(crate) fn forget(&mut self, database: Option<usize>) {
        for number in database.map_or(0..DATABASES, |number| number..number + 1) {
            self.elements[number] = Elements::default();
        }
        self.entries.retain(|key, _| database.is_some_and(|dropped| dropped != key.database));
        self.has_written = true;
    }

    /// Commits what was written, and gives the locks back; then waits for the disk, if somebody asked for that.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write_out()?;
        let Self { shared, locks, has_written, durability, .. } = self;
        drop(locks);
        if has_written && durability == Durability::Disk {
            shared.database.sync()?;
        }
        Ok(())
    }
}
