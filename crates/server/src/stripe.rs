//! [`Stripe`]: the lock of a share of the keys, with what is told of those.

use std::collections::{HashMap, VecDeque};

use crate::pushes::Seat;
use crate::value::Type;

/// What a lock of some keys guards besides them: those that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Stripe {
    watched: HashMap<(usize, Vec<u8>), Watched>,
    /// Who waits for keys to have something, in rows: one for lists and one for sorted sets.
    rows: HashMap<(usize, Vec<u8>), [VecDeque<Waiter>; 2]>,
}

/// A client that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) id: u64,
    pub(crate) seat: Seat,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    /// How often it was written since.
    writes: u64,
}

/// Which row those stand in who wait for a type.
fn row_of(kind: Type) -> usize {
    usize::from(kind == Type::SortedSet)
}

impl Stripe {
    /// Begins to watch a key. Returns how often it was written so far.
    pub(crate) fn watch(&mut self, database: usize, key: &[u8]) -> u64 {
        let watched = self.watched.entry((database, key.to_vec())).or_default();
        watched.watchers += 1;
        watched.writes
    }

    pub(crate) fn writes(&self, database: usize, key: &[u8]) -> u64 {
        self.watched.get(&(database, key.to_vec())).map_or(0, |watched| watched.writes)
    }

    pub(crate) fn unwatch(&mut self, database: usize, key: &[u8]) {
        let watched = (database, key.to_vec());
        if let Some(found) = self.watched.get_mut(&watched) {
            found.watchers -= 1;
            if found.watchers == 0 {
                self.watched.remove(&watched);
            }
        }
    }

    /// Notes that a key was written.
    pub(crate) fn written(&mut self, database: usize, key: &[u8]) {
        if !self.watched.is_empty()
            && let Some(watched) = self.watched.get_mut(&(database, key.to_vec()))
        {
            watched.writes += 1;
        }
    }

    /// Has a client stand last in a row of a key, if it is not in it.
    pub(crate) fn wait(&mut self, database: usize, key: &[u8], kind: Type, waiter: Waiter) {
        let row = &mut self.rows.entry((database, key.to_vec())).or_default()[row_of(kind)];
        // A key that a command names twice.
        if row.back().is_none_or(|last| last.id != waiter.id) {
            row.push_back(waiter);
        }
    }

    /// Takes a client out of its row of a key. Returns who is first there then, if it was that.
    pub(crate) fn stop_waiting(&mut self, database: usize, key: &[u8], id: u64) -> Option<Seat> {
        let key = (database, key.to_vec());
        let rows = self.rows.get_mut(&key)?;
        let mut next = None;
        for row in rows.iter_mut() {
            let was_first = row.front().is_some_and(|first| first.id == id);
            row.retain(|waiter| waiter.id != id);
            next = next.or(row.front().filter(|_| was_first).map(|first| first.seat.clone()));
        }
        if rows.iter().all(VecDeque::is_empty) {
            self.rows.remove(&key);
        }
        next
    }

    /// The first in each row of a key.
    pub(crate) fn firsts(&self, database: usize, key: &[u8]) -> [Option<Seat>; 2] {
        let found = if self.rows.is_empty() { None } else { self.rows.get(&(database, key.to_vec())) };
        let first = |row: &VecDeque<Waiter>| row.front().map(|first| first.seat.clone());
        found.map_or([None, None], |rows| rows.each_ref().map(first))
    }

    /// Whether nobody stands before a client in a row of a key.
    pub(crate) fn is_first(&self, database: usize, key: &[u8], kind: Type, id: u64) -> bool {
        let rows = self.rows.get(&(database, key.to_vec()));
        rows.and_then(|rows| rows[row_of(kind)].front()).is_none_or(|first| first.id == id)
    }

    /// Notes that all keys may have been.
    pub(crate) fn all_written(&mut self) {
        self.rows.values().flatten().filter_map(VecDeque::front).for_each(|first| first.seat.ring());
        self.watched.values_mut().for_each(|watched| watched.writes += 1);
    }
}
