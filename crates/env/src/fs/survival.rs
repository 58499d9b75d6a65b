//! What is left of a [`Disk`] after the power went: a draw from all that the system may have written.
//!
//! Data and names are drawn apart, each in one of four manners: nothing of what was pending, all of it,
//! an ordered prefix (with the change at the cut torn), or any subset. Data are drawn by 4 KiB page of
//! each write and, within a torn page, by sector.
//!
//! **Invariant:** every surviving sector is one that the file held at some time since its last sync; what
//! was synced and not overwritten since is there.

use std::path::Path;

use super::inode::write_into;
use super::pending::{Content, DataChange, Disk, NameChange, SECTOR_BYTES};
use crate::rng::Rng;

/// What a page cache hands to the disk at once, in bytes.
const PAGE_BYTES: usize = 4096;

const _: () = assert!(PAGE_BYTES.is_multiple_of(SECTOR_BYTES), "a torn page is torn between sectors");

#[derive(Debug, Clone, Copy)]
enum Manner {
    Nothing,
    All,
    /// What is before this operation, and perhaps part of it.
    Prefix {
        cut: u64,
    },
    /// Each change on its own, with this chance.
    Subset {
        percent: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// Each sector on its own.
    Torn,
}

struct Draw<'a> {
    rng: &'a mut Rng,
    manner: Manner,
}

/// The disk as the next start finds it: nothing pending.
pub(super) fn survivor(disk: &Disk, rng: &mut Rng) -> Disk {
    let cut = draw_cut(disk, rng);
    let manner = draw_manner(rng, cut);
    let mut left = surviving_names(disk, &mut Draw { rng, manner });
    let manner = draw_manner(rng, cut);
    let mut draw = Draw { rng, manner };
    for (&inode, content) in &disk.files {
        // Drawn for every file, so that a lost name does not change what happens to others.
        let durable = surviving_bytes(content, &mut draw);
        left.files.insert(inode, Content { durable, pending: Vec::new() });
    }
    let named = |inode: &u64| left.names.values().any(|name| name == inode);
    left.files = std::mem::take(&mut left.files).into_iter().filter(|(inode, _)| named(inode)).collect();
    debug_assert!(left.pending.is_empty() && left.names.values().all(|inode| left.files.contains_key(inode)));
    left
}

/// One operation among those with pending changes, or one past them.
fn draw_cut(disk: &Disk, rng: &mut Rng) -> u64 {
    let data =
        disk.files.values().flat_map(|content| content.pending.iter().map(|(operation, _)| *operation));
    let mut operations: Vec<u64> = disk.pending.iter().map(|(operation, _)| *operation).chain(data).collect();
    operations.sort_unstable();
    operations.dedup();
    operations.push(u64::MAX);
    operations[rng.index(operations.len())]
}

fn draw_manner(rng: &mut Rng, cut: u64) -> Manner {
    match rng.below(5) {
        0 => Manner::Nothing,
        1 => Manner::All,
        2 => Manner::Prefix { cut },
        _ => Manner::Subset { percent: [10, 50, 50, 90][rng.index(4)] },
    }
}

impl Draw<'_> {
    fn fate(&mut self, operation: u64) -> Fate {
        match self.manner {
            Manner::Nothing => Fate::Lost,
            Manner::All => Fate::Kept,
            Manner::Prefix { cut } if operation < cut => Fate::Kept,
            Manner::Prefix { cut } if operation > cut => Fate::Lost,
            Manner::Prefix { .. } => [Fate::Kept, Fate::Lost, Fate::Torn][self.rng.index(3)],
            Manner::Subset { .. } if self.rng.chance(10) => Fate::Torn,
            Manner::Subset { percent } if self.rng.chance(percent) => Fate::Kept,
            Manner::Subset { .. } => Fate::Lost,
        }
    }

    /// For changes that happen whole or not at all.
    fn keeps(&mut self, operation: u64) -> bool {
        match self.fate(operation) {
            Fate::Kept => true,
            Fate::Lost => false,
            Fate::Torn => self.rng.chance(50),
        }
    }
}

fn surviving_names(disk: &Disk, draw: &mut Draw<'_>) -> Disk {
    let mut left = Disk { names: disk.names.clone(), dirs: disk.dirs.clone(), ..Disk::default() };
    for (operation, change) in &disk.pending {
        if draw.keeps(*operation) {
            let hostile = matches!(draw.manner, Manner::Subset { .. });
            let both_names = hostile && matches!(change, NameChange::Rename { .. }) && draw.rng.chance(25);
            left.apply(change, !both_names);
        }
    }
    // A directory that is not there takes along what is in it, synced or not.
    let dirs = left.dirs.clone();
    let reachable =
        |path: &Path| path.ancestors().skip(1).all(|dir| dir.parent().is_none() || dirs.contains(dir));
    left.dirs.retain(|dir| reachable(dir));
    left.names.retain(|path, _| reachable(path));
    left
}

fn surviving_bytes(content: &Content, draw: &mut Draw<'_>) -> Vec<u8> {
    let mut bytes = content.durable.clone();
    let mut len = bytes.len();
    for (operation, change) in &content.pending {
        match change {
            DataChange::Len(changed) => {
                if draw.keeps(*operation) {
                    bytes.truncate(*changed);
                    len = *changed;
                }
            }
            DataChange::Write { offset, sectors, grown_to } => {
                write_survivors(&mut bytes, *offset, sectors, *operation, draw);
                if let Some(grown_to) = grown_to
                    && draw.keeps(*operation)
                {
                    len = len.max(*grown_to);
                }
            }
        }
    }
    // Data without the length that covers them are gone; a length without its data reads as zeros.
    bytes.resize(len, 0);
    bytes
}

fn write_survivors(bytes: &mut Vec<u8>, offset: usize, sectors: &[u8], operation: u64, draw: &mut Draw<'_>) {
    let mut page = usize::MAX;
    let mut fate = Fate::Lost;
    for (index, sector) in sectors.chunks(SECTOR_BYTES).enumerate() {
        let at = offset + index * SECTOR_BYTES;
        if at / PAGE_BYTES != page {
            page = at / PAGE_BYTES;
            fate = draw.fate(operation);
        }
        if fate == Fate::Kept || fate == Fate::Torn && draw.rng.chance(50) {
            write_into(bytes, at, sector);
        }
    }
}
