//! What a database's directory has, and clearing away what a crash has left there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay_base::Result;
use forebay_env::FileSystem;
use forebay_layouts::DataFile;
use forebay_store::list::Trash;
use forebay_store::manifest::LogMark;
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

/// Removes what a crash left over: what nothing durable names. What readers of other processes may need stays until
/// they do not; the manifest is durable, and the trash knows how far it goes.
pub(crate) fn clear_away(
    fs: &dyn FileSystem,
    dir: &Path,
    trash: &Trash,
    listing: &Listing,
    live: &BTreeMap<u64, DataFile>,
    (mark, segments): (&LogMark, &BTreeSet<u64>),
    manifest: u64,
) -> Result<()> {
    let lists = listing.lists.iter().filter(|id| !live.contains_key(id)).map(|&id| names::list(dir, id));
    let trees = listing.trees.iter().filter(|id| !live.contains_key(id)).map(|&id| names::tree(dir, id));
    let needed: BTreeSet<u64> =
        live.values().flat_map(|file| file.value_shares()).map(|share| share.file).collect();
    let values = listing.values.iter().filter(|id| !needed.contains(id)).map(|&id| names::values(dir, id));
    let unneeded = || listing.logs.iter().filter(|id| !segments.contains(id));
    let log_from = |least: u64, end: u64| {
        unneeded().filter(move |id| (least..end).contains(*id)).map(|&id| names::log(dir, id))
    };
    let logs = log_from(0, mark.kept.0);
    // What was folded into later segments. Once more is flushed, nothing tells it from what is kept.
    let folded = log_from(mark.kept.0, mark.low.0);
    let mut behind = log_from(mark.low.0, u64::MAX);
    let first = behind.next();
    let manifests =
        listing.manifests.iter().filter(|&&id| id != manifest).map(|&id| names::manifest(dir, id));
    let temporary = listing.temporary.iter().map(|name| dir.join(name));
    let named = lists.chain(trees).chain(values).chain(logs).chain(manifests);
    // Segments behind the log's end must be gone before anything numbers on from that end; and before the first of
    // them, which has the place of what was torn. If that went before, what is left would be taken for damage. No
    // reader needs them by their names: what it has found in them, it has.
    match trash.is_needed() {
        true => {
            remove_all(fs, dir, folded.chain(behind).chain(temporary))?;
            named.for_each(|path| trash.add(path));
        }
        false => remove_all(fs, dir, named.chain(folded).chain(behind).chain(temporary))?,
    }
    remove_all(fs, dir, first.into_iter())
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
            | names::READERS
    ) || names::parse(stem).is_some()
}
