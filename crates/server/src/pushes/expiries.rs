//! [`Expiries`]: keys whose time somebody wants to be told of when it is over. The engine drops them some time as it
//! compacts, and tells nobody.

use std::collections::{BTreeSet, HashMap};

use forebay_env::sync::Mutex;

/// What all of them may take: of more keys nobody is told.
const BYTES_MAX: usize = 64 << 20;
/// What one takes besides its key, which is there twice.
const KEY_BYTES: usize = 160;
/// So many are told of at a time.
const AT_A_TIME: usize = 10_000;

#[derive(Debug, Default)]
struct Keys {
    expiry_of: HashMap<(usize, Vec<u8>), u64>,
    in_order: BTreeSet<(u64, usize, Vec<u8>)>,
    /// Whose time was over before they were written anew.
    replaced: Vec<(usize, Vec<u8>)>,
    bytes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Expiries(Mutex<Keys>);

impl Expiries {
    /// Notes when a key expires that was just written, if it does.
    pub(crate) fn note(&self, (database, key): (usize, &[u8]), expiry: Option<u64>, now: u64) {
        let mut keys = self.0.lock();
        let name = (database, key.to_vec());
        if let Some(before) = keys.expiry_of.remove(&name) {
            keys.bytes -= 2 * key.len() + KEY_BYTES;
            keys.in_order.remove(&(before, database, key.to_vec()));
            if before <= now {
                keys.replaced.push(name.clone());
            }
        }
        let bytes = keys.bytes + 2 * key.len() + KEY_BYTES;
        if let Some(expiry) = expiry.filter(|_| bytes <= BYTES_MAX) {
            keys.bytes = bytes;
            keys.in_order.insert((expiry, database, key.to_vec()));
            keys.expiry_of.insert(name, expiry);
        }
    }

    /// Forgets the keys of a database, or all.
    pub(crate) fn forget(&self, database: Option<usize>) {
        let mut keys = self.0.lock();
        let is_kept = |number: usize| database.is_some_and(|dropped| dropped != number);
        keys.in_order.retain(|one| is_kept(one.1));
        keys.expiry_of.retain(|one, _| is_kept(one.0));
        keys.replaced.retain(|one| is_kept(one.0));
        keys.bytes = keys.expiry_of.keys().map(|one| 2 * one.1.len() + KEY_BYTES).sum();
    }

    /// Takes some of those whose time is over.
    pub(crate) fn take(&self, now: u64) -> Vec<(usize, Vec<u8>)> {
        let mut keys = self.0.lock();
        let mut over = std::mem::take(&mut keys.replaced);
        while over.len() < AT_A_TIME
            && keys.in_order.first().is_some_and(|first| first.0 <= now)
            && let Some((_, database, key)) = keys.in_order.pop_first()
        {
            keys.bytes -= 2 * key.len() + KEY_BYTES;
            let name = (database, key);
            keys.expiry_of.remove(&name);
            over.push(name);
        }
        over
    }
}
