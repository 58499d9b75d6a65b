//! `scan`: everything that is there, in order. Entries are compared a chunk at a time, while the clock is stopped.
//!
//! No list of keys is needed: entries that ascend, are each as written and are as many as there are, are all of them.

use crate::answers;
use crate::chunk::records_at_a_time;
use crate::data::{Presence, Records};
use crate::meter::Meter;
use crate::oracle::Oracle;
use crate::{Engine, Failure};

use super::World;

pub(super) fn run(
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let records = &world.records;
    let chunk_bytes = records_at_a_time(1, records.record_bytes()) as usize * records.record_bytes();
    let mut seen = Seen::default();
    let mut chunk = Vec::with_capacity(chunk_bytes);
    let mut outcome = Ok(());
    meter.start();
    engine.scan(&[], usize::MAX, &mut |key, value| {
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value);
        if chunk.len() >= chunk_bytes {
            seen.take(&mut chunk, world, meter, &mut outcome);
        }
    })?;
    seen.take(&mut chunk, world, meter, &mut outcome);
    meter.stop();
    outcome?;
    match seen.count == world.oracle.live() {
        true => Ok(()),
        false => {
            let (found, live) = (seen.count, world.oracle.live());
            Err(format!("wrong answer: a scan of everything gave {found} of {live} entries").into())
        }
    }
}

/// What the scan gave so far.
#[derive(Default)]
struct Seen {
    count: u64,
    last: Option<u64>,
    scratch: Vec<u8>,
}

impl Seen {
    /// Counts a chunk, and compares it with the clock stopped.
    fn take(
        &mut self,
        chunk: &mut Vec<u8>,
        world: &World<'_>,
        meter: &mut Meter<'_>,
        outcome: &mut Result<(), Failure>,
    ) {
        let entries = (chunk.len() / world.records.record_bytes()) as u64;
        let counted = meter.call(entries, || Ok(()));
        meter.stop();
        if outcome.is_ok() {
            *outcome = counted.and_then(|()| self.check(chunk, &world.records, &world.oracle));
        }
        self.count += entries;
        chunk.clear();
        meter.start();
    }

    fn check(&mut self, chunk: &[u8], records: &Records, oracle: &Oracle) -> Result<(), Failure> {
        for entry in chunk.chunks(records.record_bytes()) {
            let (key, value) = entry.split_at_checked(records.key_bytes).unwrap_or((entry, &[]));
            let number = records.number_of(key).filter(|number| oracle.numbers().contains(number));
            let word = number.map(|number| records.word(number, Presence::Present));
            let (Some(number), true) = (number, word > self.last) else {
                return Err(format!("wrong answer: a scan gave {key:02x?}, where it is not").into());
            };
            answers::check(records, oracle.expected(number), Some(value), &mut self.scratch)?;
            self.last = word;
        }
        Ok(())
    }
}
