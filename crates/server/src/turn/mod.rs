//! A turn: what the requests of a loop read and write between two rounds of its sockets, with one commit at its end.
//!
//! **Invariant:** the lock of each key that is read or written is held, and what was written is in `entries` and `elements`
//! until it is committed.

mod commit;
mod elements;
mod entries;
mod plan;

use forebay::{Batch, Durability, Error, Result};
use forebay_env::sync::{MutexGuard, RwLockReadGuard};
use hashbrown::hash_map::EntryRef;

use crate::pushes::{Outgoing, Seat};
use crate::shared::{DATABASES, Shared};
use crate::stripe::Stripe;
use elements::Elements;
use entries::{Entries, Entry, Key, Sought, entry_of};

pub(crate) use elements::{Element, Way};
pub(crate) use entries::Stored;
pub(crate) use plan::Plan;

/// Values that are looked up before the requests are done take about this at most.
const AHEAD_BYTES_MAX: usize = 2 << 20;
/// A turn ends behind the request that has made it handle more than this: read, written and answered together.
const WORK_BYTES_MAX: usize = 8 << 20;
/// Or that has made it hold more than this of elements of containers.
const ELEMENTS_BYTES_MAX: usize = 16 << 20;
/// What a turn has written is at most this before yet another request may write. Few come to it: transactions.
const WRITTEN_BYTES_MAX: usize = 64 << 20;
/// A transaction is refused more once it has handled this: its loop answers nobody else meanwhile.
const TRANSACTION_WORK_BYTES_MAX: usize = 256 << 20;

/// See the module.
pub(crate) struct Turn<'s> {
    pub(crate) shared: &'s Shared,
    /// Where the server follows: the follower takes no step while it is held.
    _reading: Option<RwLockReadGuard<'s, ()>>,
    /// By their numbers: in this order all turns take them.
    locks: Vec<(usize, MutexGuard<'s, Stripe>)>,
    entries: Entries,
    elements: [Elements; DATABASES],
    /// Of entries that were written, and of those that were read only.
    written_bytes: usize,
    read_bytes: usize,
    work_bytes: usize,
    /// The time by which keys expire.
    pub(crate) now: u64,
    /// Of the transaction that runs: whether it has written.
    transaction: Option<bool>,
    /// What elements took where the turn began, or the transaction.
    elements_before: usize,
    /// How long its connection's replies were where the transaction began.
    replies_before: usize,
    /// How often something was written.
    changes: u64,
    durability: Durability,
    /// Somebody has written what is to be on the disk before the reply.
    is_durable: bool,
    /// What is added to aggregators. Nobody in the turn reads it before it is written out.
    added: Batch,
    /// Keys that the command that runs has written, where somebody is told of them.
    touched: Vec<(usize, Vec<u8>)>,
    /// Those whose turn it is to take something, once it is there.
    woken: Vec<Seat>,
    /// What it has published.
    pub(crate) outgoing: Outgoing,
    /// What was written is lost: all who wrote are told.
    failed: Option<Error>,
}

