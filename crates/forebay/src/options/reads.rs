//! What a reader asks for besides what it reads.

use forebay_store::Caching;

use super::Options;

impl Options {
    /// How readily lists are merged for the sake of lookups. In a table with many lists a lookup spends time on lists
    /// that lack its key. For each second wasted in this way, idle background work may spend this many seconds on
    /// merging: 8 by default, 0 for never.
    pub fn read_compaction_ratio(mut self, ratio: f64) -> Self {
        self.read_compaction_ratio = ratio;
        self
    }

    /// Whether files are written through the system's page cache. By default lists and values go around it, as most of
    /// what is merged is not read soon, and would drive out what is. With it, what was just written is read from memory
    /// that the system has to spare, without a read of the device: for databases that are not much larger than that. It
    /// counts towards no limit, and the system takes it back when somebody needs it. It may be another at each opening.
    pub fn system_cache(mut self, through: bool) -> Self {
        self.system_cache = through;
        self
    }
}

/// How a handle reads: [`Table::with`](crate::Table::with), [`OrderedTable::with`](crate::OrderedTable::with) and
/// [`Snapshot::with`](crate::Snapshot::with) give one that reads so. What is read is the same, but for
/// [`keys_only`](Self::keys_only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    pub(crate) caching: Caching,
    pub(crate) read_ahead_bytes: Option<u64>,
    pub(crate) keys_only: bool,
}

impl ReadOptions {
    /// Whether pages that are read stay in the page cache; they do by default. Without that, lookups and short scans of
    /// what is not asked for again leave the cache to others. They use what it has all the same. (Long scans leave it
    /// alone as it is; inner nodes of trees are kept in any case.)
    pub fn fill_cache(self, fill_cache: bool) -> Self {
        Self { caching: if fill_cache { Caching::Keep } else { Caching::Pass }, ..self }
    }

    /// How many bytes of each list a scan or a cursor reads at a time, from its first page on: between 16 KiB and 1 MiB.
    /// By default it reads single pages first, as it may be a short one, and then longer and longer pieces up to 256 KiB.
    /// For who knows to go on: fewer device reads. All lists together take a sixteenth of the memory limit at most. Trees
    /// of layout `jungle` are read as ever.
    pub fn read_ahead_bytes(self, bytes: u64) -> Self {
        Self { read_ahead_bytes: Some(bytes), ..self }
    }

    /// Whether scans and cursors show keys alone, each with an empty value. Values that are [kept
    /// apart](crate::TableBuilder::values_apart) are not read then; others lie beside their keys. `first`, `last` and
    /// `nearest` are walks of one step, and show an empty value, too. Lookups of single keys give values all the same, and
    /// so do aggregators, windows and cubes that are read at a snapshot: theirs are made of what is stored.
    pub fn keys_only(self, keys_only: bool) -> Self {
        Self { keys_only, ..self }
    }
}
