//! Windows: groups by a key and by time, rolled up from finer tiers to coarser ones, and dropped whole.
//!
//! A window of a tier is an aggregator's table, `NAME@tier@start`. `NAME@windows` has the declaration, and the [`Marks`].
//!
//! **Invariant:** a batch has the values, in every window that is to have them by the marks of when it is written; what is
//! rolled up stands in one batch with the marks that say so. `Engine::declared` is held meanwhile. So each view has every
//! value once in each tier, by its marks, and after any crash.

mod batch;
mod marks;
mod period;
mod roll_up;
mod scan;
mod snapshot;

use std::fmt;
use std::ops::{Range as Times, RangeBounds};
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Merging};
use forebay_base::{Error, Result};
use forebay_layouts::Layout;

use crate::api::KeyBounds;
use crate::api::builder::NAME_BYTES_MAX;
use crate::api::declared::{Declared, Kind, MARK};
use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::versions::{TableState, View};
use crate::{Aggregator, Database, Snapshot, Table, TableBuilder};
use marks::Marks;

pub use batch::WindowsBatch;
pub use period::{Period, Tiers};
pub use roll_up::Expired;
pub use scan::WindowsScan;
pub use snapshot::WindowsSnapshot;

const KIND: Kind = Kind { noun: "windows", has: |rest| window_of(rest).is_some() };
/// What follows the name in the longest name of a window's table: there are fewer than 100 tiers.
const WINDOW_BYTES_MAX: usize = "@99@18446744073709551615".len();
/// The key of the marks, beside the declaration.
const MARKS: &[u8] = b"marks";

/// Groups by key and by time, in windows of one or several [`Tiers`]. Cheap to clone; may be used from any number of
/// threads.
///
/// A value is added to the window of the finest tier in which its time is. [`expire`](Self::expire) rolls windows up to
/// the next tier once they are past, and drops those that are not to be kept. Nothing else makes time go on: no clock is
/// read. Reads take each time from the coarsest tier that has it.
///
/// **Late values** count as well as others: one whose window was rolled up already is added to that, if it is kept, and
/// by the same batch to every coarser window that has it. One that is older than all that is kept is an error, and
/// nothing of its batch is written.
///
/// Times are milliseconds since 1970, in UTC.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// use forebay::aggregate::functions::Count;
/// use forebay::{Database, Durability, Options, Period, Tiers};
///
/// let db = Database::open("/db", Options::default().env(env))?;
/// let tiers = Tiers::new(Period::HOUR, 48).then(Period::DAY, 60).then(Period::MONTH, 120);
/// let hits = db.windows("hits", Count, tiers).open()?;
///
/// let now = 1_764_075_600_000; // 2025-11-25, 13:00
/// let mut batch = hits.batch();
/// batch.add(now, b"/index", ())?;
/// batch.add(now - 3_600_000, b"/index", ())?;
/// batch.commit(Durability::Os, b"offset 2")?;
/// hits.expire(now)?;
///
/// assert_eq!(hits.get(Period::HOUR.around(now), b"/index")?, Some(1));
/// assert_eq!(hits.get(Period::DAY.around(now), b"/index")?, Some(2));
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Windows<A> {
    parts: Arc<Parts<A>>,
}

struct Parts<A> {
    engine: Arc<Engine>,
    name: String,
    tiers: Tiers,
    function: Arc<A>,
    declared: Declared,
    layout: Layout,
}

impl<A> Clone for Windows<A> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

impl<A> fmt::Debug for Windows<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Windows({}: {})", self.parts.name, self.parts.tiers)
    }
}

/// Opens windows, or makes them.
#[must_use = "call open"]
pub struct WindowsBuilder<A> {
    engine: Arc<Engine>,
    name: String,
    tiers: Tiers,
    function: A,
    existing: bool,
    layout: Layout,
}

impl<A> fmt::Debug for WindowsBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowsBuilder({}: {})", self.name, self.tiers)
    }
}

