//! `count`, `hot` and `finalize`: adds to counts, a batch at a time, with lookups between the batches; and everything
//! there is, at the end. Each add is of one.

use std::time::Duration;

use crate::chunk::{Chunk, records_at_a_time};
use crate::data::Presence;
use crate::meter::Meter;
use crate::pick::{Distribution, Picker};
use crate::workload::{Count, Hot};
use crate::{Engine, Failure};

use super::World;

/// What is added.
struct Adds {
    distribution: Distribution,
    keys: u64,
    count: u64,
    adds_per_get: u64,
    seconds_max: Option<f64>,
}

pub(super) fn run(
    spec: &Count,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let Count { distribution, operations_per_record, adds_per_get, seconds_max } = *spec;
    let workload = &world.plan.workload;
    let (keys, count) = (workload.records, workload.operations(operations_per_record));
    add_all(&Adds { distribution, keys, count, adds_per_get, seconds_max }, engine, world, meter)
}

pub(super) fn run_hot(
    spec: &Hot,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let Hot { keys, adds_per_get, seconds_max } = *spec;
    let (distribution, count) = (Distribution::Uniform, keys * world.plan.workload.records);
    add_all(&Adds { distribution, keys, count, adds_per_get, seconds_max }, engine, world, meter)
}

fn add_all(
    adds: &Adds,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let batch = world.plan.workload.batch;
    let at_a_time = records_at_a_time(batch, world.records.record_bytes());
    let mut picker = Picker::new(adds.distribution, world.phase_seed, adds.keys);
    let mut asked = Picker::new(adds.distribution, !world.phase_seed, adds.keys);
    let mut chunk = Chunk::new(&world.records, batch);
    let (mut numbers, mut left, mut until_get) = (Vec::new(), adds.count, adds.adds_per_get);
    let (mut key, mut value) = (vec![0; world.records.key_bytes], Vec::new());
    world.counts.reserve(adds.keys);
    meter.start();
    let stop = adds.seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    while left > 0 && stop.is_none_or(|stop| meter.now() < stop) {
        let now = at_a_time.min(left);
        meter.generate(|| {
            numbers.clear();
            numbers.extend((0..now).map(|_| picker.next(adds.keys)));
            chunk.fill_counts(&numbers);
        });
        for (batch, numbers) in chunk.batches().zip(numbers.chunks(batch as usize)) {
            meter.call(batch.len() as u64, || engine.add(batch))?;
            meter.generate(|| numbers.iter().for_each(|&number| world.counts.add(number)));
            if adds.adds_per_get == 0 {
                continue;
            }
            // One lookup as soon as this many were added, several behind a batch that is longer.
            let mut added = batch.len() as u64;
            while added >= until_get {
                added -= until_get;
                until_get = adds.adds_per_get;
                let number = asked.next(adds.keys);
                world.records.fill_key(number, Presence::Present, &mut key);
                value.clear();
                let found = meter.lookup(engine, &key, &mut value)?;
                let found = found.then_some(&value[..]);
                meter.generate(|| world.counts.check(&world.records, number, found))?;
            }
            until_get -= added;
        }
        meter.wrote(now * world.records.record_bytes() as u64);
        left -= now;
    }
    meter.stop();
    Ok(())
}

/// A count of one for every key.
pub(super) fn load(
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let (records, batch) = (world.plan.workload.records, world.plan.workload.batch);
    let at_a_time = records_at_a_time(batch, world.records.record_bytes());
    let mut chunk = Chunk::new(&world.records, batch);
    world.counts.reserve(records);
    meter.start();
    let mut numbers = Vec::new();
    for first in (0..records).step_by(at_a_time as usize) {
        meter.generate(|| {
            numbers.clear();
            numbers.extend(first..records.min(first + at_a_time));
            chunk.fill_counts(&numbers);
            numbers.iter().for_each(|&number| world.counts.add(number));
        });
        chunk.put(engine, meter)?;
    }
    meter.stop();
    Ok(())
}

/// Everything once. Comparing is part of the time, as it cannot be told from showing.
pub(super) fn finalize(
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let mut checking = world.counts.checking(&world.records);
    meter.start();
    meter.call(world.counts.keys(), || {
        let mut outcome = Ok(());
        engine.for_each(&mut |key, value| {
            if outcome.is_ok() {
                outcome = checking.entry(key, value);
            }
        })?;
        outcome
    })?;
    meter.stop();
    checking.finish()?;
    Ok(())
}
