//! [`Handle`]: a table of either order, and what makes one.

use forebay::TableBuilder;
pub(crate) use forebay_settings::AnyTable as Handle;

use crate::options::Text;

/// What opens, makes or alters a table with these options.
pub(crate) fn builder(db: &forebay::Database, name: &str, options: &[Text]) -> forebay::Result<TableBuilder> {
    options
        .iter()
        .try_fold(db.table(name), |table, (name, text)| Ok(forebay_settings::table(name, text)?(table)))
}
