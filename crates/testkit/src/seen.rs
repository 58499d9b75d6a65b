//! What must be seen of the model at some time: entries expire, and filters drop some when they come by.
//!
//! **Invariant:** an entry is *doubtful* where the engine may show it or not; if it shows it, then with its newest
//! value.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::Moment;
use crate::{Config, Contents, is_dropped};

/// The wall clock, in milliseconds since 1970, as it is and at its highest so far: merges may have dropped what had
/// expired by then.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Now.
    pub now: u64,
    /// Ever.
    pub highest: u64,
}

/// What must be seen of a table.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// Its entries, the doubtful ones among them.
    pub contents: Cow<'a, Contents>,
    /// Keys that may be seen or not.
    pub doubtful: BTreeSet<Vec<u8>>,
    /// What the last commit with metadata told.
    pub metadata: Option<&'a [u8]>,
}

impl<'a> Shown<'a> {
    /// A table of a moment, looked at at a time.
    pub fn of(config: &Config, moment: &'a Moment, table: usize, time: Time) -> Self {
        let metadata = moment.metadata[table].as_deref();
        let stored = &moment.tables[table];
        let (expires, drops) = (config.time_to_live(table).is_some(), config.drops(table));
        if !expires && !drops {
            return Self { contents: Cow::Borrowed(stored), doubtful: BTreeSet::new(), metadata };
        }
        let (mut contents, mut doubtful) = (Contents::new(), BTreeSet::new());
        for (key, stored) in stored {
            let (value, expiry) = if expires { split(stored) } else { (&stored[..], u64::MAX) };
            if expiry <= time.now {
                continue;
            }
            if expiry <= time.highest || drops && is_dropped(key, value) {
                doubtful.insert(key.clone());
            }
            contents.insert(key.clone(), value.to_vec());
        }
        Self { contents: Cow::Owned(contents), doubtful, metadata }
    }

    /// The same, for later.
    pub fn kept(self) -> Kept {
        let Self { contents, doubtful, metadata } = self;
        Kept { contents: contents.into_owned(), doubtful, metadata: metadata.map(<[u8]>::to_vec) }
    }
}

/// What a snapshot must show of a table, for as long as it is held.
#[derive(Clone, Debug)]
pub struct Kept {
    contents: Contents,
    doubtful: BTreeSet<Vec<u8>>,
    metadata: Option<Vec<u8>>,
}

impl Kept {
    /// To be compared with.
    pub fn shown(&self) -> Shown<'_> {
        Shown {
            contents: Cow::Borrowed(&self.contents),
            doubtful: self.doubtful.clone(),
            metadata: self.metadata.as_deref(),
        }
    }
}

pub(crate) fn split(stored: &[u8]) -> (&[u8], u64) {
    stored
        .split_last_chunk()
        .map_or((stored, u64::MAX), |(value, expiry)| (value, u64::from_le_bytes(*expiry)))
}
