//! [`Handle`]: a table of either order.

use forebay::TableBuilder;

use crate::options::Text;

/// A table, as its order was when it was opened.
#[derive(Clone)]
pub(crate) enum Handle {
    Hashed(forebay::Table),
    Ordered(forebay::OrderedTable),
}

impl Handle {
    /// What opens, makes or alters a table with these options.
    pub(crate) fn builder(
        db: &forebay::Database,
        name: &str,
        options: &[Text],
    ) -> forebay::Result<TableBuilder> {
        options
            .iter()
            .try_fold(db.table(name), |table, (name, text)| Ok(forebay_settings::table(name, text)?(table)))
    }

    pub(crate) fn open(db: &forebay::Database, name: &str, options: &[Text]) -> forebay::Result<Self> {
        let asked = Self::builder(db, name, options)?;
        let table = asked.clone().open()?;
        match table.layout()?.is_ordered() {
            true => Ok(Self::Ordered(asked.open_ordered()?)),
            false => Ok(Self::Hashed(table)),
        }
    }

    /// For what needs an order.
    pub(crate) fn ordered(&self) -> forebay::Result<&forebay::OrderedTable> {
        match self {
            Self::Ordered(table) => Ok(table),
            Self::Hashed(table) => Err(forebay::Error::invalid(format!(
                "table `{}` was in hash order when it was opened; ranges need a layout in key order, such as \
                 wb-tree:ordered (where it has got one since, open it again)",
                table.name()
            ))),
        }
    }
}

impl AsRef<forebay::Table> for Handle {
    #[inline]
    fn as_ref(&self) -> &forebay::Table {
        match self {
            Self::Hashed(table) => table,
            Self::Ordered(table) => table,
        }
    }
}
