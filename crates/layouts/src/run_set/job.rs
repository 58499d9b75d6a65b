//! Running a plan: merges what runs have of a range, and perhaps a write buffer, into files of about equal size.

use std::collections::VecDeque;

use forebay_base::combine::Depth;
use forebay_base::merge::{Collapse, Cursor, Direction};
use forebay_base::{Block, Bound, Error, Order, Range, Record, Result};
use forebay_buffer_tree::{Expected, shape_of_merged};
use forebay_env::guest;
use forebay_store::Cause;
use forebay_store::list::Reading;

use super::plan::{Act, Made, Slice, lie_inside};
use super::set::Part;
use super::writer::{FileWriter, Writers};
use crate::files::{DataFile, Source};
use crate::rule::{Rule, answered};
use crate::seam::{Job, Outcome};

/// A merge on its way.
pub(super) struct MergeJob<C> {
    slice: Slice,
    collapse: Collapse<C, Rule>,
    /// Records that are all puts of one shape go by blocks.
    block: Option<Block>,
    output: Output,
    /// Records that were handed on.
    produced: u64,
}

impl<C: Cursor> MergeJob<C> {
    /// Merges what `input` yields, the newest first among records of one key.
    pub(super) fn new(
        slice: Slice,
        input: C,
        expected: Expected,
        rule: Rule,
        writers: Writers,
        file_bytes: u64,
    ) -> Self {
        let shape = shape_of_merged(expected.shape, &rule);
        // Beneath the records of an append lie the tree's own.
        let depth = if writers.appends() { Depth::Partial } else { slice.depth() };
        let mut output = Output::new(writers, Expected { shape, ..expected }, slice.is_bottom, file_bytes);
        // What comes by itself may find a place that nothing else has.
        output.tight = slice.act == Act::Ingest;
        // What a write buffer brings is not chosen from before it meets something else.
        let rule = if slice.taken.is_empty() { rule.keeping_all() } else { rule };
        let collapse = Collapse::new(input, rule, depth);
        let collapse = if slice.taken.is_empty() { collapse.of_any_length() } else { collapse };
        let block = collapse.block(shape);
        Self { slice, collapse, block, output, produced: 0 }
    }
}

impl<C> MergeJob<C> {
    /// Files end at these bounds too, in order, once they have this much.
    pub(super) fn end_files_at(mut self, bounds: Vec<Bound>, bytes_min: u64) -> Self {
        debug_assert!(bounds.is_sorted(), "files end in order");
        // A block may reach over a bound.
        self.block = None;
        (self.output.bounds, self.output.bound_bytes_min) = (bounds.into(), bytes_min);
        self
    }

    /// Files are expected to have about as much each, and take no more memory than that calls for.
    pub(super) fn with_even_files(mut self) -> Self {
        let share = 2 * self.output.expected.records / (self.output.bounds.len() as u64 + 1);
        self.output.file_records_max = self.output.file_records_max.min(share.max(RECORDS_MIN));
        self
    }
}

impl<C: Cursor + Send> Job for MergeJob<C> {
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>> {
        if self.collapse.is_finished() {
            let (slice, parts) = (std::mem::take(&mut self.slice), self.output.finish(self.produced)?);
            return Ok(Some(Outcome::new(Made::new(slice, parts))));
        }
        guest::take_failure();
        let (output, bytes_max) = (&mut self.output, bytes_max.max(1));
        let progress = match &mut self.block {
            Some(block) => self.collapse.run_blocks(bytes_max, block, |block| output.push_block(block))?,
            None => self.collapse.run(bytes_max, |prefix, record| output.push(prefix, record))?,
        };
        self.produced += progress.produced;
        // Before what was written of it is finished.
        answered(Ok(None))
    }

    fn cause(&self) -> Cause {
        self.output.writers.cause()
    }
}

/// How long the files are that a merge makes: all about as long, rather than a last one of what is left over.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSizes {
    /// A file ends once it has this many bytes.
    pub(super) bytes: u64,
    /// This many records at most are expected in it.
    pub(super) records: u64,
}

impl FileSizes {
    /// Of a merge of this much at most.
    pub(super) fn of(bytes: u64, records: u64, file_bytes: u64) -> Self {
        let files = bytes.div_ceil(file_bytes.max(1)).max(1);
        if files == 1 {
            // What is expected may be estimated, and be more.
            return Self { bytes: file_bytes.max(1), records };
        }
        debug_assert!(bytes.div_ceil(files) <= file_bytes.max(1), "shares are no longer than a file");
        // Shares are never quite equal.
        Self { bytes: bytes.div_ceil(files), records: (records / files).saturating_mul(17) / 16 + 8 }
    }
}

