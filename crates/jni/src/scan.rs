//! Scans: entries by blocks, each an array for Java to keep. One call brings as many as a block holds.

use forebay::{Error, Result};
use forebay_env::sync::Mutex;
use jni::Env;
use jni::objects::JByteArray;
use jni::sys::{jint, jlong};

use crate::failure::{Failure, Outcome};
use crate::glue::{bytes, given, natives, optional};
use crate::snapshot::Snapshot;
use crate::table::{Table, edges, get};
use crate::{handles, items};

/// So long is a block at first and at most, but for an entry that is longer: a scan that ends early has read little.
const BLOCK_BYTES_MIN: usize = 4 << 10;
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// A block begins with the scan's number, or 0 where nothing comes behind it. Items follow: keys and values by turns.
const HEAD_BYTES: usize = size_of::<jlong>();

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// Of `dev.forebay.Direction`, by its ordinal.
    pub(crate) fn of(number: jint) -> Outcome<Self> {
        match number {
            0 => Ok(Self::Forward),
            1 => Ok(Self::Backward),
            _ => Err(Failure::invalid(format!("there is no direction {number}"))),
        }
    }
}

/// A scan under way.
pub(crate) struct Walk {
    scan: forebay::Scan,
    direction: Direction,
    /// An error that entries came before, which Java is given first.
    fault: Option<Error>,
    is_over: bool,
    block_bytes: usize,
}

impl Walk {
    /// Appends the next entries; none at the end.
    fn fill(&mut self, block: &mut Vec<u8>) -> Result<()> {
        let (begin, end) = (block.len(), block.len() + self.block_bytes);
        self.block_bytes = (4 * self.block_bytes).min(BLOCK_BYTES_MAX);
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        while block.len() < end {
            let entry = match self.direction {
                Direction::Forward => self.scan.next(),
                Direction::Backward => self.scan.next_back(),
            };
            match entry {
                Some(Ok((key, value))) => {
                    items::push(block, Some(&key));
                    items::push(block, Some(&value));
                }
                Some(Err(fault)) if block.len() == begin => return Err(fault),
                Some(Err(fault)) => {
                    self.fault = Some(fault);
                    break;
                }
                None => {
                    self.is_over = true;
                    break;
                }
            }
        }
        debug_assert!(self.is_over || block.len() > begin, "a block has an entry, or is the last");
        Ok(())
    }
}

/// The first block. Where it has all, nothing is held.
pub(crate) fn begin<'local>(
    env: &mut Env<'local>,
    table: &Table,
    scan: forebay::Scan,
    direction: Direction,
) -> Outcome<JByteArray<'local>> {
    let mut walk = Walk { scan, direction, fault: None, is_over: false, block_bytes: BLOCK_BYTES_MIN };
    let mut block = vec![0; HEAD_BYTES];
    walk.fill(&mut block)?;
    if walk.is_over {
        return given(env, &block);
    }
    let number = handles::hold(table.database, Mutex::new(walk))?;
    block[..HEAD_BYTES].copy_from_slice(&number.to_le_bytes());
    given(env, &block).inspect_err(|_| drop(handles::release(number)))
}

natives! {
    fn scan_range(
        env,
        table: jlong,
        snapshot: jlong,
        from: [jbyte],
        to: [jbyte],
        direction: jint,
    ) -> [jbyte] {
        let (table, snapshot) = (get(table)?, handles::optional::<Snapshot>(snapshot)?);
        let (from, to, direction) = (optional(env, &from)?, optional(env, &to)?, Direction::of(direction)?);
        let bounds = edges(from.as_deref(), to.as_deref());
        // All of a table has no bounds, so it needs no order.
        let has_bounds = from.is_some() || to.is_some();
        let scan = match (&snapshot, has_bounds) {
            (None, false) => table.as_ref().as_ref().iter(),
            (None, true) => table.ordered()?.range(bounds),
            (Some(snapshot), false) => snapshot.snapshot.iter(&*table),
            (Some(snapshot), true) => snapshot.snapshot.range(table.ordered()?, bounds),
        }?;
        begin(env, &table, scan, direction)
    }

    fn scan_prefix(env, table: jlong, snapshot: jlong, prefix: [jbyte], direction: jint) -> [jbyte] {
        let (table, snapshot) = (get(table)?, handles::optional::<Snapshot>(snapshot)?);
        let (prefix, direction) = (bytes(env, &prefix, "prefix")?, Direction::of(direction)?);
        let scan = match &snapshot {
            None => table.ordered()?.prefix(prefix),
            Some(snapshot) => snapshot.snapshot.prefix(table.ordered()?, prefix),
        }?;
        begin(env, &table, scan, direction)
    }

    fn scan_next(env, number: jlong) -> [jbyte] {
        let walk = handles::get::<Mutex<Walk>>(number)?;
        let mut walk = walk.lock();
        let mut block = number.to_le_bytes().to_vec();
        // After an error it ends, as the engine's does: what was in the block would be missed by the next one.
        let ends = |_: &_| drop(handles::release(number));
        walk.fill(&mut block).inspect_err(ends)?;
        if walk.is_over {
            drop(handles::release(number));
            block[..HEAD_BYTES].fill(0);
        }
        given(env, &block).inspect_err(|_| drop(handles::release(number)))
    }
}
