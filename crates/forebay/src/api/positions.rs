//! Scans in pieces: from a position that a caller keeps, and in parts that threads share.

use std::ops::ControlFlow;
use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Bound, Error, Range, Result};

use crate::engine::Engine;
use crate::read::{self, Cursor, Entry};
use crate::versions::View;
use crate::{Scan, Snapshot, Table};

/// Some entries of a table in hash order, and where it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Keys and values.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// The position of what follows, never 0; `None` where nothing does.
    pub next: Option<u64>,
}

impl Table {
    /// Some entries of a table in hash order, from a position on: 0 at first, and then each time the [`next`] of the time
    /// before. At least `count` of them, and more only where keys have one hash; fewer where the table ends. Nothing is
    /// held in between, and no time limits it: a position is a place among the hashes of this database's keys, which
    /// restarts, copies, and other layouts meanwhile leave as they are. A key that is there all the time comes exactly
    /// once, whatever is written meanwhile; one that comes or goes may come or not.
    ///
    /// A table in key order refuses it: there the key of the last entry is the position, and
    /// [`range`](crate::OrderedTable::range) goes on behind it. Device reads: one for each list on one path of the tree,
    /// and what the entries take.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let table = db.table("squares").open()?;
    /// for number in 0..100_u32 {
    ///     table.put(number.to_be_bytes(), (number * number).to_be_bytes())?;
    /// }
    /// let (mut position, mut seen) = (Some(0), 0);
    /// while let Some(from) = position {
    ///     let scanned = table.scan_from(from, 10)?;
    ///     seen += scanned.entries.len();
    ///     position = scanned.next;
    /// }
    /// assert_eq!(seen, 100);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    ///
    /// [`next`]: Scanned::next
    pub fn scan_from(&self, position: u64, count: usize) -> Result<Scanned> {
        scan_from(&self.engine, self.engine.versions.view(), self.id(), position, count)
    }

    /// All entries, as of one moment, in up to `count` scans that have about as many each, one behind the other in the
    /// table's own order: for threads that share the work. There are fewer where there is little. In key order parts are
    /// as even as the lists' metadata tell without being read: where large lists have not been opened yet, or nearly all
    /// keys have sixteen bytes in common behind what all of them begin with, they may be uneven.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// # let table = db.table("squares").open()?;
    /// # for number in 0..100_u32 {
    /// #     table.put(number.to_be_bytes(), (number * number).to_be_bytes())?;
    /// # }
    /// let counted: usize = std::thread::scope(|scope| {
    ///     let parts = table.parts(2)?;
    ///     let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| part.count())).collect();
    ///     Ok::<_, forebay::Error>(threads.into_iter().map(|thread| thread.join().unwrap()).sum())
    /// })?;
    /// assert_eq!(counted, 100);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn parts(&self, count: usize) -> Result<Vec<Scan>> {
        parts(&self.engine, self.engine.versions.view(), self.id(), count)
    }

    /// Shows `see` entries of a table in hash order, from a position on, until it says that it has enough: the rest of
    /// that position comes as well. Returns where to go on, if there is more: see [`scan_from`](Self::scan_from). What is
    /// shown is not kept.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use std::ops::ControlFlow;
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let table = db.table("names").open()?;
    /// table.put("ada", "Lovelace")?;
    /// table.put("alan", "Turing")?;
    /// let mut seen = 0;
    /// let next = table.see_from(0, |_, _| {
    ///     seen += 1;
    ///     ControlFlow::Break(())
    /// })?;
    /// assert!(seen == 1 && next.is_some());
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn see_from(
        &self,
        position: u64,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<u64>> {
        see_from(&self.engine, self.engine.versions.view(), self.id(), position, see)
    }

    /// How many keys there are, exactly, as of one moment. Nothing keeps count: it walks the table, without its values
    /// where they stand apart, in parts on all cores, and remembers the number for as long as the table does not change.
    /// After [`compact`](Self::compact) it reads nothing, if nothing was written since and no entry expires.
    pub fn count(&self) -> Result<u64> {
        let view = at_a_moment(&self.engine, self.engine.versions.view());
        read::count(&self.engine.versions, &view, self.id())
    }
}

impl Snapshot {
    /// Some entries of a table that was in hash order, from a position on: see [`Table::scan_from`].
    pub fn scan_from(&self, table: impl AsRef<Table>, position: u64, count: usize) -> Result<Scanned> {
        let id = self.own(table.as_ref())?;
        scan_from(self.engine(), self.view().clone(), id, position, count)
    }

    /// All entries that a table had, in up to `count` scans: see [`Table::parts`].
    pub fn parts(&self, table: impl AsRef<Table>, count: usize) -> Result<Vec<Scan>> {
        let id = self.own(table.as_ref())?;
        parts(self.engine(), self.view().clone(), id, count)
    }

    /// How many keys a table had: see [`Table::count`].
    pub fn count(&self, table: impl AsRef<Table>) -> Result<u64> {
        let id = self.own(table.as_ref())?;
        read::count(&self.engine().versions, self.view(), id)
    }
}

/// The view, with a time at which entries are alive in it.
fn at_a_moment(engine: &Engine, mut view: View) -> View {
    view.moment.get_or_insert_with(|| engine.context.env.clock.unix_milliseconds());
    view
}

fn scan_from(engine: &Arc<Engine>, view: View, id: u32, position: u64, count: usize) -> Result<Scanned> {
    let mut entries: Vec<Entry> = Vec::new();
    let next = see_from(engine, view, id, position, |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        if entries.len() >= count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Scanned { entries, next })
}

fn see_from(
    engine: &Arc<Engine>,
    view: View,
    id: u32,
    position: u64,
    mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<Option<u64>> {
    let table = view.table(id)?;
    let order = table.order;
    if order.is_lexical() {
        return Err(Error::invalid(format!(
            "table `{}` has layout {} here, which keeps keys in order and knows no positions; go on by a range that begins \
             behind the last key",
            table.name, table.options.layout
        )));
    }
    let range = Range { low: Bound::at_prefix(position), high: None };
    let mut cursor = Cursor::new(&engine.versions, view, id, range, Direction::Forward)?;
    let (mut is_enough, mut last) = (false, None);
    loop {
        cursor.next()?;
        let Some((key, value)) = cursor.entry() else { return Ok(None) };
        let prefix = order.prefix(key);
        debug_assert!(prefix >= position, "nothing of before the position comes");
        if is_enough && last != Some(prefix) {
            // There is an entry behind the last one, so this is no wrap.
            return Ok(last.map(|last| last + 1));
        }
        is_enough |= see(key, value).is_break();
        last = Some(prefix);
    }
}

fn parts(engine: &Arc<Engine>, view: View, id: u32, count: usize) -> Result<Vec<Scan>> {
    let view = at_a_moment(engine, view);
    let ranges = read::parts(&engine.versions, &view, id, count)?;
    debug_assert!((1..=count.max(1)).contains(&ranges.len()), "all of it is in some part");
    ranges.into_iter().map(|range| Scan::new(engine, view.clone(), id, range)).collect()
}
