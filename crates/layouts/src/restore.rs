//! A table's version from the manifest's bytes, and a new table's.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::wire::Reader;
use forebay_base::{Error, Result};
use forebay_buffer_tree::{Tree, TreeOptions};

use crate::files::TableContext;
use crate::run_set::{RunSet, RunSetTable};
use crate::table_version::TableVersion;
use crate::wb_tree::WbTree;
use crate::{DataFile, Layout, Store, TableOptions, TableRule};

/// What table versions are restored with.
pub(crate) struct Restored<'a> {
    pub(crate) context: TableContext,
    find: &'a dyn Fn(u64, &Store) -> Option<DataFile>,
    /// One handle a file, however many lists share it.
    handles: BTreeMap<u64, DataFile>,
}

impl Restored<'_> {
    /// The file of this id.
    pub(crate) fn file(&mut self, id: u64) -> Result<DataFile> {
        if let Some(known) = self.handles.get(&id) {
            return Ok(known.clone());
        }
        let file = (self.find)(id, &self.context.store).ok_or_else(malformed)?;
        self.handles.insert(id, file.clone());
        Ok(file)
    }
}

pub(crate) fn malformed() -> Error {
    Error::bug("a table's entry in the manifest is malformed")
}

/// The bytes of the empty table version of a new table.
pub fn empty(options: &TableOptions) -> Result<Vec<u8>> {
    options.validate()?;
    let mut bytes = Vec::new();
    match options.layout {
        Layout::WbTree { .. } => Tree::<u64>::new(options.tree).encode(&mut bytes),
        Layout::RunSet(policy) => {
            options.tree.encode(&mut bytes);
            RunSet::<u64>::new(policy, options.tree.node_bytes).encode(&mut bytes);
        }
    }
    Ok(bytes)
}

/// A table as the manifest has it: its options and its version's bytes. It shares its rule with an earlier version of
/// the same table.
pub fn restore(
    version: &[u8],
    options: &[u8],
    find: &dyn Fn(u64, &Store) -> Option<DataFile>,
    shared: Option<&Arc<TableRule>>,
    store: impl FnOnce(&TableOptions) -> Store,
    merge_memory_bytes: usize,
) -> Result<(TableOptions, Arc<TableRule>, Arc<dyn TableVersion>)> {
    // Every table version begins with the sizes of the table's parts.
    let tree = TreeOptions::decode(&mut Reader::new(version)).ok_or_else(malformed)?;
    let (options, rule) = TableOptions::decode(options, tree).ok_or_else(malformed)?;
    let shared = shared.filter(|shared| *shared.name() == rule).cloned();
    let rule = shared.unwrap_or_else(|| TableRule::new(rule));
    let context = TableContext::new(store(&options), Arc::clone(&rule), merge_memory_bytes);
    let mut restored = Restored { context, find, handles: BTreeMap::new() };
    let version: Arc<dyn TableVersion> = match options.layout {
        Layout::WbTree { .. } => Arc::new(WbTree::restore(version, &mut restored)?),
        Layout::RunSet(policy) => Arc::new(RunSetTable::restore(version, policy, &mut restored)?),
    };
    Ok((options, rule, version))
}
