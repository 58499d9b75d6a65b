//! `range`: from the key of a record on, this many entries forward. They are compared with all that is there, behind a
//! group of ranges: how many, in which order, with which values.

use crate::chunk::records_at_a_time;
use crate::data::Presence;
use crate::meter::Meter;
use crate::pick::Picker;
use crate::workload::Range;
use crate::{Engine, Failure};

use super::World;
use super::scan_index::ScanIndex;

pub(super) fn run(
    spec: &Range,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let (records, oracle) = (&world.records, &world.oracle);
    let live = oracle.live();
    let mut picker = Picker::new(spec.distribution, world.phase_seed, live);
    let index = ScanIndex::new(records, oracle.numbers());
    let length = spec.length as usize;
    let at_a_time = records_at_a_time(spec.length, records.record_bytes()) / spec.length;
    let mut left = world.plan.workload.operations(spec.operations_per_record);
    let mut numbers = Vec::new();
    let mut keys = Vec::new();
    // Entries back to back, and where each range's end.
    let (mut found, mut ends) = (Vec::new(), Vec::new());
    meter.start();
    while left > 0 {
        let now = at_a_time.min(left);
        meter.generate(|| {
            numbers.clear();
            numbers.extend((0..now).map(|_| oracle.numbers().start + picker.next(live)));
            keys.resize(now as usize * records.key_bytes, 0);
            for (key, number) in keys.chunks_exact_mut(records.key_bytes).zip(&numbers) {
                records.fill_key(*number, Presence::Present, key);
            }
            found.clear();
            ends.clear();
        });
        for key in keys.chunks_exact(records.key_bytes) {
            let mut each = |key: &[u8], value: &[u8]| {
                found.extend_from_slice(key);
                found.extend_from_slice(value);
            };
            meter.call(1, || engine.scan(key, length, &mut each))?;
            ends.push(found.len());
            meter.looked_up(1);
        }
        meter.generate(|| {
            let mut start = 0;
            numbers.iter().zip(&ends).try_for_each(|(number, &end)| {
                let entries = &found[std::mem::replace(&mut start, end)..end];
                index.check(records, oracle, *number, length, entries)
            })
        })?;
        left -= now;
    }
    meter.stop();
    Ok(())
}
