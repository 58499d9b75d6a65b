//! A walk over a file of records, whichever kind it is of.

use forebay_base::merge::{Cursor, Direction};
use forebay_base::record::Shape;
use forebay_base::{Block, Kind, Range, Record, Result};
use forebay_cow_tree::{Reading as TreeReading, TreeCursor};
use forebay_store::ListCursor;
use forebay_store::list::{Pace, Reading};

use super::DataFile;

/// See the module.
#[expect(clippy::large_enum_variant, reason = "walks over lists are many, and read record by record")]
pub enum Source {
    /// Over a list.
    List(ListCursor),
    /// Over a tree.
    Tree(Box<TreeCursor>),
}

impl Source {
    /// A walk over the records of the range. A job's stands on the first of them; a scan's has read nothing and stands
    /// nowhere until it is sought.
    pub(crate) fn new(
        file: &DataFile,
        range: &Range,
        direction: Direction,
        reading: Reading,
    ) -> Result<Self> {
        match file {
            DataFile::List(list) => ListCursor::new(list, range, direction, reading).map(Self::List),
            DataFile::Tree(tree) => {
                let reading = match reading {
                    Reading::Job { cause, chunk_bytes } => {
                        TreeReading::Job { cause, memory_bytes: chunk_bytes }
                    }
                    Reading::Scan => TreeReading::Scan,
                    Reading::Check => TreeReading::Check,
                };
                Ok(Self::Tree(Box::new(TreeCursor::new(tree, range, direction, reading)?)))
            }
        }
    }

    /// Sends walks to the first record at or behind a place (forward), or to the last one before it (backward); without
    /// a place, to the first or last of the range. Device reads: see [`ListCursor::seek_all`]; of each tree a leaf.
    pub fn seek_all<'c>(
        sources: impl Iterator<Item = &'c mut Self>,
        place: Option<(u64, &[u8])>,
        direction: Direction,
        pace: Pace,
    ) -> Result<()> {
        let mut sought = Ok(());
        let lists = sources.filter_map(|source| match source {
            Self::List(cursor) => Some(cursor),
            Self::Tree(cursor) => {
                cursor.set_caching(pace.cached());
                sought = std::mem::replace(&mut sought, Ok(())).and_then(|()| cursor.seek(place, direction));
                None
            }
        });
        ListCursor::seek_all(lists, place, direction, pace)?;
        sought
    }

    /// What it takes beside what it has claimed. A tree's windows are.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::List(cursor) => cursor.memory_bytes(),
            Self::Tree(cursor) => size_of_val(&**cursor),
        }
    }

    /// The sizes that its records have in common.
    pub fn shape(&self) -> Shape {
        match self {
            Self::List(cursor) => cursor.shape(),
            Self::Tree(_) => Shape::Variable,
        }
    }

    /// How it has come to read by now.
    pub fn pace(&self) -> Pace {
        match self {
            Self::List(cursor) => cursor.pace(),
            Self::Tree(_) => Pace::default(),
        }
    }

    /// What the record here does.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Self::List(cursor) => cursor.kind(),
            Self::Tree(cursor) => cursor.kind(),
        }
    }
}

impl Cursor for Source {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        match self {
            Self::List(cursor) => cursor.prefix(),
            Self::Tree(cursor) => cursor.prefix(),
        }
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        match self {
            Self::List(cursor) => cursor.record(),
            Self::Tree(cursor) => cursor.record(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self {
            Self::List(cursor) => cursor.advance(),
            Self::Tree(cursor) => cursor.advance(),
        }
    }

    fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
        match self {
            Self::List(cursor) => cursor.fill_up_to(high, block),
            Self::Tree(cursor) => cursor.fill_up_to(high, block),
        }
    }
}