/// A file that ends at a bound for its own sake has at least this many bytes, or more, and room for this many records.
pub(super) const BOUND_BYTES_MIN: u64 = 64 << 10;
const RECORDS_MIN: u64 = 256;

/// Files written one after the other.
struct Output {
    writers: Writers,
    order: Order,
    expected: Expected,
    is_bottom: bool,
    /// A file ends once it has this many bytes; this many records are expected in each.
    file_bytes_max: u64,
    file_records_max: u64,
    writer: Option<FileWriter>,
    /// Where else files end.
    bounds: VecDeque<Bound>,
    bound_bytes_min: u64,
    /// Whether parts reach no further than records do.
    tight: bool,
    /// Where the file begins, and what it has.
    low: Bound,
    records: u64,
    /// What the files before it have.
    written: u64,
    parts: Vec<Part<DataFile>>,
}

impl Output {
    fn new(writers: Writers, expected: Expected, is_bottom: bool, file_bytes: u64) -> Self {
        let FileSizes { bytes: file_bytes_max, records: file_records_max } =
            FileSizes::of(expected.bytes, expected.records, file_bytes);
        Self {
            order: writers.order(),
            writers,
            is_bottom,
            file_bytes_max,
            file_records_max,
            writer: None,
            bounds: VecDeque::new(),
            bound_bytes_min: BOUND_BYTES_MIN,
            tight: false,
            low: expected.range.low.clone(),
            records: 0,
            written: 0,
            parts: Vec::new(),
            expected,
        }
    }

    fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        debug_assert!(self.expected.range.contains(prefix, record.key), "what is merged lies in its range");
        self.writer_for(record.key, 1)?.push(prefix, record)
    }

    fn push_block(&mut self, block: &Block) -> Result<()> {
        let records = block.len() as u64;
        if records == 0 {
            return Ok(());
        }
        self.writer_for(block.key(0), records)?.push_block(block)
    }

    /// Ends a file at the last of the bounds up to a key.
    fn pass_bounds(&mut self, key: &[u8]) -> Result<()> {
        let prefix = self.order.prefix(key);
        let mut passed = None;
        while self.bounds.front().is_some_and(|bound| bound.place(prefix, key).is_ge()) {
            passed = self.bounds.pop_front();
        }
        let bytes_min = self.bound_bytes_min;
        let long = |writer: &mut FileWriter| writer.bytes() >= bytes_min;
        if let Some(bound) = passed
            && let Some(writer) = self.writer.take_if(long)
        {
            self.close(writer, Some(bound.clone()))?;
            self.low = bound;
        }
        Ok(())
    }

    /// The file that a record of this key, and others behind it, belong to.
    fn writer_for(&mut self, key: &[u8], records: u64) -> Result<&mut FileWriter> {
        if !self.bounds.is_empty() {
            self.pass_bounds(key)?;
        }
        if let Some(writer) = self.writer.take_if(|writer| writer.bytes() >= self.file_bytes_max) {
            let bound = self.order.separator(writer.last_key(), key);
            self.close(writer, Some(bound.clone()))?;
            self.low = bound;
        }
        self.records += records;
        if self.writer.is_none() {
            if self.tight && self.parts.is_empty() {
                self.low = self.order.bound(key);
            }
            let range = Range { low: self.low.clone(), high: self.expected.range.high.clone() };
            self.writer = Some(self.writers.begin(&range, self.file_records_max, self.expected.shape)?);
        }
        // It is there by now.
        self.writer.as_mut().ok_or_else(|| Error::bug("no file is being written"))
    }

    fn close(&mut self, writer: FileWriter, high: Option<Bound>) -> Result<()> {
        let range = Range { low: self.low.clone(), high };
        debug_assert!(!range.is_empty(), "what is written lies somewhere");
        let records = std::mem::take(&mut self.records);
        self.written += records;
        if let Some((fragment, portion)) = writer.finish(&range, records)? {
            self.parts.push(Part { range, fragment, portion, is_bottom: self.is_bottom });
        }
        Ok(())
    }

    /// The parts, in which all is that was handed on: this many records.
    fn finish(&mut self, produced: u64) -> Result<Vec<Part<DataFile>>> {
        if self.writer.is_none() && self.writers.appends() {
            // To which nothing came stays as it is, and is not nothing.
            self.writer = Some(self.writers.begin(&self.expected.range, 0, self.expected.shape)?);
        }
        if let Some(writer) = self.writer.take() {
            let high = match self.tight {
                true => {
                    let last = writer.last_key();
                    let key = [last, &[0]].concat().into();
                    Some(Bound { prefix: self.order.prefix(last), key })
                }
                false => self.expected.range.high.clone(),
            };
            self.close(writer, high)?;
        }
        debug_assert_eq!(self.written, produced, "each record that is handed on is in one file");
        debug_assert!(lie_inside(&self.parts, &self.expected.range), "parts lie side by side in their range");
        let in_parts: u64 = self.parts.iter().map(|part| part.portion.records).sum();
        // Of a tree that grows most was there before; of one that is made, operands may have become nothing.
        if self.written != produced || (self.writers.are_lists() && in_parts != produced) {
            let wrote = format!("of {produced} records that a merge made {in_parts} are in files");
            return Err(Error::bug(wrote));
        }
        Ok(std::mem::take(&mut self.parts))
    }
}

