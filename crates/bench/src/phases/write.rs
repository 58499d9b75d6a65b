//! `load` and `overwrite`: batches, one behind the other.

use crate::chunk::{Chunk, records_at_a_time};
use crate::meter::Meter;
use crate::pick::Picker;
use crate::workload::Overwrite;
use crate::{Engine, Failure};

use super::World;

/// Every record once, in the order of their numbers.
pub(super) fn load(
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let records = world.plan.workload.records;
    let mut next = 0;
    put_all(records, engine, world, meter, |_| {
        next += 1;
        (next - 1, 0)
    })?;
    world.oracle.written_to(records);
    Ok(())
}

/// New versions.
pub(super) fn overwrite(
    spec: &Overwrite,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let live = world.oracle.live();
    let mut picker = Picker::new(spec.distribution, world.phase_seed, live);
    let operations = world.plan.workload.operations(spec.operations_per_record);
    put_all(operations, engine, world, meter, |world| {
        let number = world.oracle.numbers().start + picker.next(live);
        (number, world.oracle.overwrite(number))
    })
}

fn put_all(
    count: u64,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
    mut next: impl FnMut(&mut World<'_>) -> (u64, u32),
) -> Result<(), Failure> {
    let batch = world.plan.workload.batch;
    let at_a_time = records_at_a_time(batch, world.records.record_bytes());
    let mut chunk = Chunk::new(&world.records, batch);
    let mut left = count;
    meter.start();
    while left > 0 {
        let now = at_a_time.min(left);
        meter.generate(|| chunk.fill(now, || next(world)));
        chunk.put(engine, meter)?;
        left -= now;
    }
    meter.stop();
    world.written = Some((count, meter.elapsed()));
    Ok(())
}