impl Database {
    /// Names [`Windows`], to be opened or made. They take the tables `NAME@windows` and `NAME@tier@start` for
    /// themselves: write to those by the windows alone. The name has at most 231 bytes, and holds no `@`.
    pub fn windows<A: Aggregate>(&self, name: &str, function: A, tiers: Tiers) -> WindowsBuilder<A> {
        let (engine, layout) = (Arc::clone(self.engine()), Layout::wb_tree_ordered());
        WindowsBuilder { engine, name: name.into(), tiers, function, existing: false, layout }
    }

    /// Drops windows with all their tables. After a crash amid that they cannot be opened; call it again.
    pub fn drop_windows(&self, name: &str) -> Result<()> {
        Declared::drop_all(self, name, KIND)
    }
}

impl<A: Aggregate> WindowsBuilder<A> {
    /// Opens the windows only if they exist; otherwise it is an error.
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// How tables are organised that are made from now on: a layout in key order, [`Layout::wb_tree_ordered`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Opens or makes the windows. Tiers and the function's type must be those that they were made with.
    pub fn open(self) -> Result<Windows<A>> {
        let Self { engine, name, tiers, function, existing, layout } = self;
        tiers.validate()?;
        if !layout.is_ordered() {
            return Err(Error::invalid(format!(
                "windows `{name}` need a layout in key order, such as wb-tree:ordered, not {layout}"
            )));
        }
        if name.len() > NAME_BYTES_MAX - WINDOW_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the name of windows has at most {} bytes, not {}: their tables' names are longer",
                NAME_BYTES_MAX - WINDOW_BYTES_MAX,
                name.len()
            )));
        }
        let text = format!("windows/1(state={},tiers={tiers})", function.state_type().as_str());
        refuse_guests()?;
        let alone = engine.declared.write();
        let declared = Declared::open(&engine, &name, KIND, &text, existing)?;
        drop(alone);
        let function = Arc::new(function);
        let parts = Arc::new(Parts { engine, name, tiers, function, declared, layout });
        // What the log has of them is merged from now on.
        parts.windows_of(&parts.engine.versions.view());
        Ok(Windows { parts })
    }
}

impl<A: Aggregate> Windows<A> {
    /// Their name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Their tiers.
    pub fn tiers(&self) -> &Tiers {
        &self.parts.tiers
    }

    /// Their function.
    pub fn function(&self) -> &A {
        &self.parts.function
    }

    /// An empty batch of these windows.
    pub fn batch(&self) -> WindowsBatch<A> {
        WindowsBatch::new(self)
    }

    /// Adds a value to a key at a time, at the database's default durability.
    pub fn add(&self, time: u64, key: impl AsRef<[u8]>, value: A::Input<'_>) -> Result<()> {
        let mut batch = self.batch();
        batch.add(time, key, value)?;
        batch
            .commit_as(crate::Batch::new(), self.parts.engine.context.options.usual_durability(), None)
            .map(drop)
    }

    fn now(&self) -> WindowsSnapshot<A> {
        let database_id = self.parts.declared.table().database_id();
        WindowsSnapshot::new(self, self.parts.engine.versions.view(), database_id)
    }

    /// The windows as a snapshot has them, also those that were dropped since. That of a transaction they refuse: their
    /// calls give an error.
    pub fn at(&self, snapshot: &Snapshot) -> WindowsSnapshot<A> {
        WindowsSnapshot::new(self, snapshot.view().clone(), snapshot.database_id())
    }

    /// What a key's values over a range of time come to: [`Period::around`] gives that of one window. The range must be
    /// a whole number of the windows that are kept there; of what was dropped of all tiers there is nothing. Device
    /// reads: those of [`Aggregator::get`] for each window.
    pub fn get(&self, times: impl RangeBounds<u64>, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        self.now().get(times, key)
    }

    /// All keys with what their values over a range of time come to, ascending, as of now.
    pub fn iter(&self, times: impl RangeBounds<u64>) -> Result<WindowsScan<A>> {
        self.now().iter(times)
    }

