//! Writing a version: records are pushed in order, and a sync makes what they come to durable.
//!
//! **Invariant:** until it is finished nothing refers to what it has written. When it is dropped, the tree before is
//! as it was.

use forebay_base::combine::Depth;
use forebay_base::{Combine, Error, Record, Result};
use forebay_store::Cause;

use crate::file::Claim;
use crate::growth::Growth;
use crate::store::TreeStore;
use crate::tail::Tail;
use crate::tree::Tree;

/// The next version of a tree on its way.
pub struct TreeWriter<R> {
    rule: R,
    depth: Depth,
    last_prefix: Option<u64>,
    last_key: Vec<u8>,
    /// `None` after an error.
    work: Option<Work>,
}

enum Work {
    /// Nothing was pushed yet: so far the tree is the one before.
    Unbegun(Tree, Cause),
    Begun(Box<Growth>),
}

impl<R: Combine> TreeWriter<R> {
    /// Applies a batch to the newest version of its file, whose records are all older. What the batch and the tree
    /// have of a key is folded by the rule; where nothing older is beneath the tree, deleted keys go, else tombstones
    /// stay. At most one batch at a time is applied to a file, from the first push on.
    ///
    /// An older version than the newest one may be given, too: what others have appended meanwhile stays, and is dead.
    pub fn append(tree: &Tree, rule: R, depth: Depth, cause: Cause) -> Result<Self> {
        tree.root()?;
        Ok(Self::new(rule, depth, Work::Unbegun(tree.clone(), cause)))
    }

    /// Writes a file of its own, in key order from front to back, values beside their leaves. Its name is durable only
    /// after a sync of the directory.
    pub fn build(store: &TreeStore, rule: R, depth: Depth, cause: Cause) -> Result<Self> {
        let tail = Tail::new(Claim::new_file(store)?, &store.metrics, cause);
        Ok(Self::new(rule, depth, Work::Begun(Box::new(Growth::new(store, tail, None)?))))
    }

    fn new(rule: R, depth: Depth, work: Work) -> Self {
        Self { rule, depth, last_prefix: None, last_key: Vec::new(), work: Some(work) }
    }

    /// Adds the next record, the only one of its key. After an error the writer can only be dropped.
    pub fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        let mut growth = match self.work.take() {
            None => return Err(failed()),
            Some(Work::Unbegun(tree, cause)) => begin(&tree, cause)?,
            Some(Work::Begun(growth)) => growth,
        };
        if self.last_prefix.is_some_and(|last| (last, &self.last_key[..]) >= (prefix, record.key)) {
            return Err(Error::bug("records are pushed in order, each key once"));
        }
        growth.put(prefix, record, &self.rule, self.depth)?;
        self.last_prefix = Some(prefix);
        self.last_key.clear();
        self.last_key.extend_from_slice(record.key);
        self.work = Some(Work::Begun(growth));
        Ok(())
    }

    /// Whether a version is on its way: a file of its own, or an append to which something was pushed.
    pub fn is_begun(&self) -> bool {
        matches!(self.work, Some(Work::Begun(_)))
    }

    /// The key of the last record pushed.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes written so far, those included that wait for a long write. Nodes that are not full yet, up to two a
    /// level, and the root come on top.
    pub fn bytes(&self) -> u64 {
        match &self.work {
            Some(Work::Begun(growth)) => growth.bytes(),
            _ => 0,
        }
    }

    /// Completes the version and makes it durable; it is the one before, and nothing is touched, where nothing was
    /// pushed to an append.
    pub fn finish(self) -> Result<Tree> {
        match self.work.ok_or_else(failed)? {
            Work::Unbegun(tree, _) => Ok(tree),
            Work::Begun(growth) => growth.finish(),
        }
    }
}

fn failed() -> Error {
    Error::bug("the tree's writer has failed before")
}

fn begin(tree: &Tree, cause: Cause) -> Result<Box<Growth>> {
    let store = tree.store();
    let tail = Tail::new(Claim::tail_of(tree.file())?, &store.metrics, cause);
    Ok(Box::new(Growth::new(store, tail, Some(tree))?))
}
