//! What a disk holds for certain, and what is still on its way there.
//!
//! **Invariant:** durable state plus every pending change, applied in order, is what the live file system shows. A
//! change leaves the pending ones only by becoming durable, through the sync that covers it: data and length of a file
//! by its own sync, a name by its directory's. Or, where a sync is to fail, it is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::inode::write_into;

/// What a disk writes whole: after a power cut a sector is old or new, never a mix. In bytes.
pub(super) const SECTOR_BYTES: usize = 512;

/// A disk under a live file system. Files are named by inode number.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) files: BTreeMap<u64, Content>,
    pub(super) names: BTreeMap<PathBuf, u64>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) pending: Vec<(u64, NameChange)>,
}

/// One file: its durable bytes and the changes since, each with the number of its operation.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<(u64, DataChange)>,
}

#[derive(Debug, Clone)]
pub(super) enum DataChange {
    /// What all the sectors a write touched looked like right after it, zeros past the file's end.
    Write { offset: usize, sectors: Vec<u8>, grown_to: Option<usize> },
    /// The file was cut or grown to this length.
    Len(usize),
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Make { dir: PathBuf },
    Drop { dir: PathBuf },
    Link { path: PathBuf, inode: u64 },
    Unlink { path: PathBuf, inode: u64 },
    Rename { from: PathBuf, to: PathBuf, inode: u64 },
}

impl Disk {
    /// Notes that `written` was written to a file that was `len_before` long; `live` is it after that.
    pub(super) fn wrote(
        &mut self,
        operation: u64,
        inode: u64,
        written: Range<usize>,
        len_before: usize,
        live: &[u8],
    ) {
        if written.is_empty() {
            return;
        }
        debug_assert!(written.end <= live.len() && len_before <= live.len(), "the live file has it already");
        let offset = written.start / SECTOR_BYTES * SECTOR_BYTES;
        let end = written.end.next_multiple_of(SECTOR_BYTES);
        let mut sectors = live[offset..end.min(live.len())].to_vec();
        sectors.resize(end - offset, 0);
        debug_assert!(sectors.len().is_multiple_of(SECTOR_BYTES), "a disk writes whole sectors");
        let grown_to = (live.len() > len_before).then_some(live.len());
        self.change(operation, inode, DataChange::Write { offset, sectors, grown_to });
    }

    pub(super) fn change(&mut self, operation: u64, inode: u64, change: DataChange) {
        // A file without any name left may be forgotten already: nothing of it can survive.
        if let Some(content) = self.files.get_mut(&inode) {
            content.pending.push((operation, change));
        }
    }

    pub(super) fn change_names(&mut self, operation: u64, change: NameChange) {
        self.pending.push((operation, change));
    }

    /// Data and length of a file become durable.
    pub(super) fn sync_file(&mut self, inode: u64) {
        if let Some(content) = self.files.get_mut(&inode) {
            content.apply_pending();
            debug_assert!(content.pending.is_empty(), "what is synced is durable");
        }
    }

    /// A sync fails: the file's lengths are kept, and what was written never arrives. So what the live file system
    /// shows is not what the disk will hold, until it is written again.
    pub(super) fn lose_writes(&mut self, inode: u64) {
        let Some(content) = self.files.get_mut(&inode) else { return };
        for (_, change) in &mut content.pending {
            if let DataChange::Write { sectors, grown_to, .. } = change {
                sectors.clear();
                if let Some(len) = *grown_to {
                    *change = DataChange::Len(len);
                }
            }
        }
        content
            .pending
            .retain(|(_, change)| !matches!(change, DataChange::Write { sectors, .. } if sectors.is_empty()));
    }

    /// The names in `dir` become durable. `live` are the inodes that have a name now.
    pub(super) fn sync_dir(&mut self, dir: &Path, live: &BTreeSet<u64>) {
        let dirs = self.dirs_synced_with(dir);
        for (operation, change) in std::mem::take(&mut self.pending) {
            if change.dirs().any(|dir| dirs.contains(dir)) {
                self.apply(&change, true);
            } else {
                self.pending.push((operation, change));
            }
        }
        self.forget_nameless(live);
    }

