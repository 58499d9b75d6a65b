//! `queue`: puts at the head, gets and deletes at the tail, so that nearly everything written is deleted soon.

use crate::answers::Expected;
use crate::chunk::Chunk;
use crate::meter::Meter;
use crate::workload::Queue;
use crate::{Engine, Failure};

use super::World;
use super::get::Lookups;

/// How many records are looked up at the end, both of those that are left and of those that are gone.
const CHECKED_AT_END: u64 = 1000;

pub(super) fn run(
    spec: &Queue,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let workload = &world.plan.workload;
    let end = workload.operations(spec.operations_per_record);
    let backlog = workload.operations(spec.backlog_per_record);
    let mut chunk = Chunk::new(&world.records, workload.batch);
    let mut lookups = Lookups::new(&world.records, workload.batch as usize);
    meter.start();
    while world.oracle.numbers().end < end {
        let head = world.oracle.numbers().end;
        let count = workload.batch.min(end - head);
        let mut numbers = head..;
        meter.generate(|| chunk.fill(count, || (numbers.next().unwrap_or(head), 0)));
        chunk.put(engine, meter)?;
        world.oracle.written_to(head + count);
        if world.oracle.live() > backlog {
            take(count, &mut lookups, engine, world, meter)?;
        }
    }
    meter.stop();
    check_ends(engine, world)
}

/// Gets and deletes the oldest.
fn take(
    count: u64,
    lookups: &mut Lookups,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let tail = world.oracle.numbers().start;
    let mut numbers = tail..;
    let mut next = || world.oracle.expected(numbers.next().unwrap_or(tail));
    meter.generate(|| lookups.fill(count, &mut next));
    lookups.ask(engine, meter)?;
    let (keys, key_bytes) = (lookups.keys(), world.records.key_bytes);
    meter.call(count, || engine.delete(keys, key_bytes))?;
    meter.wrote(keys.len() as u64);
    meter.generate(|| lookups.check())?;
    world.oracle.removed_to(tail + count);
    Ok(())
}

/// What is left has to be there, and what was deleted gone.
fn check_ends(engine: &mut dyn Engine, world: &mut World<'_>) -> Result<(), Failure> {
    let numbers = world.oracle.numbers();
    let from = numbers.start.saturating_sub(CHECKED_AT_END);
    let to = numbers.end.min(numbers.start + CHECKED_AT_END);
    check_each((from..to).map(|number| world.oracle.expected(number)), engine, world)
}

/// Looks keys up outside of any measure.
pub(super) fn check_each(
    expected: impl Iterator<Item = Expected>,
    engine: &mut dyn Engine,
    world: &World<'_>,
) -> Result<(), Failure> {
    let (mut value, mut scratch) = (Vec::new(), Vec::new());
    for expected in expected {
        let (number, presence) = expected.key();
        value.clear();
        let found = engine.get(&world.records.key(number, presence), &mut value)?;
        crate::answers::check(&world.records, expected, found.then_some(&value[..]), &mut scratch)?;
    }
    Ok(())
}
