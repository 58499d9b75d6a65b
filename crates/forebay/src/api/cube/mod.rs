//! Cubes: groups by several columns, and by fewer of them, kept up to date together.
//!
//! The finest groups are an aggregator's table, `NAME`. Those that leave out *n* columns are another, `NAME@n`, whose
//! keys begin with their [`Grouping`]. `NAME@cube` has the declaration.
//!
//! **Invariant:** a batch has what it adds to the finest groups and what that comes to in all others. So all levels
//! agree in each view, and after any crash.

mod batch;
mod snapshot;

use std::fmt;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, COLUMNS_MAX, Grouping, Groupings};
use forebay_base::{Error, Result};
use forebay_layouts::Layout;

use crate::api::KeyBounds;
use crate::api::declared::{Declared, Kind, MARK};
use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::{Aggregator, Database, Durability, Snapshot, TableBuilder};

pub use batch::CubeBatch;
pub use snapshot::{CubeScan, CubeSnapshot};

const KIND: Kind = Kind {
    noun: "cube",
    has: |rest| {
        let is_level = |level: &str| (1..=COLUMNS_MAX).any(|columns| columns.to_string() == level);
        rest.is_empty() || rest.strip_prefix(MARK).is_some_and(is_level)
    },
};

/// Groups by several columns and by fewer of them: each of its [`Groupings`] can be asked at any time, and all of them
/// agree at every commit. Cheap to clone; may be used from any number of threads.
///
/// Keys are [group keys](crate::aggregate::group_key) of all columns. What stands in a column that a grouping leaves out
/// does not matter when that is asked.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// use forebay::aggregate::functions::SumInt;
/// use forebay::aggregate::{Groupings, group_key};
/// use forebay::{Database, Durability, Options};
///
/// let db = Database::open("/db", Options::default().env(env))?;
/// // By country and year, by country, and over all.
/// let sales = db.cube("sales", SumInt, Groupings::rollup(2)?).open()?;
/// let mut batch = sales.batch();
/// for (country, year, amount) in [("de", "2025", 3), ("de", "2026", 4), ("fr", "2026", 5)] {
///     batch.add(group_key::of([Some(country), Some(year)]), amount)?;
/// }
/// batch.commit(Durability::Disk, b"offset 3")?;
///
/// let by_country = sales.groupings().by([0])?;
/// assert_eq!(sales.get(by_country, group_key::of([Some("de"), None]))?, Some(7));
/// let over_all = sales.groupings().by([])?;
/// assert_eq!(sales.get(over_all, group_key::of([None::<&str>; 2]))?, Some(12));
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Cube<A> {
    parts: Arc<Parts<A>>,
}

struct Parts<A> {
    name: String,
    groupings: Groupings,
    function: Arc<A>,
    declared: Declared,
    finest: Aggregator<Arc<A>>,
    /// By how many columns they leave out, where there are such groupings.
    levels: Vec<(u32, Aggregator<Arc<A>>)>,
}

impl<A> Clone for Cube<A> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

impl<A> fmt::Debug for Cube<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cube({}: {})", self.parts.name, self.parts.groupings)
    }
}

/// Opens a cube, or makes it.
#[must_use = "call open"]
pub struct CubeBuilder<A> {
    engine: Arc<Engine>,
    name: String,
    groupings: Groupings,
    function: A,
    existing: bool,
    layout: Option<Layout>,
}

impl<A> fmt::Debug for CubeBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CubeBuilder({}: {})", self.name, self.groupings)
    }
}

impl Database {
    /// Names a [`Cube`], to be opened or made. It takes the tables `NAME`, `NAME@cube`, and `NAME@1`, `NAME@2`, … for
    /// itself: write to them by the cube alone. The name holds no `@`.
    pub fn cube<A: Aggregate>(&self, name: &str, function: A, groupings: Groupings) -> CubeBuilder<A> {
        let engine = Arc::clone(self.engine());
        CubeBuilder { engine, name: name.into(), groupings, function, existing: false, layout: None }
    }

    /// Drops a cube with all its tables. After a crash amid that the cube cannot be opened; call it again.
    pub fn drop_cube(&self, name: &str) -> Result<()> {
        Declared::drop_all(self, name, KIND)
    }
}

