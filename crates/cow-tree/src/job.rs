//! Running an append or a bulk load: an explicit machine that collapses its input and writes a version, in steps.
//!
//! **Invariant:** until it is done nothing refers to what it has written. When it is dropped, the tree before is as it
//! was.

use forebay_base::combine::Depth;
use forebay_base::merge::{Collapse, Cursor};
use forebay_base::{Combine, Error, Result};
use forebay_store::Cause;

use crate::file::Claim;
use crate::growth::Growth;
use crate::store::TreeStore;
use crate::tail::Tail;
use crate::tree::Tree;

/// The next version of a tree on its way.
pub struct TreeJob<C, R> {
    collapse: Collapse<C, R>,
    rule: R,
    depth: Depth,
    /// `None` once it is done.
    work: Option<Work>,
}

enum Work {
    /// Nothing was put yet: so far the tree is the one before.
    Unbegun(Tree, Cause),
    Begun(Box<Growth>),
}

impl<C: Cursor, R: Combine + Clone> TreeJob<C, R> {
    /// Applies a batch to the newest version of its file: records in order, the newest first among those of one key, all
    /// newer than the tree's. What they and the tree's records come to is the rule's business; where nothing older is
    /// beneath the tree, deleted keys go, else tombstones stay. At most one batch at a time is applied to a file.
    ///
    /// An older version than the newest one may be given, too: what others have appended meanwhile stays, and is dead.
    pub fn append(tree: &Tree, batch: C, rule: R, depth: Depth, cause: Cause) -> Self {
        Self::new(batch, rule, depth, Work::Unbegun(tree.clone(), cause))
    }

    /// Writes a file of its own, in key order from front to back, values beside their leaves. Its name is durable only
    /// after a sync of the directory.
    pub fn build(store: &TreeStore, input: C, rule: R, depth: Depth, cause: Cause) -> Result<Self> {
        let (claim, file) = Claim::new_file(store)?;
        let growth = Growth::new(store, Tail::new(claim, file, &store.metrics, cause), None)?;
        Ok(Self::new(input, rule, depth, Work::Begun(Box::new(growth))))
    }

    fn new(input: C, rule: R, depth: Depth, work: Work) -> Self {
        // What the batch alone comes to; the tree's own record may lie beneath.
        let collapse = Collapse::new(input, rule.clone(), Depth::Partial);
        Self { collapse, rule, depth, work: Some(work) }
    }

    /// Works until about so many bytes were read and written. `Some` when the version is durable; it is the one before
    /// where the batch was empty. After an error the job can only be dropped.
    pub fn step(&mut self, bytes_max: usize) -> Result<Option<Tree>> {
        let work = self.work.take().ok_or_else(|| Error::invalid("the job is done"))?;
        let mut growth = match work {
            Work::Unbegun(tree, _) if self.collapse.is_finished() => return Ok(Some(tree)),
            Work::Unbegun(tree, cause) => begin(&tree, cause)?,
            Work::Begun(growth) => growth,
        };
        if self.collapse.is_finished() {
            return growth.finish().map(Some);
        }
        let (rule, depth) = (&self.rule, self.depth);
        let (mut input_bytes, before_bytes) = (0, growth.moved_bytes());
        while !self.collapse.is_finished()
            && input_bytes + (growth.moved_bytes() - before_bytes) < bytes_max.max(1) as u64
        {
            // One key at a time: a short one can move much.
            let progress = self.collapse.run(1, |prefix, record| growth.put(prefix, record, rule, depth))?;
            input_bytes += progress.bytes;
        }
        self.work = Some(Work::Begun(growth));
        Ok(None)
    }
}

fn begin(tree: &Tree, cause: Cause) -> Result<Box<Growth>> {
    let store = tree.store();
    let (claim, file) = Claim::tail_of(tree.file(), &*store.fs)?;
    let tail = Tail::new(claim, file, &store.metrics, cause);
    Ok(Box::new(Growth::new(store, tail, Some((tree, Growth::reading(cause))))?))
}
