//! Directories that survive a power loss.

use std::path::{Path, PathBuf};

use forebay_base::{Result, planted};
use forebay_env::FileSystem;

/// Makes a directory and its missing ancestors, whose names survive a power loss from then on.
pub(crate) fn create_dir_durably(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let parent_of = |dir: &Path| match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
        None => dir.to_path_buf(),
    };
    let (mut made, mut found) = (vec![parent_of(dir)], Vec::new());
    for ancestor in dir.ancestors().skip(1).filter(|ancestor| !ancestor.as_os_str().is_empty()) {
        match found.is_empty() && !fs.exists(ancestor)? {
            true => made.push(parent_of(ancestor)),
            false => found.push(parent_of(ancestor)),
        }
    }
    fs.create_dir_all(dir)?;
    made.iter()
        .filter(|_| !planted::is("ancestors-not-synced"))
        .try_for_each(|parent| fs.sync_dir(parent))?;
    // What is there may have been made by a process that died before its sync. Of what we may not sync others have
    // made sure.
    found.iter().filter(|parent| !made.contains(parent)).for_each(|parent| drop(fs.sync_dir(parent)));
    Ok(())
}
