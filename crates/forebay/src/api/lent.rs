//! Values that are lent, or go into memory that is there: lookups that allocate nothing for a value.

use std::cell::Cell;
use std::ops::Range;

use forebay_base::Result;
use forebay_base::combine::Fold;

use crate::context::Context;
use crate::read;
use crate::versions::View;
use crate::{Snapshot, Table};

/// A thread keeps no more memory than this for the next lookup of a key,
const VALUE_BYTES_KEPT: usize = 1 << 20;
/// and for as many keys of a lookup of several no more than this each.
const FOLDS_KEPT: usize = 1024;
const FOLD_BYTES_KEPT: usize = 4 << 10;

thread_local! {
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static FOLDS: Cell<Vec<Fold>> = const { Cell::new(Vec::new()) };
}

impl Table {
    /// Shows `see` the value of a key, and returns what that makes of it; `None` if there is no such key, and `see` is not
    /// called. The value is in memory of the thread, which is used again: unlike [`get`](Self::get) it allocates nothing.
    /// `see` may do anything, look up other keys too: nothing waits for it. Device reads: those of a `get`.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let names = db.table("names").open()?;
    /// names.put("ada", "Lovelace")?;
    /// assert_eq!(names.get_with("ada", |name| name.len())?, Some(8));
    /// assert_eq!(names.get_with("bob", |name| name.len())?, None);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn get_with<R>(&self, key: impl AsRef<[u8]>, see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        get_with(&self.engine.context, &self.latest(), self.id(), key.as_ref(), see)
    }

    /// Looks several keys up, as of one moment. Their values are appended to `bytes`, and in place of what `places` has
    /// comes where each one stands there, in the order of the keys; `None` for a key that is not there. Memory is used
    /// again, that of the two and the thread's own: none is allocated for a key. Device reads: those of
    /// [`multi_get`](Self::multi_get).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let names = db.table("names").open()?;
    /// names.put("ada", "Lovelace")?;
    /// let (mut bytes, mut places) = (Vec::new(), Vec::new());
    /// names.multi_get_into(&["ada", "bob"], &mut bytes, &mut places)?;
    /// assert_eq!(places, [Some(0..8), None]);
    /// assert_eq!(&bytes[0..8], b"Lovelace");
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn multi_get_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        bytes: &mut Vec<u8>,
        places: &mut Vec<Option<Range<usize>>>,
    ) -> Result<()> {
        multi_get_into(&self.engine.context, &self.view(), self.id(), keys, bytes, places)
    }
}

impl Snapshot {
    /// Shows `see` the value that a key had: see [`Table::get_with`].
    pub fn get_with<R>(
        &self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let id = self.own(table.as_ref())?;
        get_with(&self.engine().context, self.view(), id, key.as_ref(), see)
    }

    /// Looks up what several keys had: see [`Table::multi_get_into`].
    pub fn multi_get_into<K: AsRef<[u8]>>(
        &self,
        table: impl AsRef<Table>,
        keys: &[K],
        bytes: &mut Vec<u8>,
        places: &mut Vec<Option<Range<usize>>>,
    ) -> Result<()> {
        let id = self.own(table.as_ref())?;
        multi_get_into(&self.engine().context, self.view(), id, keys, bytes, places)
    }
}

fn get_with<R>(
    context: &Context,
    view: &View,
    table: u32,
    key: &[u8],
    see: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    let mut value = VALUE.take();
    let found = read::get_into(context, view, table, key, &mut value);
    let seen = found.map(|expiry| expiry.map(|_| see(&value)));
    if value.capacity() <= VALUE_BYTES_KEPT {
        VALUE.set(value);
    }
    seen
}

fn multi_get_into<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
    bytes: &mut Vec<u8>,
    places: &mut Vec<Option<Range<usize>>>,
) -> Result<()> {
    places.clear();
    let mut folds = FOLDS.take();
    folds.resize_with(folds.len().max(keys.len()), Fold::default);
    let used = &mut folds[..keys.len()];
    used.iter_mut().for_each(Fold::clear);
    let ttl = read::find_all(context, view, view.table(table)?, keys, used)?;
    for fold in &*used {
        let value = ttl.seen(fold);
        places.push(value.map(|value| {
            let start = bytes.len();
            bytes.extend_from_slice(value);
            debug_assert_eq!(bytes.len() - start, value.len(), "a value stands where it was put");
            start..bytes.len()
        }));
    }
    debug_assert_eq!(places.len(), keys.len(), "each key has a place, or none");
    folds.retain(|fold| fold.memory_bytes() <= FOLD_BYTES_KEPT);
    folds.truncate(FOLDS_KEPT);
    FOLDS.set(folds);
    Ok(())
}
