//! Scans: entries by blocks, one call for as many as C has room for. A block stays until the next call.

use std::ffi::c_int;

use forebay::{Error, Result};

use crate::database::Snapshot;
use crate::error::ErrorOut;
use crate::kernel::{Room, Slice, fallible, numbered, plain};
use crate::table::{Table, bounds};

/// `forebay_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    key: Slice,
    value: Slice,
}

impl Entry {
    /// Of an entry that stays where it is, for as long as the header says.
    pub(crate) fn lent(key: &[u8], value: &[u8]) -> Self {
        Self { key: Slice::lent(key), value: Slice::lent(value) }
    }
}

/// `forebay_direction`.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

fn direction(number: c_int) -> Result<Direction> {
    match number {
        0 => Ok(Direction::Forward),
        1 => Ok(Direction::Backward),
        _ => Err(Error::invalid(format!("there is no forebay_direction {number}"))),
    }
}

numbered!(Direction: direction);

/// A walk that can be gone from either end.
type Entries = dyn DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + Send;

/// `forebay_scan`.
pub(crate) struct Scan {
    scan: Box<Entries>,
    direction: Direction,
    /// What C may look at.
    block: Vec<(Vec<u8>, Vec<u8>)>,
    /// An error that entries came before, which C is shown first.
    fault: Option<Error>,
}

impl Scan {
    pub(crate) fn new(
        scan: impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> + Send + 'static,
        direction: Direction,
    ) -> Option<Box<Self>> {
        Some(Box::new(Self { scan: Box::new(scan), direction, block: Vec::new(), fault: None }))
    }

    /// Fills the block anew, with up to `count` entries; none at the end.
    fn fill(&mut self, count: usize) -> Result<()> {
        self.block.clear();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        while self.block.len() < count {
            let entry = match self.direction {
                Direction::Forward => self.scan.next(),
                Direction::Backward => self.scan.next_back(),
            };
            match entry {
                Some(Ok(entry)) => self.block.push(entry),
                Some(Err(fault)) if self.block.is_empty() => return Err(fault),
                Some(Err(fault)) => {
                    self.fault = Some(fault);
                    break;
                }
                None => break,
            }
        }
        debug_assert!(self.block.len() <= count && (self.fault.is_none() || !self.block.is_empty()));
        Ok(())
    }
}

fallible! { ErrorOut<'_>;
    fn forebay_scan_new(
        table: &Table,
        snapshot: Option<&Snapshot>,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
        direction: Direction,
    ) -> Option<Box<Scan>> {
        // All of a table has no bounds, so it needs no order; only a walk from the end of one means something.
        let scan = match (snapshot, from.or(to)) {
            (None, None) => table.as_ref().iter(),
            (None, Some(_)) => table.ordered()?.range(bounds(from, to)),
            (Some(snapshot), None) => snapshot.0.iter(table),
            (Some(snapshot), Some(_)) => snapshot.0.range(table.ordered()?, bounds(from, to)),
        }?;
        Ok(Scan::new(scan, direction))
    }

    fn forebay_scan_new_prefix(
        table: &Table,
        snapshot: Option<&Snapshot>,
        prefix: &[u8] [prefix_bytes],
        direction: Direction,
    ) -> Option<Box<Scan>> {
        let scan = match snapshot {
            None => table.ordered()?.prefix(prefix),
            Some(snapshot) => snapshot.0.prefix(table.ordered()?, prefix),
        }?;
        Ok(Scan::new(scan, direction))
    }

    fn forebay_scan_next(scan: &mut Scan, entries: Room<'_, Entry> where count, count: usize) -> usize {
        if count == 0 {
            return Err(Error::invalid("a scan was asked for no entries; give room for one at least"));
        }
        scan.fill(count)?;
        for ((key, value), room) in scan.block.iter().zip(entries) {
            room.write(Entry::lent(key, value));
        }
        Ok(scan.block.len())
    }
}

plain! {
    fn forebay_scan_free(scan: Option<Box<Scan>>) {
        drop(scan);
    }
}
