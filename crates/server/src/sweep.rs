//! The sweeper: a thread that deletes the elements of containers that are no more.
//!
//! 1. A command that drops a container says so in the table of elements, in its own commit: the container's number waits
//!    there, also over a crash. The sweeper deletes the elements of those numbers, some at a time, and then the number.
//! 2. A container whose time is over, or that a `SET` has replaced without a look, is found in a walk over all
//!    containers: each says which key holds it, and there is the header, or another one, or none. Its number then waits
//!    like others.
//!
//! **Invariant:** a container is dropped only under the lock of the key that it names, and only if that key has no header
//! of its number. No command ever comes to such a container again, so its elements can be deleted without locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use forebay::{Batch, Durability, OrderedTable, ReadOptions, Result};

use crate::elements::{self, DROPPED};
use crate::shared::{DATABASES, Shared};
use crate::value::Header;

/// Elements that are deleted in one step.
const ELEMENTS_AT_A_TIME: usize = 10_000;
/// And no more once their keys have this.
const KEYS_BYTES_MAX: usize = 16 << 20;
/// From so many on they are deleted as a range.
const RANGE_ELEMENTS_MIN: usize = 1000;
/// Containers that one step looks at.
const CONTAINERS_AT_A_TIME: usize = 4000;
/// Of what their keys hold it has this in memory at a time, and the last more.
const FOUND_BYTES_MAX: usize = 4 << 20;
/// Between steps that found little to do.
const PAUSE: Duration = Duration::from_millis(250);
/// A look at containers comes so many steps behind the one before that found little, and a walk over all of them so many
/// behind its like: each makes the engine sort what was written since.
const STEPS_TO_LOOK: u32 = 8;
const STEPS_TO_WALK: u32 = 40;

/// Where the walk over all containers is.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    database: usize,
    /// The number of the container that it looks at next.
    next: u64,
    /// So many steps look at none.
    rests: u32,
}

/// Sweeps until the server stops.
pub(crate) fn spawn(shared: &Arc<Shared>) -> std::io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let run = move || {
        let mut sweeper = Sweeper::default();
        while !shared.stopping.load(Ordering::SeqCst) {
            // What is swept at the source is told by it.
            let sweeps = !shared.following.is_on();
            // What fails now, as a table is just dropped, is done another time; what fails for good, commands tell.
            let is_busy = sweeps && sweeper.step(&shared).unwrap_or(false);
            if sweeps {
                crate::commands::tell_expired(&shared);
            }
            if !is_busy {
                thread::park_timeout(PAUSE);
            }
        }
    };
    thread::Builder::new().name("forebay-sweeper".into()).spawn(run)
}

impl Sweeper {
    /// Does a little. Returns whether there is more to do at once.
    pub(crate) fn step(&mut self, shared: &Shared) -> Result<bool> {
        let (mut is_busy, there) = (false, shared.elements_there()?);
        for (number, table) in &there {
            if shared.has_dropped[*number].swap(false, Ordering::SeqCst) {
                // A table that cannot be read keeps no other from being swept. It is tried again.
                let left = delete_dropped(shared, table);
                shared.has_dropped[*number]
                    .fetch_or(left.as_ref().map_or(true, |left| *left), Ordering::SeqCst);
                is_busy |= left.unwrap_or(false);
            }
        }
        if let Some(rests) = self.rests.checked_sub(1) {
            self.rests = rests;
            return Ok(is_busy);
        }
        // The one where it was, or the next one that there is.
        let found = there.iter().find(|(number, _)| *number >= self.database).or(there.first());
        let Some((number, table)) = found else { return Ok(is_busy) };
        if *number != self.database {
            (self.database, self.next) = (*number, 0);
        }
        let (database, next) = (self.database, self.next + 1);
        let found = self.look(shared, table).inspect_err(|_| {
            if self.database == database {
                self.next = self.next.max(next);
            }
        })?;
        let finds_many = found > CONTAINERS_AT_A_TIME / 10;
        self.rests = match (finds_many, self.next) {
            (true, _) => 0,
            (false, 0) => STEPS_TO_WALK,
            (false, _) => STEPS_TO_LOOK,
        };
        Ok(is_busy || finds_many)
    }

