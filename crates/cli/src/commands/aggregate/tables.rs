//! The table that stands beside the groups of a store, and tells how far every file was read into them.

use forebay::{Database, Table};

use super::reached::Reached;
use super::store;
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
    match groups_told(db, name)? {
        Some(groups) => Err(Failure::work(format!(
            "table `{name}` tells which files were counted into `{groups}`, and forebay aggregate --store alone writes to it"
        ))),
        None => Ok(()),
    }
}

/// The groups that a table tells the inputs of. Users may call tables of their own so, too.
pub(crate) fn groups_told<'a>(db: &Database, name: &'a str) -> Result<Option<&'a str>, Failure> {
    let Some(groups) = groups_beside(db, name) else { return Ok(None) };
    Ok(is_of_counting(&db.snapshot().table(name)?)?.then_some(groups))
}

/// Whether a rescued table tells the inputs of groups, or did: one that lost all it had is empty.
pub(crate) fn may_have_told(db: &Database, name: &str) -> Result<bool, Failure> {
    let may_be = groups_beside(db, name).is_some() && db.snapshot().table(name)?.is_empty()?;
    Ok(may_be || groups_told(db, name)?.is_some())
}

/// Whether a table has what counting writes: the shape, or, where that was lost, how far a file was read, or nothing but a
/// rescue's word. A key alone tells nothing: those of a user's own table may be called so, too.
fn is_of_counting(inputs: &Table) -> Result<bool, Failure> {
    if inputs.get(SHAPE)?.is_some_and(|shape| store::parse_shape(&shape).is_ok()) {
        return Ok(true);
    }
    // Besides a file there may be a rescue's word, and a shape that another program wrote.
    let first: Vec<_> = inputs.iter()?.take(3).collect::<Result<_, _>>()?;
    let is_places = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| text.parse::<u64>().is_ok());
    Ok(first.iter().any(|(_, value)| serde_json::from_slice::<Reached>(value).is_ok())
        || matches!(&first[..], [(key, value)] if key == RESCUED && is_places(value)))
}

/// The groups that a table stands beside as one of their inputs does: they keep states, and it does not.
fn groups_beside<'a>(db: &Database, name: &'a str) -> Option<&'a str> {
    let (groups, snapshot) = (name.strip_suffix(INPUTS)?, db.snapshot());
    let has_groups = matches!(snapshot.state_type(groups), Ok(Some(_)));
    (has_groups && matches!(snapshot.state_type(name), Ok(None))).then_some(groups)
}
