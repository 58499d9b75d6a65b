//! A key on its way to lists.

use forebay_base::Order;

use crate::cache::Caching;

/// A key to look up, with what is computed from it once.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its prefix.
    pub prefix: u64,
    /// Its filter hash.
    pub hash: u64,
    /// What becomes of the pages that are read for it.
    pub caching: Caching,
}

impl<'a> Lookup<'a> {
    /// Prepares a lookup in lists of this order.
    pub fn new(order: Order, key: &'a [u8]) -> Self {
        let prefix = order.prefix(key);
        Self { key, prefix, hash: order.key_hash(prefix, key), caching: Caching::default() }
    }

    /// The same, with another end for the pages that are read for it.
    pub fn caching(self, caching: Caching) -> Self {
        Self { caching, ..self }
    }

    /// What becomes of the pages of several: those that are made together are alike.
    pub(super) fn caching_of(lookups: &[Self]) -> Caching {
        lookups.first().map_or_else(Caching::default, |first| first.caching)
    }
}