    /// The same of a range of keys.
    pub fn range(&self, times: impl RangeBounds<u64>, bounds: impl KeyBounds) -> Result<WindowsScan<A>> {
        self.now().range(times, bounds)
    }

    /// The same of keys that begin so.
    pub fn prefix(&self, times: impl RangeBounds<u64>, prefix: impl AsRef<[u8]>) -> Result<WindowsScan<A>> {
        self.now().prefix(times, prefix)
    }

    /// The windows of the finest tier that are kept and begin within a range of time, ascending: those that have values,
    /// and perhaps such that a crash left without.
    pub fn windows(&self, times: impl RangeBounds<u64>) -> Result<Vec<Times<u64>>> {
        self.now().windows(times)
    }

    /// From when on times are kept, by some tier: values of before are refused.
    pub fn kept_from(&self) -> Result<u64> {
        self.now().kept_from()
    }

    /// The bytes that came with the last [`commit`](WindowsBatch::commit).
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        self.now().metadata()
    }
}

/// A window that has a table.
#[derive(Clone, Copy, Debug)]
struct Window {
    tier: usize,
    start: u64,
    table: u32,
}

impl<A> Parts<A> {
    fn table_name(&self, tier: usize, start: u64) -> String {
        format!("{}{MARK}{tier}{MARK}{start}", self.name)
    }

    fn marks(&self, view: &View, database_id: u64) -> Result<Marks> {
        match self.declared.get(view, database_id, MARKS)? {
            None => Ok(Marks::new(&self.tiers)),
            Some(bytes) => Marks::decode(&bytes, &self.tiers),
        }
    }

    /// The marks as they are. The caller holds `Engine::declared`.
    fn marks_now(&self) -> Result<Marks> {
        self.marks(&self.engine.versions.view(), self.declared.table().database_id())
    }
}

impl<A: Aggregate> Parts<A> {
    /// The windows that have tables in a view, in no order. Those that a savepoint had get the function.
    fn windows_of(&self, view: &View) -> Vec<Window> {
        let window = |table: &Arc<TableState>| {
            let (tier, start) = window_of(table.name.strip_prefix(&self.name)?)?;
            self.provide(table);
            (tier < self.tiers.len()).then_some(Window { tier, start, table: table.id })
        };
        view.state.user_tables().filter_map(window).collect()
    }

    /// Gives a table the function if nobody has yet. Says whether it has states of such a function.
    fn provide(&self, table: &TableState) -> bool {
        let is_known = table.rule.name().state_type() == Some(self.function.state_type().as_str());
        if is_known && table.rule.known().is_none() {
            table.rule.provide(Arc::new(Merging(Arc::clone(&self.function))), &table.name);
            self.engine.background.flush_again();
        }
        is_known
    }

    /// The table of a window, which is made if there is none.
    fn table(&self, tier: usize, start: u64) -> Result<Aggregator<Arc<A>>> {
        let name = self.table_name(tier, start);
        let state = self.engine.versions.state();
        if let Some(found) = state.table_named(&name)
            && self.provide(found)
        {
            let function = Arc::new(Arc::clone(&self.function));
            return Ok(Aggregator::new(Table::new(&self.engine, found), function));
        }
        let builder = TableBuilder::new(&self.engine, &name).aggregating(Arc::clone(&self.function));
        // It may have got another layout since.
        if state.table_named(&name).is_some() { builder } else { builder.layout(self.layout) }.open()
    }
}

/// The tier and the beginning of a window, by what follows the declared name in its table's.
fn window_of(rest: &str) -> Option<(usize, u64)> {
    let (tier, start) = rest.strip_prefix(MARK)?.split_once(MARK)?;
    // As they are written, and not otherwise.
    let is_plain = |number: &str| number == "0" || !number.starts_with(['0', '+']);
    if is_plain(tier) && is_plain(start) { Some((tier.parse().ok()?, start.parse().ok()?)) } else { None }
}
