//! Pieces of the inputs: blocks of rows, and row groups, handed out in order to those who read them beside each other.

use std::collections::VecDeque;
use std::io::Read;
use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::by::Table;
use super::columns::{Reading, header_failure, options};
use super::crew::{Feed, Next};
use super::inputs::Inputs;
use super::row_format::RowFormat;
use crate::failure::Failure;
use crate::input::blocks::{BLOCK_BYTES, Blocks};
use crate::input::delimited::{Delimited, Dialect, Head};
use crate::input::jsonl::Jsonl;
use crate::input::parquet::ParquetFile;
use crate::input::window::{Block, Window};
use crate::input::{Position, Rows, Trouble, TroubleKind};

/// A piece of a file.
pub(super) struct Piece {
    pub(super) file: Arc<Opened>,
    pub(super) part: Part,
}

pub(super) enum Part {
    Rows(Block),
    Group(usize),
    /// A record that is malformed, and why.
    Bad(Position, String),
}

/// A file of which pieces are read.
pub(super) struct Opened {
    /// What to call it in messages.
    pub(super) name: String,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Delimited(Dialect, Head),
    Jsonl,
    Parquet(ParquetFile),
}

/// See the module.
pub(super) struct RowFeed<'f, 'scope, 'env> {
    reading: &'f Reading,
    table: &'f Table,
    inputs: &'f mut Inputs<'scope, 'env>,
    /// The file that is next, and the one that is open.
    next_file: usize,
    open: Option<(Arc<Opened>, Pieces<'scope>)>,
    next_piece: u64,
}

/// The pieces of a file that are left.
enum Pieces<'a> {
    /// Some that were looked at, and those behind them.
    Blocks(VecDeque<Block>, Blocks<Box<dyn Read + Send + 'a>>),
    Groups(Range<usize>),
}

impl<'f, 'scope, 'env> RowFeed<'f, 'scope, 'env> {
    pub(super) fn new(reading: &'f Reading, table: &'f Table, inputs: &'f mut Inputs<'scope, 'env>) -> Self {
        Self { reading, table, inputs, next_file: 0, open: None, next_piece: 0 }
    }
}

impl Feed for RowFeed<'_, '_, '_> {
    type Piece = Piece;

    fn next(&mut self, spare: &mut Vec<u8>) -> Next<Piece> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.inputs.files.get(self.next_file) else { return Ok(None) };
                self.next_piece = 0;
                let opened = self.reading.open(self.table, self.inputs, path);
                self.open = Some(opened.map_err(|failure| ((self.next_file, 0), failure))?);
                self.next_file += 1;
            }
            let Some((file, pieces)) = &mut self.open else { return Ok(None) };
            let place = (self.next_file - 1, self.next_piece);
            match pieces.next(spare) {
                Ok(Some(part)) => {
                    self.next_piece += 1;
                    return Ok(Some((place, Piece { file: Arc::clone(file), part })));
                }
                Ok(None) => self.open = None,
                Err(error) => {
                    return Err((place, Failure::work(format!("cannot read {}: {error}", file.name))));
                }
            }
        }
    }
}

impl Pieces<'_> {
    fn next(&mut self, spare: &mut Vec<u8>) -> std::io::Result<Option<Part>> {
        let (seen, blocks) = match self {
            Self::Groups(groups) => return Ok(groups.next().map(Part::Group)),
            Self::Blocks(seen, blocks) => (seen, blocks),
        };
        if let Some(block) = seen.pop_front() {
            return Ok(Some(Part::Rows(block)));
        }
        match blocks.next(mem::take(spare)) {
            Ok(block) => Ok(block.map(Part::Rows)),
            Err(trouble) => match *trouble {
                TroubleKind::Read(error) => Err(error),
                TroubleKind::Bad(reason) => Ok(Some(Part::Bad(blocks.bad(), reason))),
            },
        }
    }
}

impl Reading {
    /// Opens a file of rows that are gathered, and begins to cut it.
    fn open<'scope>(
        &self,
        table: &Table,
        inputs: &mut Inputs<'scope, '_>,
        path: &Path,
    ) -> Result<(Arc<Opened>, Pieces<'scope>), Failure> {
        let format = self.format_of(path)?;
        let mut input = inputs.open_whole(path)?;
        if format == RowFormat::Parquet {
            let file = self.seekable(&mut input)?;
            let file = ParquetFile::open(file, &input.name, &options(table)?)?;
            let groups = 0..file.groups();
            let opened = Opened { name: input.name, kind: Kind::Parquet(file) };
            return Ok((Arc::new(opened), Pieces::Groups(groups)));
        }
        let window = Window::new(input.take());
        let failed = |trouble: Trouble| header_failure(*trouble, &input.name);
        let (kind, seen, blocks) = match format {
            RowFormat::Delimited(dialect) => {
                let mut rows = self.delimited(window, dialect, &input.state, table)?.map_err(failed)?;
                self.tell_untold_header(&mut rows, &input.name, inputs.progress);
                let (head, mut blocks) = (rows.head(), rows.into_blocks(BLOCK_BYTES));
                let mut seen = VecDeque::new();
                let head = complete(head, dialect, &mut blocks, &mut seen).map_err(failed)?;
                (Kind::Delimited(dialect, head), seen, blocks)
            }
            _ => {
                let rows = Jsonl::with_fields(window, table.columns.iter().cloned()).map_err(failed)?;
                (Kind::Jsonl, VecDeque::new(), rows.into_blocks(BLOCK_BYTES))
            }
        };
        let opened = Opened { name: input.name, kind };
        Ok((Arc::new(opened), Pieces::Blocks(seen, blocks)))
    }
}

/// A head that tells how many columns rows have: as many as the first that is sound.
fn complete<R: Read>(
    mut head: Head,
    dialect: Dialect,
    blocks: &mut Blocks<R>,
    seen: &mut VecDeque<Block>,
) -> Result<Head, Trouble> {
    while !head.is_known() {
        let Some(block) = blocks.next(Vec::new())? else { break };
        seen.push_back(block.clone());
        let mut rows = Delimited::behind(Window::over(block), dialect, &head, std::iter::repeat("--by"));
        while !rows.head().is_known() && !matches!(rows.advance(), Ok(false)) {}
        head = rows.head();
    }
    Ok(head)
}
