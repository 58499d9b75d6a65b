//! Finding the files that the manifest names.

use std::collections::BTreeMap;

use forebay_base::{Error, Result};

use super::{DataFile, Store, TableContext};

/// What table versions are restored with.
pub(crate) struct Restored<'a> {
    pub(crate) context: TableContext,
    find: &'a dyn Fn(u64, &Store) -> Option<DataFile>,
    /// One handle a file, however many lists share it.
    handles: BTreeMap<u64, DataFile>,
}

impl<'a> Restored<'a> {
    pub(crate) fn new(context: TableContext, find: &'a dyn Fn(u64, &Store) -> Option<DataFile>) -> Self {
        Self { context, find, handles: BTreeMap::new() }
    }

    /// The file of this id.
    pub(crate) fn file(&mut self, id: u64) -> Result<DataFile> {
        if let Some(known) = self.handles.get(&id) {
            return Ok(known.clone());
        }
        let file = (self.find)(id, &self.context.store).ok_or_else(malformed)?;
        debug_assert_eq!(file.id(), id, "an id is of one file");
        self.handles.insert(id, file.clone());
        Ok(file)
    }
}

pub(crate) fn malformed() -> Error {
    Error::bug("a table's entry in the manifest is malformed")
}
