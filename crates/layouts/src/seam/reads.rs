//! What lookups and scans ask of a table version.

use forebay_base::merge::Direction;
use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree::Portion;
use forebay_store::ValueFiles;
use forebay_store::list::{Lookup, Seeker};

use crate::files::Source;

/// A stretch of a table that one set of sources covers.
pub struct Stretch {
    /// What the sources are responsible for.
    pub range: Range,
    /// Newest first, each inside the range. They have read nothing, and are sought before they are read.
    pub sources: Vec<Source>,
}

/// What lists answer.
pub trait Reads {
    /// Shows a seeker what the lists have of its keys. Device reads: one for each list that has a key or whose filter
    /// does not deny it. Returns about how many nanoseconds went to lists in vain that a
    /// merge would have spared.
    fn find(&self, lookups: &[Lookup<'_>], seeker: &mut dyn Seeker) -> Result<u64>;

    /// The sources at `from` for a walk inside `within`: the stretch that holds the records from `from` on
    /// (forward) or just below it (backward; `None` means the end). `None` when nothing is left.
    fn stretch(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Result<Option<Stretch>>;

    /// About how much of the range lies in lists, every version counted, from metadata in memory: a list errs by a page
    /// at either end. Pure.
    fn portion(&self, range: &Range) -> Portion;

    /// Records in lists, every version counted.
    fn records(&self) -> u64;

    /// Where values stand that lists have pointers to.
    fn values(&self) -> &ValueFiles;
}
