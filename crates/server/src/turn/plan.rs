//! What the requests of a turn need, before they are done.

use crate::shared::{DATABASES, STRIPES, Shared};

/// Keys that are looked up before the requests are done take at most this; others are looked up when it is their turn.
const AHEAD_KEYS_BYTES_MAX: usize = 4 << 20;

/// The keys that a turn needs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// A bit for each.
    pub(super) stripes: [u64; STRIPES / 64],
    /// What will be read, for each database.
    pub(super) reads: [Vec<Vec<u8>>; DATABASES],
    reads_bytes: usize,
    /// Keys of containers, and what is looked for in them by name.
    pub(super) names: [Vec<(Vec<u8>, Vec<u8>)>; DATABASES],
    /// Whose transactions it has: those that wait, and the keys that are watched.
    queued: Option<u64>,
    watched: Option<u64>,
}

impl Plan {
    pub(crate) fn key(&mut self, database: usize, key: &[u8], is_read: bool) {
        self.lock(key);
        if is_read && self.reads_bytes < AHEAD_KEYS_BYTES_MAX {
            self.reads_bytes += key.len() + size_of::<Vec<u8>>();
            self.reads[database].push(key.to_vec());
        }
    }

    pub(crate) fn lock(&mut self, key: &[u8]) {
        let stripe = Shared::stripe_of(key);
        self.stripes[stripe / 64] |= 1 << (stripe % 64);
    }

    /// A field or member that will be read.
    pub(crate) fn name(&mut self, database: usize, key: &[u8], name: &[u8]) {
        if self.reads_bytes < AHEAD_KEYS_BYTES_MAX {
            self.reads_bytes += key.len() + name.len() + 2 * size_of::<Vec<u8>>();
            self.names[database].push((key.to_vec(), name.to_vec()));
        }
    }

    /// All keys.
    pub(crate) fn whole(&mut self) {
        self.stripes = [u64::MAX; STRIPES / 64];
    }

    /// Whether the commands that a client has queued are to be planned: once, however often it ends them.
    pub(crate) fn takes_queue(&mut self, client: u64) -> bool {
        self.queued.replace(client) != Some(client)
    }

    /// The same of the keys that it watches.
    pub(crate) fn takes_watched(&mut self, client: u64) -> bool {
        self.watched.replace(client) != Some(client)
    }

    pub(super) fn stripes(&self) -> impl Iterator<Item = usize> {
        (0..STRIPES).filter(|stripe| self.stripes[stripe / 64] & 1 << (stripe % 64) != 0)
    }
}