impl<'s> Turn<'s> {
    /// Locks the keys that a turn needs, and looks those up that it reads.
    pub(crate) fn begin(shared: &'s Shared, plan: &mut Plan) -> Self {
        let reading = shared.following.reading();
        let locks = plan.stripes().map(|stripe| (stripe, shared.lock(stripe))).collect();
        let mut turn = Self {
            shared,
            _reading: reading,
            locks,
            entries: Entries::default(),
            elements: Default::default(),
            written_bytes: 0,
            read_bytes: 0,
            work_bytes: 0,
            now: shared.database.unix_milliseconds(),
            transaction: None,
            elements_before: 0,
            replies_before: 0,
            changes: 0,
            durability: Durability::Memory,
            is_durable: false,
            added: Batch::new(),
            touched: Vec::new(),
            woken: Vec::new(),
            outgoing: Outgoing::default(),
            failed: None,
        };
        for (database, keys) in plan.reads.iter_mut().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            // A hot key comes once.
            keys.sort_unstable();
            keys.dedup();
            let left = AHEAD_BYTES_MAX.saturating_sub(turn.read_bytes);
            let found =
                shared.table(database).and_then(|table| table.multi_get_with_expiry_within(keys, left));
            // Where a key cannot be read, those are refused that ask for it, when they do.
            for (number, found) in found.into_iter().flatten() {
                let key = std::mem::take(&mut keys[number]);
                let entry = Entry::new(&key, found.map(Stored::of), false);
                turn.read_bytes += entry.bytes;
                turn.entries.insert(Key { database, bytes: key }, entry);
            }
        }
        for (database, names) in plan.names.iter_mut().enumerate().filter(|(_, names)| !names.is_empty()) {
            let mut keys = Vec::with_capacity(names.len());
            names.sort_unstable();
            let mut container: Option<(Vec<u8>, Option<u64>)> = None;
            for (key, name) in names.drain(..) {
                let id = match container.take() {
                    Some((known, id)) if known == key => id,
                    _ => turn.get(database, &key).ok().flatten().and_then(Stored::id),
                };
                container = Some((key, id));
                keys.extend(id.map(|id| crate::elements::named(id, &name)));
            }
            let left = AHEAD_BYTES_MAX.saturating_sub(turn.elements_bytes());
            drop(turn.look_up_within(database, keys, left));
        }
        // Or a turn could be over before its first request, again and again.
        (turn.work_bytes, turn.elements_before) = (0, turn.elements_bytes());
        turn
    }

    /// What a key holds.
    pub(crate) fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<&Stored>> {
        debug_assert!(self.stripe(key).is_some(), "the plan has the key");
        let entry =
            entry_of(self.shared, &mut self.entries, &mut self.read_bytes, (database, key), self.now)?;
        let bytes = entry.stored.as_ref().map_or(0, |stored| stored.bytes.len());
        self.work_bytes = self.work_bytes.saturating_add(bytes);
        Ok(entry.stored.as_ref())
    }

    /// Has `change` change what a key holds, where it stands, and say whether it did. `is_right` says whether it is of the
    /// type that is asked for; before a value is come to first in the turn, `check` looks at all of it. `None` where the key
    /// holds nothing.
    pub(crate) fn edit<E: From<Error>>(
        &mut self,
        database: usize,
        key: &[u8],
        is_right: impl FnOnce(&[u8]) -> Result<(), E>,
        check: impl FnOnce(&[u8]) -> Result<(), E>,
        change: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<Option<bool>, E> {
        let entry =
            entry_of(self.shared, &mut self.entries, &mut self.read_bytes, (database, key), self.now)?;
        let Some(stored) = &mut entry.stored else { return Ok(None) };
        is_right(&stored.bytes)?;
        let looked_at = if entry.is_checked { 0 } else { stored.bytes.len() };
        if !entry.is_checked {
            check(&stored.bytes)?;
            entry.is_checked = true;
        }
        let is_changed = change(&mut stored.bytes);
        let (was_written, before) = (entry.is_written, entry.bytes);
        if is_changed {
            (entry.is_written, entry.bytes) = (true, entry.bytes_with(key));
            let now = entry.bytes;
            let sum = if was_written { &mut self.written_bytes } else { &mut self.read_bytes };
            *sum = sum.saturating_sub(before);
            self.written_bytes += now;
            self.touch(database, key);
        }
        self.work_bytes = self.work_bytes.saturating_add(looked_at + key.len());
        Ok(Some(is_changed))
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
        let entry = Entry::new(key, stored, true);
        self.written_bytes += entry.bytes;
        self.work_bytes = self.work_bytes.saturating_add(entry.bytes);
        let sought = Sought { database, bytes: key };
        match self.entries.entry_ref(&sought) {
            EntryRef::Occupied(mut found) => {
                let old = found.insert(entry);
                let sum = if old.is_written { &mut self.written_bytes } else { &mut self.read_bytes };
                *sum = sum.saturating_sub(old.bytes);
                old.stored?.id()
            }
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
        self.wake_firsts(database, key);
        if self.shared.events.are_on() {
            self.touched.push((database, key.to_vec()));
        }
        self.note_write();
    }

    /// Wakes whoever is first in a row of a key, behind the commit.
    pub(crate) fn wake_firsts(&mut self, database: usize, key: &[u8]) {
        let firsts = self.stripe(key).map(|stripe| stripe.firsts(database, key));
        firsts.into_iter().flatten().for_each(|first| self.wake(first));
    }

    /// Wakes a client behind the commit.
    pub(crate) fn wake(&mut self, seat: Option<Seat>) {
        self.woken.extend(seat.filter(|seat| self.woken.last().is_none_or(|last| !last.is(seat))));
    }

    /// Whether somebody is to be told of keys.
    pub(crate) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The keys that were written since it was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.touched)
    }

    fn note_write(&mut self) {
        self.changes += 1;
        self.transaction = self.transaction.map(|_| true);
    }

    /// Notes that so many bytes were handled besides.
    pub(crate) fn worked(&mut self, bytes: usize) {
        self.work_bytes = self.work_bytes.saturating_add(bytes);
    }

    /// Notes that this is the last thing that it is asked.
    fn ends(&mut self) {
        self.work_bytes = self.work_bytes.max(WORK_BYTES_MAX + 1);
    }

    /// Whether what it was asked is enough, and the rest is for the next one.
    pub(crate) fn is_over(&self) -> bool {
        self.failed.is_some()
            || self.work_bytes > WORK_BYTES_MAX
            || self.elements_bytes().saturating_sub(self.elements_before) > ELEMENTS_BYTES_MAX
    }

    /// Whether its transaction has read or written so much that nothing more may be.
    pub(crate) fn is_full(&self) -> bool {
        self.is_in_transaction()
            && (self.work_bytes > TRANSACTION_WORK_BYTES_MAX
                || self
                    .written_bytes
                    .saturating_add(self.transaction_elements_bytes())
                    .saturating_add(self.outgoing.bytes())
                    > WRITTEN_BYTES_MAX)
    }

    /// How often something was written so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Gives up what was written: all who wrote are told.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.failed.get_or_insert_with(|| error.clone());
    }

    /// The lock of a key, if the turn has it.
    pub(crate) fn stripe(&mut self, key: &[u8]) -> Option<&mut Stripe> {
        let stripe = Shared::stripe_of(key);
        let at = self.locks.binary_search_by_key(&stripe, |lock| lock.0).ok()?;
        Some(&mut self.locks[at].1)
    }

    /// All locks that the turn has.
    pub(crate) fn stripes(&mut self) -> impl Iterator<Item = &mut Stripe> {
        self.locks.iter_mut().map(|(_, stripe)| &mut **stripe)
    }

    /// Has the turn's commit survive at least this.
    pub(crate) fn asks_for(&mut self, durability: Durability) {
        self.durability = self.durability.max(durability);
    }

    /// Notes what was asked for a command that has written.
    pub(crate) fn note_durability(&mut self, durability: Durability) {
        self.is_durable |= durability == Durability::Disk;
    }

    /// Whether somebody has written what is to be on the disk, since this was asked.
    pub(crate) fn takes_durable(&mut self) -> bool {
        std::mem::take(&mut self.is_durable)
    }

    /// From here on until `end_transaction` all is written in one batch, or nothing. So many bytes of replies come before
    /// its own.
    pub(crate) fn begin_transaction(&mut self, replies_before: usize) {
        (self.transaction, self.elements_before) = (Some(false), self.elements_bytes());
        self.replies_before = replies_before;
    }

    /// Whether what it does waited for `EXEC`.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    pub(crate) fn end_transaction(&mut self) {
        self.transaction = None;
    }

    /// What is added to aggregators: it is written with all else.
    pub(crate) fn added(&mut self) -> &mut Batch {
        self.note_write();
        &mut self.added
    }

    /// Memory that elements take which its transaction has looked at or written; 0 outside of one.
    pub(crate) fn transaction_elements_bytes(&self) -> usize {
        self.transaction.map_or(0, |_| self.elements_bytes().saturating_sub(self.elements_before))
    }

    /// How long its transaction's replies are, where with those before they are so long; 0 outside of one.
    pub(crate) fn transaction_reply_bytes(&self, replies_bytes: usize) -> usize {
        self.transaction.map_or(0, |_| replies_bytes.saturating_sub(self.replies_before))
    }

    fn elements_bytes(&self) -> usize {
        self.elements.iter().map(Elements::bytes).sum()
    }

    /// Forgets what it knows of keys: they were dropped.
    pub(crate) fn forget(&mut self, database: Option<usize>) {
        for number in database.map_or(0..DATABASES, |number| number..number + 1) {
            self.elements[number] = Elements::default();
        }
        self.entries.retain(|key, _| database.is_some_and(|dropped| dropped != key.database));
    }
}
