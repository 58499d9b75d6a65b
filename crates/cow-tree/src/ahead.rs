//! Values beside their leaves that a scan comes to, read together before their turn: each lies where its batch was
//! appended, and one by one each would be a wait for the device.

use std::collections::VecDeque;

use forebay_base::Result;
use forebay_env::fs::ReadRequest;
use forebay_store::{MemoryClaim, Owner};

use crate::extent::Extent;
use crate::file::Reader;
use crate::tree::Tree;
use crate::windows::SCANS_PART;

/// So many are read once a walk goes on, and twice as many each time then: it may stop anywhere.
const COUNT_MIN: usize = 12;
const COUNT_MAX: usize = 256;
/// And no more bytes of them.
const BYTES_MAX: u64 = 256 << 10;
/// What lies nearer to one another than this is read as one.
const GAP_BYTES: u64 = 1 << 10;

/// See the module.
#[derive(Default)]
pub(crate) struct Ahead {
    /// In the order of the walk, as the file has them.
    values: VecDeque<(Extent, Vec<u8>)>,
    /// How many are read the next time.
    count: usize,
    claim: Option<MemoryClaim>,
}

/// Some that lie side by side.
struct Piece {
    at: u64,
    /// None of them, where they could not be read.
    bytes: Vec<u8>,
}

impl Ahead {
    /// For a walk that begins, and may be over with its first record.
    pub(crate) fn restart(&mut self) {
        self.count = 0;
        self.forget();
    }

    fn forget(&mut self) {
        self.values.clear();
        self.claim = None;
    }

    /// Gives a value as the file has it, if it was read.
    pub(crate) fn take(&mut self, extent: Extent) -> Option<Vec<u8>> {
        let index = self.values.iter().position(|(other, _)| *other == extent)?;
        // Those before it were passed.
        self.values.drain(..index);
        let (_, value) = self.values.pop_front()?;
        if self.values.is_empty() {
            self.claim = None;
        }
        Some(value)
    }

    /// Reads the first of those that the walk comes to. What cannot be read is told of where its turn comes.
    pub(crate) fn fetch(&mut self, tree: &Tree, upcoming: impl Iterator<Item = Extent>) -> Result<()> {
        self.forget();
        let count = self.count;
        self.count = (2 * count).clamp(COUNT_MIN, COUNT_MAX);
        let memory = &tree.store().metrics.memory;
        if count == 0 || memory.exceeds(Owner::Scanning, SCANS_PART) {
            return Ok(());
        }
        let mut room = BYTES_MAX;
        let fits = |extent: &Extent| {
            let left = room.checked_sub(u64::from(extent.bytes));
            room = left.unwrap_or(room);
            left.is_some() && end_of(*extent) <= tree.total_bytes()
        };
        let wanted: Vec<Extent> = upcoming.take(count).take_while(fits).collect();
        if wanted.len() < 2 {
            return Ok(());
        }
        let mut pieces = pieces(&wanted);
        let read_bytes: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let mut claim = memory.claim(Owner::Scanning, 2 * read_bytes as u64);
        read(tree, &mut pieces)?;
        for &extent in &wanted {
            let value = value_of(&pieces, extent);
            if tree.file().check(extent, &value).is_ok() {
                self.values.push_back((extent, value));
            }
        }
        if self.values.len() < wanted.len() {
            // Its turn is to be the end of this one, and others near it may be damaged too.
            self.count = 0;
        }
        claim.resize(self.values.iter().map(|(_, value)| value.len() as u64).sum());
        self.claim = Some(claim);
        Ok(())
    }
}

fn end_of(extent: Extent) -> u64 {
    extent.at.saturating_add(u64::from(extent.bytes))
}

/// By where they lie, those together that lie side by side.
fn pieces(wanted: &[Extent]) -> Vec<Piece> {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable_by_key(|extent| extent.at);
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for extent in sorted {
        let end = end_of(extent);
        match ranges.last_mut() {
            Some(last) if extent.at <= last.end.saturating_add(GAP_BYTES) => last.end = last.end.max(end),
            _ => ranges.push(extent.at..end),
        }
    }
    let piece = |range: std::ops::Range<u64>| Piece {
        at: range.start,
        bytes: vec![0; (range.end - range.start) as usize],
    };
    ranges.into_iter().map(piece).collect()
}

fn read(tree: &Tree, pieces: &mut [Piece]) -> Result<()> {
    let file = tree.handle()?;
    let metrics = &tree.store().metrics;
    pieces.iter().for_each(|piece| Reader::Lookup.count(metrics, piece.bytes.len()));
    let mut requests: Vec<_> =
        pieces.iter_mut().map(|piece| ReadRequest::new(&**file, piece.at, &mut piece.bytes)).collect();
    tree.store().fs.read_many(&mut requests);
    let read: Vec<bool> = requests
        .into_iter()
        .map(|request| request.outcome.is_ok_and(|bytes| bytes == request.into.len()))
        .collect();
    let unread = pieces.iter_mut().zip(read).filter(|(_, is_read)| !is_read);
    unread.for_each(|(piece, _)| piece.bytes.clear());
    Ok(())
}

/// What was read of a value; nothing, where it was not.
fn value_of(pieces: &[Piece], extent: Extent) -> Vec<u8> {
    let index = pieces.partition_point(|piece| piece.at <= extent.at);
    let piece = index.checked_sub(1).and_then(|index| pieces.get(index));
    let bytes = piece.and_then(|piece| {
        let start = (extent.at - piece.at) as usize;
        piece.bytes.get(start..start + extent.bytes as usize)
    });
    bytes.unwrap_or_default().to_vec()
}
