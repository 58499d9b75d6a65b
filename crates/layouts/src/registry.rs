//! The layouts that there are, a line each: a new table, a table's version from the manifest's bytes, and as another
//! layout's.

use std::any::Any;
use std::sync::Arc;

use forebay_base::Result;
use forebay_base::wire::Reader;
use forebay_buffer_tree::{Tree, TreeOptions};

use crate::convert::{runs_of, tree_of};
use crate::files::{DataFile, Fragment, ResidentBudget, Restored, Store, TableContext, malformed};
use crate::inventory::{Keys, ListModel};
use crate::layout::Layout;
use crate::options::TableOptions;
use crate::rule::{Life, RuleName, TableRule};
use crate::run_set::{RunSet, RunSetTable, SimulatedRuns};
use crate::seam::TableVersion;
use crate::simulation::Simulated;
use crate::wb_tree::{SimulatedTree, WbTree};

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

/// A table's options and its rule, of the bytes of its version and of its options.
pub fn read_options(version: &[u8], options: &[u8]) -> Result<(TableOptions, RuleName)> {
    // Every table version begins with the sizes of the table's parts.
    let tree = TreeOptions::decode(&mut Reader::new(version)).ok_or_else(malformed)?;
    TableOptions::check_version(options)?;
    TableOptions::decode(options, tree).ok_or_else(malformed)
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
    let (options, rule) = read_options(version, options)?;
    let shared = shared.filter(|shared| *shared.name() == rule).cloned();
    let life = if options.time_to_live.is_some() { Life::Timed } else { Life::Endless };
    let rule = shared.unwrap_or_else(|| TableRule::new(rule, life));
    let context = TableContext::new(store(&options), Arc::clone(&rule), merge_memory_bytes);
    let mut restored = Restored::new(context, find);
    let version: Arc<dyn TableVersion> = match options.layout {
        Layout::WbTree { .. } => Arc::new(WbTree::restore(version, &mut restored)?),
        Layout::RunSet(policy) => Arc::new(RunSetTable::restore(version, policy, &mut restored)?),
    };
    Ok((options, rule, version))
}

/// The same records under other options, whose layout has the same order. Moves none of them. Nothing is resident where
/// the new layout is a WB tree; all that log segments below `below` brought is here. `None` where the new layout has no
/// use for files of this kind.
pub fn convert(
    version: &dyn TableVersion,
    options: &TableOptions,
    below: u64,
) -> Option<Arc<dyn TableVersion>> {
    let version: &dyn Any = version;
    if let Some(WbTree { tree, context, .. }) = version.downcast_ref() {
        let context = context.clone();
        return Some(match options.layout {
            Layout::WbTree { .. } => Arc::new(WbTree::new(tree.clone(), context)),
            Layout::RunSet(policy) => {
                let mut set = runs_of(tree, policy);
                set.mark_all(below);
                Arc::new(RunSetTable::new(set, options.tree, context.with_inline(policy.inline_bytes())))
            }
        });
    }
    let RunSetTable { set, context, .. } = version.downcast_ref()?;
    let context = context.clone();
    Some(match options.layout {
        Layout::WbTree { .. } => {
            let lists = set.map(|file| Fragment::of(file.clone()).ok_or_else(malformed)).ok()?;
            Arc::new(WbTree::new(tree_of(&lists, options.tree), context))
        }
        Layout::RunSet(policy) => {
            let context = context.with_inline(policy.inline_bytes());
            Arc::new(RunSetTable::new(set.under(policy, below), options.tree, context))
        }
    })
}

/// The same records under other options of the same layout, by which all further work goes. `store` makes new files.
pub fn alter(
    version: &dyn TableVersion,
    options: &TableOptions,
    store: Store,
) -> Result<Arc<dyn TableVersion>> {
    let version: &dyn Any = version;
    if let Some(WbTree { tree, context, .. }) = version.downcast_ref() {
        return Ok(Arc::new(WbTree::new(tree.with_options(options.tree)?, context.with_store(store))));
    }
    let RunSetTable { set, context, .. } = version.downcast_ref().ok_or_else(malformed)?;
    let set = set.with_file_bytes(options.tree.node_bytes);
    Ok(Arc::new(RunSetTable::new(set, options.tree, context.with_store(store))))
}

/// A table of these options that nobody fills.
pub fn simulated(
    options: &TableOptions,
    lists: ListModel,
    keys: Keys,
    room: ResidentBudget,
) -> Result<Box<dyn Simulated>> {
    Ok(match options.layout {
        Layout::WbTree { .. } => Box::new(SimulatedTree::new(options.tree, lists, keys)?),
        Layout::RunSet(policy) => {
            Box::new(SimulatedRuns::new(policy, options.tree.node_bytes, lists, keys, room))
        }
    })
}

#[cfg(test)]
mod tests {
    use forebay_base::Error;

    use super::*;

    #[test]
    fn a_table_of_a_newer_build_is_not_called_damaged() {
        let options = TableOptions::new(Layout::wb_tree(), 1 << 20);
        let (version, mut bytes) = (empty(&options).unwrap(), options.encode(&RuleName::None));
        bytes[0] = 9;
        let find = |_, _: &Store| None;
        let restored =
            restore(&version, &bytes, &find, None, |_| unreachable!("nothing is restored"), 1 << 20);
        let error = restored.map(drop).unwrap_err().read_from("MANIFEST".as_ref());
        assert!(
            error.to_string().contains("MANIFEST") && matches!(error, Error::NewerFormat { version: 9, .. })
        );
    }
}