    /// Looks at some containers, and has those wait that are no more. Returns how many.
    fn look(&mut self, shared: &Shared, table: &OrderedTable) -> Result<usize> {
        let (mut owners, mut cursor) = (Vec::new(), table.cursor()?);
        let mut next = self.next.max(DROPPED + 1);
        while owners.len() < CONTAINERS_AT_A_TIME {
            cursor.seek(next.to_be_bytes())?;
            let Some((key, value)) = cursor.entry() else { break };
            let Some(id) = elements::id_of(key) else { break };
            // Of one that is being deleted, the owner goes first.
            if key == elements::owner(id) {
                owners.push((id, value.to_vec()));
            }
            next = id + 1;
        }
        let database = self.database;
        match owners.len() < CONTAINERS_AT_A_TIME {
            true => (self.database, self.next) = ((database + 1) % DATABASES, 0),
            false => self.next = next,
        }
        let (keys, mut dropped) = (shared.table(database)?, 0);
        while !owners.is_empty() {
            // What stands there now may be long texts.
            let names: Vec<&[u8]> = owners.iter().map(|(_, key)| key.as_slice()).collect();
            let found = keys.multi_get_with_expiry_within(&names, FOUND_BYTES_MAX)?;
            let mut looked_at = vec![false; owners.len()];
            for (number, stored) in found {
                looked_at[number] = true;
                let (id, key) = &owners[number];
                if !stored.is_some_and(|(bytes, _)| is_of(&bytes, *id))
                    && drop_dead(shared, (database, table), *id, key)?
                {
                    dropped += 1;
                }
            }
            let mut looked_at = looked_at.into_iter();
            owners.retain(|_| !looked_at.next().unwrap_or(true));
        }
        Ok(dropped)
    }
}

/// Whether a header is of this container.
fn is_of(stored: &[u8], id: u64) -> bool {
    Header::of(stored).is_some_and(|header| header.id == id)
}

/// Has a container wait for its deletion, if it is no more.
fn drop_dead(
    shared: &Shared,
    (database, table): (usize, &OrderedTable),
    id: u64,
    key: &[u8],
) -> Result<bool> {
    let _lock = shared.lock(Shared::stripe_of(key));
    // It may have been renamed, or deleted, since it was found.
    let is_owner = table.get(elements::owner(id))?.is_some_and(|owner| owner == key);
    let headers = shared.table(database)?;
    let stored = headers.get(key)?;
    if !is_owner || stored.as_ref().is_some_and(|stored| is_of(stored, id)) {
        return Ok(false);
    }
    let mut batch = Batch::new();
    batch.put(table, elements::dropped(id), []);
    if stored.is_none() {
        // One that has expired would be back without its elements where a clock is behind ours.
        batch.delete(&headers, key);
    }
    shared.database.commit(batch, Durability::Os)?;
    shared.has_dropped[database].store(true, Ordering::SeqCst);
    Ok(true)
}

/// Deletes some elements of those that wait. Returns whether there are more.
fn delete_dropped(shared: &Shared, table: &OrderedTable) -> Result<bool> {
    // A rollback between the look and the commit would bring a container back, and this delete it.
    let _sweeping = shared.sweeping.lock();
    let (mut left, mut bytes, mut batch) = (ELEMENTS_AT_A_TIME, 0, Batch::new());
    let names = table.with(ReadOptions::default().keys_only(true).fill_cache(false));
    let mut is_more = false;
    for waiting in names.range(elements::all(DROPPED))? {
        let waiting = waiting?.0;
        if left == 0 {
            is_more = true;
            break;
        }
        let Some(id) = elements::dropped_id(&waiting) else { continue };
        let (mut keys, mut is_all) = (Vec::new(), true);
        for entry in names.range(elements::all(id))? {
            if keys.len() == left || bytes > KEYS_BYTES_MAX {
                is_all = false;
                break;
            }
            keys.push(entry?);
            bytes += keys.last().map_or(0, |(key, _)| key.len());
        }
        is_more |= !is_all;
        left = if bytes > KEYS_BYTES_MAX { 0 } else { left - keys.len() };
        if let Some((last, _)) = keys.last().filter(|_| keys.len() >= RANGE_ELEMENTS_MIN) {
            batch.delete_range(table, keys[0].0.clone()..=last.clone());
        } else {
            keys.iter().for_each(|(key, _)| batch.delete(table, key));
        }
        if is_all {
            batch.delete(table, waiting);
        }
    }
    if !batch.is_empty() {
        shared.database.commit(batch, Durability::Memory)?;
    }
    Ok(is_more)
}