impl Drop for Output {
    /// What was not handed on is for nobody.
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| part.fragment.discard());
    }
}

/// What a run has of a range, file after file.
pub(super) struct RunCursor {
    waiting: VecDeque<(DataFile, Range)>,
    current: Option<Source>,
    /// Those that were walked: of records that were handed on, and are on their way, values may stand apart. Where another
    /// edit has dropped a file meanwhile nobody else holds it, nor the value files that it has.
    walked: Vec<DataFile>,
    reading: Reading,
}

impl RunCursor {
    pub(super) fn new(parts: VecDeque<(DataFile, Range)>, reading: Reading) -> Result<Self> {
        let is_behind = |one: &Range, next: &Range| one.high.as_ref().is_some_and(|high| *high <= next.low);
        debug_assert!(
            parts.iter().is_sorted_by(|(_, one), (_, next)| is_behind(one, next)),
            "a run is walked in order"
        );
        let mut cursor = Self { waiting: parts, current: None, walked: Vec::new(), reading };
        cursor.skip_to_record()?;
        Ok(cursor)
    }

    /// Stands on a record, unless none is left.
    fn skip_to_record(&mut self) -> Result<()> {
        while self.current.as_ref().is_none_or(|current| current.prefix().is_none()) {
            let Some((file, range)) = self.waiting.pop_front() else {
                self.current = None;
                return Ok(());
            };
            self.current = Some(Source::new(&file, &range, Direction::Forward, self.reading)?);
            self.walked.push(file);
        }
        Ok(())
    }
}

impl Cursor for RunCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.current.as_ref()?.prefix()
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.current.as_ref().map_or(Record::put(b"", b""), Cursor::record)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        if let Some(current) = &mut self.current {
            current.advance()?;
            if current.prefix().is_some() {
                return Ok(());
            }
        }
        self.skip_to_record()
    }
}

/// What a cursor has inside some ranges, which are in order.
pub(super) struct Within<C> {
    input: C,
    ranges: VecDeque<Range>,
}

impl<C: Cursor> Within<C> {
    pub(super) fn new(input: C, ranges: &[Range]) -> Result<Self> {
        debug_assert!(ranges.is_sorted_by_key(|range| &range.low), "ranges are in order");
        let mut within = Self { input, ranges: ranges.iter().cloned().collect() };
        within.skip_to_record()?;
        Ok(within)
    }

    /// Goes to the next record that is inside.
    fn skip_to_record(&mut self) -> Result<()> {
        while let (Some(prefix), Some(range)) = (self.input.prefix(), self.ranges.front()) {
            let key = self.input.record().key;
            if !range.is_below_high(prefix, key) {
                self.ranges.pop_front();
            } else if range.contains(prefix, key) {
                return Ok(());
            } else {
                self.input.advance()?;
            }
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for Within<C> {
    fn prefix(&self) -> Option<u64> {
        self.input.prefix().filter(|_| !self.ranges.is_empty())
    }

    fn record(&self) -> Record<'_> {
        self.input.record()
    }

    fn advance(&mut self) -> Result<()> {
        self.input.advance()?;
        self.skip_to_record()
    }
}