    /// A sync of a directory fails: changes of names in it never arrive, though every process sees them.
    pub(super) fn lose_names(&mut self, dir: &Path) {
        self.pending.retain(|(_, change)| change.dirs().all(|changed| changed != dir));
    }

    /// Whether a name that ends so has changed in a directory since it was synced.
    pub(super) fn changes_name(&self, dir: &Path, kind: &str) -> bool {
        let names = self.pending.iter().filter_map(|(_, change)| match change {
            NameChange::Link { path, .. }
            | NameChange::Unlink { path, .. }
            | NameChange::Rename { to: path, .. } => Some(path),
            NameChange::Make { .. } | NameChange::Drop { .. } => None,
        });
        names.into_iter().any(|path| path.parent() == Some(dir) && path.to_string_lossy().ends_with(kind))
    }

    /// A rename between two directories is one change to both: with one of them the other is synced.
    fn dirs_synced_with(&self, dir: &Path) -> BTreeSet<PathBuf> {
        let mut dirs = BTreeSet::from([dir.to_path_buf()]);
        loop {
            let touched =
                self.pending.iter().filter(|(_, change)| change.dirs().any(|dir| dirs.contains(dir)));
            let more: BTreeSet<PathBuf> =
                touched.flat_map(|(_, change)| change.dirs().map(Path::to_path_buf)).collect();
            if more.is_subset(&dirs) {
                return dirs;
            }
            dirs.extend(more);
        }
    }

    /// Does `change` to the durable names; a rename may leave its source name behind.
    pub(super) fn apply(&mut self, change: &NameChange, source_goes: bool) {
        match change {
            NameChange::Make { dir } => drop(self.dirs.insert(dir.clone())),
            NameChange::Drop { dir } => drop(self.dirs.remove(dir)),
            NameChange::Link { path, inode } => drop(self.names.insert(path.clone(), *inode)),
            NameChange::Unlink { path, inode } => self.unlink(path, *inode),
            NameChange::Rename { from, to, inode } => {
                self.names.insert(to.clone(), *inode);
                if source_goes {
                    self.unlink(from, *inode);
                }
            }
        }
    }

    fn unlink(&mut self, path: &Path, inode: u64) {
        if self.names.get(path) == Some(&inode) {
            self.names.remove(path);
        }
    }

    /// Drops the content of files that no name, durable, pending or live, leads to.
    fn forget_nameless(&mut self, live: &BTreeSet<u64>) {
        let mut named: BTreeSet<u64> = self.names.values().copied().collect();
        named.extend(self.pending.iter().filter_map(|(_, change)| change.inode()));
        self.files.retain(|inode, _| named.contains(inode) || live.contains(inode));
    }
}

impl Content {
    /// The content once every pending change has arrived.
    pub(super) fn with_pending(&self) -> Vec<u8> {
        let mut with_pending = self.clone();
        with_pending.apply_pending();
        with_pending.durable
    }

    /// Applies every pending change.
    fn apply_pending(&mut self) {
        for (_, change) in std::mem::take(&mut self.pending) {
            match change {
                DataChange::Len(len) => self.durable.resize(len, 0),
                DataChange::Write { offset, sectors, grown_to } => {
                    let len = grown_to.unwrap_or(self.durable.len());
                    write_into(&mut self.durable, offset, &sectors);
                    self.durable.truncate(len);
                }
            }
        }
    }
}

impl NameChange {
    /// The directories it changes.
    fn dirs(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::Make { dir: path } | Self::Drop { dir: path } => (path, None),
            Self::Link { path, .. } | Self::Unlink { path, .. } => (path, None),
            Self::Rename { from, to, .. } => (to, Some(from)),
        };
        [Some(one), other].into_iter().flatten().filter_map(|path| path.parent())
    }

    fn inode(&self) -> Option<u64> {
        match self {
            Self::Make { .. } | Self::Drop { .. } => None,
            Self::Link { inode, .. } | Self::Unlink { inode, .. } | Self::Rename { inode, .. } => {
                Some(*inode)
            }
        }
    }
}