#[cfg(test)]
mod tests {
    use forebay::env::{Env, fs::MemoryFs};
    use forebay::{Database, Options};

    use super::*;
    use crate::config::Config;
    use crate::value::{Type, string};

    fn database(files: &Arc<MemoryFs>) -> Database {
        Database::open("/db", Options::default().env(Env::simulated(files.clone(), 1))).expect("it opens")
    }

    /// Writes the elements of a container that a key is said to hold.
    fn put(shared: &Shared, id: u64, key: &[u8], count: u32) {
        let (table, mut batch) = (shared.elements(0).expect("it opens"), Batch::new());
        batch.put(&table, elements::owner(id), key);
        (0..count).for_each(|name| batch.put(&table, elements::named(id, &name.to_be_bytes()), b"value"));
        shared.database.commit(batch, Durability::Os).expect("it is written");
    }

    fn ids(shared: &Shared) -> Vec<u64> {
        let table = shared.elements(0).expect("it opens");
        let mut ids: Vec<_> = table
            .iter()
            .expect("it is read")
            .map(|entry| elements::id_of(&entry.expect("it is read").0).expect("it has one"))
            .collect();
        ids.dedup();
        ids
    }

    #[test]
    fn only_elements_of_what_is_there_stay() {
        let files = MemoryFs::new();
        let shared = Shared::new(Arc::new(database(&files)), Config::default(), None).expect("it opens");
        let headers = shared.table(0).expect("it opens");
        let header = |id| Header { kind: Type::Hash, id, count: 1, first: 0 }.encode();
        put(&shared, 1, b"live", 50);
        headers.put(b"live", header(1)).expect("it is written");
        put(&shared, 2, b"replaced", 5);
        headers.put(b"replaced", string(b"text")).expect("it is written");
        put(&shared, 3, b"dropped", 25_000);
        shared.elements(0).expect("it opens").put(elements::dropped(3), b"").expect("it is written");
        put(&shared, 4, b"expired", 1);
        headers.put_until(b"expired", header(4), 1).expect("it is written");
        put(&shared, 5, b"made anew", 1);
        headers.put(b"made anew", header(6)).expect("it is written");
        put(&shared, 6, b"made anew", 1);
        let mut sweeper = Sweeper::default();
        for _ in 0..3 * DATABASES {
            sweeper.rests = 0;
            sweeper.step(&shared).expect("it sweeps");
        }
        assert_eq!(ids(&shared), [1, 6]);
        let left = shared.elements(0).expect("it opens").range(elements::all(1)).expect("it is read").count();
        assert_eq!(left, 51);
    }

    /// What waits survives a crash, and its number is given to no other container before it is gone.
    #[test]
    fn what_waits_is_found_again() {
        let files = MemoryFs::new();
        {
            let shared = Shared::new(Arc::new(database(&files)), Config::default(), None).expect("it opens");
            put(&shared, 7, b"key", 3);
            shared.elements(0).expect("it opens").put(elements::dropped(9), b"").expect("it is written");
        }
        let shared =
            Shared::new(Arc::new(database(&files.deep_clone())), Config::default(), None).expect("it opens");
        assert_eq!(shared.new_container(), 10);
        let mut sweeper = Sweeper::default();
        for _ in 0..3 * DATABASES {
            sweeper.rests = 0;
            sweeper.step(&shared).expect("it sweeps");
        }
        assert_eq!(ids(&shared), [0; 0]);
    }
}
