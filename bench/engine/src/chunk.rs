//! Records made ahead of the calls that take them: the generator works on a few thousand at a time, in memory
//! that is used again, so that neither it nor the reading of its clock weighs on a single call.

use crate::data::{Presence, Records};
use crate::meter::Meter;
use crate::{Batch, Engine, Failure};

/// A chunk stays in a core's own cache.
const CHUNK_BYTES: u64 = 256 << 10;
const CHUNK_RECORDS_MAX: u64 = 4096;

/// How many records of that length are made at a time: whole batches, at least one.
pub(crate) fn records_at_a_time(batch: u64, record_bytes: usize) -> u64 {
    let records = (CHUNK_BYTES / record_bytes as u64).clamp(1, CHUNK_RECORDS_MAX);
    records.next_multiple_of(batch)
}

/// Records to be put.
#[derive(Debug)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    records: Records,
    batch_bytes: usize,
}

impl Chunk {
    pub(crate) fn new(records: &Records, batch: u64) -> Self {
        let batch_bytes = batch as usize * records.record_bytes();
        Self { bytes: Vec::new(), records: records.clone(), batch_bytes }
    }

    /// Makes `count` records, each of the number and version that `next` says.
    #[inline]
    pub(crate) fn fill(&mut self, count: u64, mut next: impl FnMut() -> (u64, u32)) {
        let record_bytes = self.records.record_bytes();
        self.bytes.resize(count as usize * record_bytes, 0);
        for record in self.bytes.chunks_exact_mut(record_bytes) {
            let (number, version) = next();
            self.records.fill_record(number, version, record);
        }
    }

    /// Makes a count of one for the key of each record number.
    pub(crate) fn fill_counts(&mut self, numbers: &[u64]) {
        let (key_bytes, record_bytes) = (self.records.key_bytes, self.records.record_bytes());
        self.bytes.resize(numbers.len() * record_bytes, 0);
        for (record, &number) in self.bytes.chunks_exact_mut(record_bytes).zip(numbers) {
            let (key, count) = record.split_at_mut(key_bytes);
            self.records.fill_key(number, Presence::Present, key);
            count.copy_from_slice(&1u64.to_le_bytes());
        }
    }

    /// The records as batches.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        let (key_bytes, value_bytes) = (self.records.key_bytes, self.records.value_bytes);
        self.bytes.chunks(self.batch_bytes).map(move |bytes| Batch { bytes, key_bytes, value_bytes })
    }

    /// Puts all of them.
    pub(crate) fn put(&self, engine: &mut dyn Engine, meter: &mut Meter<'_>) -> Result<(), Failure> {
        for batch in self.batches() {
            meter.call(batch.len() as u64, || engine.put(batch))?;
        }
        meter.wrote(self.bytes.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::KeyOrder;

    #[test]
    fn chunks_are_whole_batches() {
        for (batch, record_bytes, at_a_time) in
            [(1, 16, 4096), (1000, 16, 5000), (100, 1024, 300), (1, 1 << 20, 1), (10_000, 16, 10_000)]
        {
            assert_eq!(records_at_a_time(batch, record_bytes), at_a_time);
        }
    }

    #[test]
    fn batches_hold_the_records_in_order() {
        let records = Records::new(1, 8, 3, KeyOrder::Random);
        let mut chunk = Chunk::new(&records, 4);
        let mut numbers = 0..;
        chunk.fill(10, || (numbers.next().unwrap(), 7));
        let lengths: Vec<usize> = chunk.batches().map(|batch| batch.len()).collect();
        assert_eq!(lengths, [4, 4, 2]);
        let mut value = [0; 3];
        for (number, (key, found)) in chunk.batches().flat_map(|batch| batch.iter()).enumerate() {
            records.fill_value(number as u64, 7, &mut value);
            assert_eq!((key, found), (&records.key(number as u64, Presence::Present)[..], &value[..]));
        }
    }
}
