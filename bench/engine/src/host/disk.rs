//! The directory of a run: made empty, measured, removed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the kernel counts allocated space in.
const SECTOR_BYTES: u64 = 512;

/// Makes an empty directory, with all above it.
#[expect(clippy::disallowed_methods, reason = "the folder around a database, not the database")]
pub(crate) fn make_empty(dir: &Path) -> io::Result<()> {
    remove(dir)?;
    std::fs::create_dir_all(dir)
}

/// Removes a directory with all that is in it, if it is there.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bytes of allocated blocks of all files below. What vanishes while it is looked at counts nothing.
pub(crate) fn used_bytes(dir: &Path) -> u64 {
    files(dir).iter().filter_map(|path| path.symlink_metadata().ok()).map(|about| about.blocks()).sum::<u64>()
        * SECTOR_BYTES
}

/// All files below.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found
}
