//! `grow`: a table that is read at one size after the other. Each step loads a part of the records and drains; then the
//! cache is emptied, and single ranges are read while nothing else goes on.

use forebay_env::Rng;

use crate::data::Presence;
use crate::meter::Meter;
use crate::workload::Grow;
use crate::{Engine, Failure};

use super::scan_index::ScanIndex;
use super::{World, cold, write};

pub(super) fn run(
    spec: &Grow,
    engine: &mut Option<Box<dyn Engine>>,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let records = world.plan.workload.records;
    let mut rng = Rng::new(world.phase_seed);
    for step in 1..=spec.steps {
        let Some(open) = engine.as_deref_mut() else { return Ok(()) };
        write::load_to(records * step / spec.steps, 0, open, world, meter)?;
        meter.start();
        meter.call(0, || open.drain())?;
        meter.stop();
        cold(engine, world, meter)?;
        let Some(open) = engine.as_deref_mut() else { return Ok(()) };
        let index = ScanIndex::new(&world.records, world.oracle.numbers());
        meter.start();
        let range_us = ranges(spec, &mut rng, &index, open, world)?;
        world.sample(world.oracle.live(), Some(range_us), open, meter);
        meter.stop();
    }
    Ok(())
}

/// Reads ranges; gives the time of one, in microseconds.
fn ranges(
    spec: &Grow,
    rng: &mut Rng,
    index: &ScanIndex,
    engine: &mut dyn Engine,
    world: &World<'_>,
) -> Result<f64, Failure> {
    let (records, oracle, length) = (&world.records, &world.oracle, spec.length as usize);
    let (mut found, mut seconds) = (Vec::new(), 0.0);
    for _ in 0..spec.ranges {
        let number = oracle.numbers().start + rng.below(oracle.live());
        let key = records.key(number, Presence::Present);
        found.clear();
        let mut each = |key: &[u8], value: &[u8]| {
            found.extend_from_slice(key);
            found.extend_from_slice(value);
        };
        let started = world.clock.now();
        engine.scan(&key, length, &mut each)?;
        seconds += (world.clock.now() - started).as_secs_f64();
        index.check(records, oracle, number, length, &found)?;
    }
    Ok(seconds * 1e6 / spec.ranges as f64)
}
