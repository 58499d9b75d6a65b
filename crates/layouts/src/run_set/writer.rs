//! What a merge writes to: lists, new trees, or the tree that the records are appended to.

use forebay_base::combine::Depth;
use forebay_base::merge::Cursor;
use forebay_base::record::Shape;
use forebay_base::{Block, Order, Range, Record, Result};
use forebay_buffer_tree::{Expected, Portion};
use forebay_cow_tree::{Tree, TreeWriter};
use forebay_store::{Cause, ListWriter};

use crate::files::Files;
use crate::files::{DataFile, Store};
use crate::rule::Rule;

/// Begins the files of one merge.
pub(super) struct Writers {
    files: Files,
    kind: Kind,
}

enum Kind {
    Lists,
    Trees(Rule, Depth),
    /// All goes to this one.
    Append(Tree, Rule, Depth),
}

/// A file being written.
pub(super) enum FileWriter {
    List(Box<ListWriter>),
    Tree(Box<TreeWriter<Rule>>),
}

impl Writers {
    /// Of lists.
    pub(super) fn lists(files: Files) -> Self {
        Self { files, kind: Kind::Lists }
    }

    /// Of trees, merged to this depth.
    pub(super) fn trees(files: Files, rule: Rule, depth: Depth) -> Self {
        Self { files, kind: Kind::Trees(rule, depth) }
    }

    /// The records are applied to a tree; what they and its own come to is of this depth.
    pub(super) fn append(files: Files, tree: Tree, rule: Rule, depth: Depth) -> Self {
        Self { files, kind: Kind::Append(tree, rule, depth) }
    }

    /// Whether records go where older ones may be.
    pub(super) fn appends(&self) -> bool {
        matches!(self.kind, Kind::Append(..))
    }

    /// Whether the files are lists, which have each record that is pushed.
    pub(super) fn are_lists(&self) -> bool {
        matches!(self.kind, Kind::Lists)
    }

    pub(super) fn cause(&self) -> Cause {
        self.files.cause
    }

    pub(super) fn order(&self) -> Order {
        self.files.store.order()
    }

    /// The next file: for records inside the range, up to this many.
    pub(super) fn begin(&self, range: &Range, records: u64, shape: Shape) -> Result<FileWriter> {
        let Files { store: Store { lists, trees }, cause, .. } = &self.files;
        let tree = match &self.kind {
            Kind::Lists => {
                let list = ListWriter::new(lists, range, records, shape, *cause)?;
                return Ok(FileWriter::List(Box::new(list)));
            }
            Kind::Trees(rule, depth) => TreeWriter::build(trees, rule.clone(), *depth, *cause)?,
            Kind::Append(tree, rule, depth) => TreeWriter::append(tree, rule.clone(), *depth, *cause)?,
        };
        Ok(FileWriter::Tree(Box::new(tree)))
    }
}

impl FileWriter {
    pub(super) fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        match self {
            Self::List(list) => list.push(prefix, record),
            Self::Tree(tree) => tree.push(prefix, record),
        }
    }

    pub(super) fn push_block(&mut self, block: &Block) -> Result<()> {
        match self {
            Self::List(list) => list.push_block(block),
            Self::Tree(..) => {
                let mut records = block.prefixes().iter().enumerate();
                records.try_for_each(|(index, &prefix)| self.push(prefix, &block.record(index)))
            }
        }
    }

    pub(super) fn last_key(&self) -> &[u8] {
        match self {
            Self::List(list) => list.last_key(),
            Self::Tree(tree) => tree.last_key(),
        }
    }

    /// About how many bytes there are so far.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::List(list) => list.bytes(),
            Self::Tree(tree) => tree.bytes(),
        }
    }

    /// The file, and how much it has of a range, after this many records; `None` where nothing is there.
    pub(super) fn finish(self, range: &Range, records: u64) -> Result<Option<(DataFile, Portion)>> {
        match self {
            Self::List(list) => {
                let portion = Portion { bytes: list.bytes(), records };
                Ok(list.finish()?.map(|list| (DataFile::List(list), portion)))
            }
            Self::Tree(tree) => {
                // An append of nothing gives the version back that is there.
                let is_new = tree.is_begun();
                let tree = tree.finish()?;
                let give_up = || {
                    if is_new {
                        tree.discard()
                    }
                };
                let (records, bytes) = tree.portion(range).inspect_err(|_| give_up())?;
                debug_assert!(records <= tree.records(), "a range has no more of a tree than there is");
                if records == 0 {
                    give_up();
                    return Ok(None);
                }
                Ok(Some((DataFile::Tree(tree), Portion { bytes, records })))
            }
        }
    }
}

/// Where nobody knows how much is to come: files as long as they may be, of records like the first.
pub(super) fn like_first(input: &dyn Cursor, file_bytes: u64) -> Expected {
    let first = input.prefix().map_or(0, |_| input.record().encoded_bytes() as u64);
    let records = file_bytes / first.max(1);
    Expected { range: Range::all(), bytes: file_bytes, records, shape: Shape::Variable }
}
