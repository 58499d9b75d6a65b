//! [`AnyTable`]: a table of either order, for languages that have one type for both.

use forebay::{Error, OrderedTable, ReadOptions, Result, Snapshot, Table, TableBuilder};

/// A table, as its order was when it was opened.
#[derive(Clone)]
pub enum AnyTable {
    /// In the order of hashes.
    Hashed(Table),
    /// In the order of keys.
    Ordered(OrderedTable),
}

impl AnyTable {
    /// Opens it, or makes it.
    pub fn open(asked: TableBuilder) -> Result<Self> {
        let table = asked.clone().open()?;
        Ok(match table.layout()?.is_ordered() {
            true => Self::Ordered(asked.open_ordered()?),
            false => Self::Hashed(table),
        })
    }

    /// That of a snapshot.
    pub fn of(snapshot: &Snapshot, name: &str) -> Result<Self> {
        let ordered = snapshot.ordered_table(name).map(Self::Ordered);
        ordered.or_else(|_| snapshot.table(name).map(Self::Hashed))
    }

    /// For what needs an order.
    #[inline]
    pub fn ordered(&self) -> Result<&OrderedTable> {
        match self {
            Self::Ordered(table) => Ok(table),
            Self::Hashed(table) => Err(Error::invalid(format!(
                "table `{}` was in hash order when it was opened; ranges need a layout in key order, such as \
                 wb-tree:ordered (where it has got one since, open it again)",
                table.name()
            ))),
        }
    }

    /// The same table, which is read so.
    pub fn with(&self, reading: ReadOptions) -> Self {
        match self {
            Self::Hashed(table) => Self::Hashed(table.with(reading)),
            Self::Ordered(table) => Self::Ordered(table.with(reading)),
        }
    }
}

impl AsRef<Table> for AnyTable {
    #[inline]
    fn as_ref(&self) -> &Table {
        match self {
            Self::Hashed(table) => table,
            Self::Ordered(table) => table,
        }
    }
}