impl<A: Aggregate> CubeBuilder<A> {
    /// Opens the cube only if it exists; otherwise it is an error.
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// How its tables are organised when they are made: a layout in key order, [`Layout::wb_tree_ordered`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Opens or makes the cube. Groupings and the function's type must be those that it was made with.
    pub fn open(self) -> Result<Cube<A>> {
        let Self { engine, name, groupings, function, existing, layout } = self;
        let layout = layout.unwrap_or_else(Layout::wb_tree_ordered);
        if !layout.is_ordered() {
            return Err(Error::invalid(format!(
                "cube `{name}` needs a layout in key order, such as wb-tree:ordered, not {layout}"
            )));
        }
        refuse_guests()?;
        let _alone = engine.declared.write();
        let declared = Declared::open(&engine, &name, KIND, &format!("cube/1({groupings})"), existing)?;
        let (is_whole, function) = (declared.is_whole()?, Arc::new(function));
        let open = |table: &str| {
            let builder = TableBuilder::new(&engine, table).aggregating(Arc::clone(&function));
            // They may have got another layout since.
            let is_there = engine.versions.state().table_named(table).is_some();
            let opened =
                if is_there || is_whole { builder.existing(true) } else { builder.layout(layout) }.open()?;
            if !is_whole && !opened.table().is_empty()? {
                return Err(Error::invalid(format!(
                    "there is a table `{table}` with entries, which cube `{name}` would need for itself"
                )));
            }
            Ok(opened)
        };
        let finest = open(&name)?;
        let mut levels = Vec::new();
        for left_out in 1..=groupings.columns() as u32 {
            if groupings.iter().any(|grouping| grouping.left_out() == left_out) {
                levels.push((left_out, open(&format!("{name}{MARK}{left_out}"))?));
            }
        }
        if !is_whole {
            declared.set_whole()?;
        }
        Ok(Cube { parts: Arc::new(Parts { name, groupings, function, declared, finest, levels }) })
    }
}

impl<A: Aggregate> Cube<A> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Its groupings.
    pub fn groupings(&self) -> &Groupings {
        &self.parts.groupings
    }

    /// Its function.
    pub fn function(&self) -> &A {
        &self.parts.function
    }

    /// An empty batch of this cube.
    pub fn batch(&self) -> CubeBatch<A> {
        CubeBatch::new(self)
    }

    /// Adds a value to a key, a [group key](crate::aggregate::group_key) of all columns, and so to all groupings, at the
    /// database's default durability. It costs a record for each grouping: add many values by one
    /// [`batch`](Self::batch).
    pub fn add(&self, key: impl AsRef<[u8]>, value: A::Input<'_>) -> Result<()> {
        let mut batch = self.batch();
        batch.add(key, value)?;
        batch.commit_as(crate::Batch::new(), self.durability(), None).map(drop)
    }

    fn durability(&self) -> Durability {
        self.parts.declared.table().engine.context.options.usual_durability()
    }

    /// The cube as it is now.
    fn now(&self) -> CubeSnapshot<A> {
        let table = self.parts.declared.table();
        CubeSnapshot::new(self, table.engine.versions.view(), table.database_id())
    }

    /// The cube as a snapshot has it.
    pub fn at(&self, snapshot: &Snapshot) -> CubeSnapshot<A> {
        CubeSnapshot::new(self, snapshot.view().clone(), snapshot.database_id())
    }

    /// What a group's values come to. Device reads: those of [`Aggregator::get`].
    pub fn get(&self, grouping: Grouping, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        self.now().get(grouping, key)
    }

    /// All groups of a grouping, by their keys, with what their values come to, as of now. In keys the columns that it
    /// leaves out have no value.
    pub fn iter(&self, grouping: Grouping) -> Result<CubeScan<A>> {
        self.now().iter(grouping)
    }

    /// The groups of a grouping in a range of keys, ascending.
    pub fn range(&self, grouping: Grouping, bounds: impl KeyBounds) -> Result<CubeScan<A>> {
        self.now().range(grouping, bounds)
    }

    /// The groups of a grouping whose keys begin so: with the first columns, or with the first bytes of one.
    pub fn prefix(&self, grouping: Grouping, prefix: impl AsRef<[u8]>) -> Result<CubeScan<A>> {
        self.now().prefix(grouping, prefix)
    }

    /// The bytes that came with the last [`commit`](CubeBatch::commit).
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        self.now().metadata()
    }
}

impl<A> Parts<A> {
    /// The table of a grouping.
    fn table(&self, grouping: Grouping) -> Result<&Aggregator<Arc<A>>> {
        if grouping == Grouping::FINEST {
            return Ok(&self.finest);
        }
        let level = self.levels.iter().find(|(left_out, _)| *left_out == grouping.left_out());
        level.filter(|_| self.groupings.has(grouping)).map(|(_, table)| table).ok_or_else(|| {
            Error::invalid(format!(
                "cube `{}` has no grouping {}; it has {}",
                self.name,
                grouping.bits(),
                self.groupings
            ))
        })
    }
}
