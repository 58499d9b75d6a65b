//! The table that stands beside the groups of a store, and tells how far every file was read into them.

use forebay::Database;

use crate::failure::Failure;

/// What the name of a table of inputs ends in.
pub(crate) const INPUTS: &str = ".inputs";
/// Where it keeps the shape of the groups; files are kept by their paths, which begin with a slash, and by their
/// numbers in the file system, behind `file:`, and by how they begin, behind `content:`.
pub(crate) const SHAPE: &[u8] = b"shape";
/// Where it tells that groups were rescued from a damaged database, of which this many places could not be read.
pub(crate) const RESCUED: &[u8] = b"rescued";

/// Sees to it that a table is not one that tells which files were counted into groups: what anybody else writes there
/// makes the next count wrong.
pub(crate) fn writable(db: &Database, name: &str) -> Result<(), Failure> {
    let Some(groups) = name.strip_suffix(INPUTS) else { return Ok(()) };
    let tells_inputs = db.tables().iter().any(|(table, _)| table == name)
        && db.snapshot().table(name)?.get(SHAPE)?.is_some();
    match tells_inputs {
        true => Err(Failure::work(format!(
            "table `{name}` tells which files were counted into `{groups}`, and forebay aggregate --store alone writes to it"
        ))),
        false => Ok(()),
    }
}
