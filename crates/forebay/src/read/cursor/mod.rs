//! Cursors: a merge of the buffers and of one leaf's path at a time, over a pinned view, that can be sent anywhere and
//! walked either way.
//!
//! 1. The table falls into stretches, each with sources of its own. A seek enters the stretch of its place, unless the
//!    cursor is in it, and sends all sources there: each reads at most one page.
//! 2. Of the records of one key the newest comes first. A put is the entry; it is lent from its source, and older
//!    records are passed only when the walk goes on. A tombstone hides them. What merges is folded, and what stands in
//!    a value file is fetched.
//! 3. Turning round sends all sources to the current key, the other way.
//!
//! **Invariant:** a cursor on an entry is in the entry's stretch. All records of the key are still before the merge,
//! or, where they were folded, none is.

mod hidden;
mod keys;
mod noting;
mod stretch;

use std::sync::Arc;

use forebay_base::combine::{Combine, Fold};
use forebay_base::merge::{Cursor as _, Direction, LoserTree, Others};
use forebay_base::wire::put_raw;
use forebay_base::{Bound, Error, Kind, Range, Result};
use forebay_layouts::Rule;
use forebay_store::list::Pace;
use forebay_store::{MemoryClaim, Owner};

use crate::read::Ttl;
use crate::versions::{TableState, Versions, View};
use hidden::Hidden;
use keys::Shows;
use stretch::Source;

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Walks a table in the order of its keys, in any direction, as the table was when the cursor was made. It stands on an
/// entry, before the first one, as a new cursor does, or behind the last one. It blocks no writer; it keeps memory and
/// files of its moment until it is dropped.
///
/// A seek reads at most one page of each list on one path of the tree, those of all lists together, and none that is in
/// memory. (Where the key falls between two pages of a list, both.) A walk that goes on reads longer and longer pieces,
/// up to 256 KiB, around the page cache. Turning round mostly reads nothing.
///
/// After an error it stands nowhere, and says the error again until it is sought anew.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("forebay-doc-cursor-{}", std::process::id()));
/// # use forebay::{Database, Layout, Options};
/// # let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
/// let users = db.table("users").layout(Layout::wb_tree_ordered()).open_ordered()?;
/// for name in ["ada", "bob", "eve"] {
///     users.put(name.as_bytes(), b"")?;
/// }
/// let mut cursor = users.cursor()?;
/// cursor.seek(b"b")?;
/// assert_eq!(cursor.entry(), Some((&b"bob"[..], &b""[..])));
/// cursor.prev()?;
/// assert_eq!(cursor.entry(), Some((&b"ada"[..], &b""[..])));
/// cursor.seek_for_prev(b"z")?;
/// assert_eq!(cursor.entry(), Some((&b"eve"[..], &b""[..])));
/// cursor.next()?;
/// assert_eq!(cursor.entry(), None);
/// # drop((cursor, users));
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Cursor {
    /// Kept so that the files of the view outlive the database's handle.
    versions: Arc<Versions>,
    view: View,
    hidden: Hidden,
    table: Arc<TableState>,
    rule: Rule,
    ttl: Ttl,
    range: Range,
    /// What the sources are responsible for.
    stretch: Range,
    /// The sources of the stretch; `None` where there is none.
    merge: Option<LoserTree<Source>>,
    /// What the sources take, with the pages that they stand on.
    standing: MemoryClaim,
    direction: Direction,
    stand: Stand,
    /// Where the merge has passed the key here, the key. Else memory.
    key: Vec<u8>,
    fold: Fold,
    /// Of how many records that was made.
    folded: usize,
    shows: Shows,
    /// A transaction's: up to where it was noted that it has read; `None` is the end of the table.
    noted: Option<Bound>,
    failed: Option<Error>,
}

/// Where a cursor stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    BeforeFirst,
    /// On the record before the merge.
    Lent,
    /// On a key that the merge has passed, with what its records came to.
    Folded,
    BehindLast,
}

/// Where to go, beside a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// The last entry below the key.
    Below,
    /// The key's own entry, or else the last one below.
    AtOrBelow,
    /// The key's own entry, or else the first one above.
    AtOrAbove,
    /// The first entry above the key.
    Above,
}

