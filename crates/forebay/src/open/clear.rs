//! What a database's directory has, and clearing away what a crash has left there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay_base::Result;
use forebay_env::FileSystem;
use forebay_layouts::DataFile;
use forebay_store::names;

/// After this many removals the directory is synced.
const REMOVED_AT_ONCE: usize = 16;

const _: () = assert!(REMOVED_AT_ONCE > 0, "each sync makes some removal last");

/// The numbered files of a directory.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) lists: Vec<u64>,
    pub(crate) trees: Vec<u64>,
    pub(crate) logs: Vec<u64>,
    pub(crate) values: Vec<u64>,
    pub(crate) manifests: Vec<u64>,
    temporary: Vec<String>,
}

impl Listing {
    pub(crate) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let mut listing = Self::default();
        for name in fs.list(dir)? {
            match names::parse(&name) {
                Some((id, "list")) => listing.lists.push(id),
                Some((id, "tree")) => listing.trees.push(id),
                Some((id, "log")) => listing.logs.push(id),
                Some((id, "values")) => listing.values.push(id),
                Some((id, _)) => listing.manifests.push(id),
                None if name.ends_with(".tmp") && is_ours(&name) => listing.temporary.push(name),
                // A rename may have left both names: then it was not destroyed, and never is by its opening.
                None if name == names::DESTROYED => listing.temporary.push(name),
                None => {}
            }
        }
        listing.logs.sort_unstable();
        Ok(listing)
    }

    pub(crate) fn logs_from(&self, low: u64) -> Vec<u64> {
        self.logs.iter().copied().filter(|&id| id >= low).collect()
    }

    pub(crate) fn highest_id(&self) -> u64 {
        let Self { lists, trees, logs, values, manifests, .. } = self;
        [lists, trees, logs, values, manifests].into_iter().flatten().copied().max().unwrap_or(0)
    }
}

/// Removes what a crash left over: what nothing durable names.
pub(crate) fn clear_away(
    fs: &dyn FileSystem,
    dir: &Path,
    listing: &Listing,
    live: &BTreeMap<u64, DataFile>,
    (low, segments): (u64, &BTreeSet<u64>),
    manifest: u64,
) -> Result<()> {
    let lists = listing.lists.iter().filter(|id| !live.contains_key(id)).map(|&id| names::list(dir, id));
    let trees = listing.trees.iter().filter(|id| !live.contains_key(id)).map(|&id| names::tree(dir, id));
    let needed: BTreeSet<u64> =
        live.values().flat_map(|file| file.value_shares()).map(|share| share.file).collect();
    let values = listing.values.iter().filter(|id| !needed.contains(id)).map(|&id| names::values(dir, id));
    let logs = listing.logs.iter().filter(|id| !segments.contains(id));
    let mut behind = logs.clone().filter(|&&id| id >= low);
    let first = behind.next();
    let logs = logs.filter(|&&id| id < low).chain(behind).map(|&id| names::log(dir, id));
    let manifests =
        listing.manifests.iter().filter(|&&id| id != manifest).map(|&id| names::manifest(dir, id));
    let temporary = listing.temporary.iter().map(|name| dir.join(name));
    // Segments behind the log's end must be gone before anything numbers on from that end; and before the first of
    // them, which has the place of what was torn. If that went before, what is left would be taken for damage.
    remove_all(fs, dir, lists.chain(trees).chain(values).chain(logs).chain(manifests).chain(temporary))?;
    remove_all(fs, dir, first.into_iter().map(|&id| names::log(dir, id)))
}

/// Removes files that may be there, durably. A few at a time: so an opening that does not come to its end, however
/// often, has cleared something for good.
pub(crate) fn remove_all(
    fs: &dyn FileSystem,
    dir: &Path,
    paths: impl Iterator<Item = PathBuf>,
) -> Result<()> {
    let mut paths = paths.peekable();
    while paths.peek().is_some() {
        for path in paths.by_ref().take(REMOVED_AT_ONCE) {
            match fs.remove(&path) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        fs.sync_dir(dir)?;
    }
    Ok(())
}

/// Whether a file of this name may stand in a database's directory.
pub(crate) fn is_ours(name: &str) -> bool {
    let stem = name.strip_suffix(".tmp").unwrap_or(name);
    matches!(
        stem,
        names::SUPERBLOCK
            | names::SUPERBLOCK_SPARE
            | names::DESTROYED
            | names::CURRENT
            | names::KEYS
            | names::KEYS_SPARE
            | names::LOCK
    ) || names::parse(stem).is_some()
}
