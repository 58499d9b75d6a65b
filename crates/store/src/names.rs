//! The names of a database's files. Ids only grow, and are shared by all numbered kinds.

use std::path::{Path, PathBuf};

/// Identity, format version and what must never change; written once.
pub const SUPERBLOCK: &str = "FOREBAY";
/// A second copy of that, which only salvage reads.
pub const SUPERBLOCK_SPARE: &str = "FOREBAY.spare";
/// The data keys of an encrypted database, which are encrypted themselves.
pub const KEYS: &str = "FOREBAY.keys";
/// A second copy of that.
pub const KEYS_SPARE: &str = "FOREBAY.keys.spare";
/// What the superblock is called while its database is being destroyed.
pub const DESTROYED: &str = "FOREBAY.destroyed";
/// Which manifest is current, and whether the database was closed in order.
pub const CURRENT: &str = "CURRENT";
/// Held while the database is open.
pub const LOCK: &str = "LOCK";
/// The folder of readers' leases.
pub const READERS: &str = "readers";
/// An answer to one of them that is being written. Not in that folder, where others may put a link of its name.
pub const ANSWER_DRAFT: &str = "readers.tmp";

/// The path of a list file.
pub fn list(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.list"))
}

/// The path of a copy-on-write tree.
pub fn tree(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.tree"))
}

/// The path of a log segment.
pub fn log(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.log"))
}

/// The path of a value file.
pub fn values(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.values"))
}

/// The path of a manifest.
pub fn manifest(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.manifest"))
}

/// The id and extension of a numbered file.
pub fn parse(name: &str) -> Option<(u64, &str)> {
    let (stem, extension) = name.split_once('.')?;
    let known = matches!(extension, "list" | "tree" | "log" | "values" | "manifest");
    let digits = stem.len() >= 8 && stem.bytes().all(|byte| byte.is_ascii_digit());
    if known && digits { Some((stem.parse().ok()?, extension)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_numbered_name_is_known_and_no_other() {
        let dir = Path::new("/db");
        for (path, kind) in [
            (list(dir, 7), "list"),
            (tree(dir, 7), "tree"),
            (log(dir, 7), "log"),
            (values(dir, 7), "values"),
            (manifest(dir, 7), "manifest"),
        ] {
            assert_eq!(path.file_name().and_then(|name| name.to_str()).and_then(parse), Some((7, kind)));
        }
        assert_eq!(parse("123456789.tree"), Some((123_456_789, "tree")));
        for other in
            [SUPERBLOCK, "00000007", "7.tree", "00000007.trees", "0000000x.tree", "00000007.tree.tmp"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