impl Cursor {
    /// A cursor over part of a table, before its first entry, or for a walk backward behind its last one. Only those
    /// over all of it may be sought by key.
    pub(crate) fn new(
        versions: &Arc<Versions>,
        view: View,
        table: u32,
        range: Range,
        direction: Direction,
    ) -> Result<Self> {
        let table = Arc::clone(view.table(table)?);
        let rule = table.rule()?.clone();
        let shows = if view.reading.keys_only { Shows::Keys } else { Shows::Entries };
        Ok(Self {
            versions: Arc::clone(versions),
            hidden: Hidden::of(&view, table.id),
            ttl: Ttl::of(&versions.context, &view, &table),
            view,
            table,
            rule,
            range,
            stretch: Range::default(),
            merge: None,
            standing: versions.context.metrics.memory.claim(Owner::Standing, 0),
            direction,
            stand: match direction {
                Direction::Forward => Stand::BeforeFirst,
                Direction::Backward => Stand::BehindLast,
            },
            key: Vec::new(),
            fold: Fold::default(),
            folded: 0,
            shows,
            noted: None,
            failed: None,
        })
    }

    /// The entry here, if there is one.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.stored().map(|(key, stored)| match self.shows {
            Shows::Entries => (key, self.ttl.user_value(stored)),
            Shows::Keys => (key, &[][..]),
        })
    }

    /// Whether this cursor, walking in a direction, has come to where another one stands, or beyond.
    pub(crate) fn has_reached(&self, other: &Self, direction: Direction) -> bool {
        let place = |cursor: &Self| {
            let (key, _) = cursor.stored()?;
            Some((cursor.table.order.prefix(key), key.to_vec()))
        };
        match (place(self), place(other), direction) {
            (Some(own), Some(other), Direction::Forward) => own >= other,
            (Some(own), Some(other), Direction::Backward) => own <= other,
            // Where either is at the end, nothing is left between them.
            _ => true,
        }
    }

    /// The entry here, with its value as it is stored.
    #[inline]
    pub(crate) fn stored(&self) -> Option<(&[u8], &[u8])> {
        match self.stand {
            Stand::Lent => {
                let record = self.merge.as_ref()?.record();
                Some((record.key, record.value))
            }
            Stand::Folded => Some((&self.key, self.fold.value())),
            Stand::BeforeFirst | Stand::BehindLast => None,
        }
    }

    /// Whether the value here was made of several records.
    pub(crate) fn is_merged(&self) -> bool {
        self.stand == Stand::Folded && self.folded > 1
    }

    /// The key whose records were folded last: after an error of that, the one at which it failed.
    pub(crate) fn folded_key(&self) -> &[u8] {
        &self.key
    }

    /// Goes to the first entry whose key is not below `key`, or behind the last. Device reads: at most one for each
    /// list on the path to the key.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_nearest(key.as_ref(), Nearest::AtOrAbove)
    }

    /// Goes to the last entry whose key is not above `key`, or before the first. Device reads: as those of
    /// [`seek`](Self::seek).
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_nearest(key.as_ref(), Nearest::AtOrBelow)
    }

    /// Goes to the first entry, or behind the last where there is none.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.seek_to_end(Direction::Forward)
    }

    /// Goes to the last entry, or before the first where there is none.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.seek_to_end(Direction::Backward)
    }

    /// Goes to the next entry: from before the first one to that, from the last one behind it, where it stays.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what it yields")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward)
    }

    /// Goes to the entry before: from behind the last one to that, from the first one before it, where it stays.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward)
    }

    /// A copy of the entry here.
    pub(crate) fn to_entry(&self) -> Option<Entry> {
        self.entry().map(|(key, value)| (key.to_vec(), value.to_vec()))
    }

    /// A copy of the entry nearest to a key.
    pub(crate) fn nearest(mut self, key: &[u8], nearest: Nearest) -> Result<Option<Entry>> {
        self.seek_nearest(key, nearest)?;
        Ok(self.to_entry())
    }

    /// A copy of the first entry, or of the last.
    pub(crate) fn end(mut self, direction: Direction) -> Result<Option<Entry>> {
        self.seek_to_end(direction)?;
        Ok(self.to_entry())
    }

    pub(crate) fn seek_nearest(&mut self, key: &[u8], nearest: Nearest) -> Result<()> {
        self.key.clear();
        put_raw(&mut self.key, key);
        self.seek_kept(nearest)
    }

    /// Goes to the entry nearest to the key that is kept.
    fn seek_kept(&mut self, nearest: Nearest) -> Result<()> {
        let direction = match nearest {
            Nearest::Below | Nearest::AtOrBelow => Direction::Backward,
            Nearest::AtOrAbove | Nearest::Above => Direction::Forward,
        };
        self.attempt(|cursor| {
            let mut place = std::mem::take(&mut cursor.key);
            let prefix = cursor.table.order.prefix(&place);
            if matches!(nearest, Nearest::AtOrBelow | Nearest::Above) {
                // Right behind a key is where it would be with one byte more.
                place.push(0);
            }
            cursor.begin_noting(|| Some(Bound { prefix, key: place[..].into() }));
            let sent = cursor.go_to(prefix, &place, direction);
            cursor.key = place;
            sent.and_then(|()| cursor.come())
        })
    }

    fn seek_to_end(&mut self, direction: Direction) -> Result<()> {
        self.attempt(|cursor| {
            let stands_there = cursor.merge.is_some()
                && match direction {
                    Direction::Forward => cursor.stretch.low == cursor.range.low,
                    Direction::Backward => cursor.stretch.high == cursor.range.high,
                };
            let from = match direction {
                Direction::Forward => Some(cursor.range.low.clone()),
                Direction::Backward => cursor.range.high.clone(),
            };
            if !stands_there {
                cursor.enter(from.as_ref(), direction)?;
            }
            cursor.begin_noting(|| from);
            cursor.send(None, direction, Pace::default())?;
            cursor.come()
        })
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match (self.stand, direction) {
            (Stand::BeforeFirst, Direction::Backward) | (Stand::BehindLast, Direction::Forward) => Ok(()),
            (Stand::BeforeFirst, _) | (Stand::BehindLast, _) => self.seek_to_end(direction),
            (Stand::Lent | Stand::Folded, _) if direction != self.direction => self.turn(direction),
            (Stand::Lent, _) => match self.pass_key().and_then(|()| self.come()) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.fail(error)),
            },
            (Stand::Folded, _) => self.attempt(Self::come),
        }
    }

    /// Goes on from the current key in the other direction.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        if let (Stand::Lent, Some(merge)) = (self.stand, &self.merge) {
            self.key.clear();
            put_raw(&mut self.key, merge.record().key);
        }
        self.seek_kept(match direction {
            Direction::Forward => Nearest::Above,
            Direction::Backward => Nearest::Below,
        })
    }

    /// Does what may fail, and keeps the error.
    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failed = None;
        act(self).map_err(|error| self.fail(error))
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        let error = self.table.blamed(error);
        self.failed = Some(error.clone());
        self.merge = None;
        self.stand = Stand::BehindLast;
        error
    }

    /// Stands on the next key that has a value, that before the merge included.
    #[inline]
    fn resolve(&mut self) -> Result<()> {
        loop {
            let Some((source, others)) = self.merge.as_ref().and_then(LoserTree::first) else {
                if self.enter_next()? {
                    continue;
                }
                self.stand = match self.direction {
                    Direction::Forward => Stand::BehindLast,
                    Direction::Backward => Stand::BeforeFirst,
                };
                return Ok(());
            };
            match source.kind() {
                Kind::Delete => self.pass_key()?,
                Kind::Put if self.ttl.expires() && self.ttl.is_expired(source.record().value) => {
                    self.pass_key()?
                }
                Kind::Put if !self.rule.merges_puts() => break,
                // What comes of operands is asked for its time once they are folded.
                kind if kind != Kind::Pointer
                    && others == Others::Ended
                    && source.has_keys_once()
                    && !self.ttl.expires() =>
                {
                    break;
                }
                _ => {
                    if self.fold_key()? {
                        self.stand = Stand::Folded;
                        return Ok(());
                    }
                }
            }
        }
        self.stand = Stand::Lent;
        Ok(())
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({}, {:?})", self.table.name, self.direction)
    }
}
