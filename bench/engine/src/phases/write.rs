//! `load`, `overwrite` and `delete`: batches, one behind the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::chunk::{Chunk, records_at_a_time};
use crate::data::Presence;
use crate::meter::Meter;
use crate::pick::Picker;
use crate::workload::{Delete, Overwrite};
use crate::{Engine, Failure, Writer};

use super::World;

/// Records that one of several writers takes at a time where the load has a bound in seconds.
const BOUND_RECORDS: u64 = 512;

/// Every record once, in the order of their numbers.
pub(super) fn load(
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let (records, samples) = (world.plan.workload.records, world.plan.workload.samples);
    if world.plan.workload.writers > 1 {
        return load_beside(engine, world, meter);
    }
    load_to(records, samples, engine, world, meter)
}

/// Every record once, by several writers: each takes the next few thousand numbers when it is through with its last.
fn load_beside(engine: &mut dyn Engine, world: &mut World<'_>, meter: &mut Meter<'_>) -> Result<(), Failure> {
    let workload = &world.plan.workload;
    let (batch, records) = (workload.batch, &world.records);
    let at_a_time = match workload.load_seconds_max {
        // The time is looked at between them.
        Some(_) => BOUND_RECORDS.next_multiple_of(batch),
        None => records_at_a_time(batch, records.record_bytes()),
    };
    let next = AtomicU64::new(0);
    let stop = workload.load_seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    let load = |mut writer: Box<dyn Writer + '_>, mut meter: Meter<'_>| {
        let mut chunk = Chunk::new(records, batch);
        meter.start();
        // What is taken is written, so that nothing is missing below what is taken next.
        while stop.is_none_or(|stop| meter.now() < stop) {
            let start = next.fetch_add(at_a_time, Ordering::Relaxed);
            if start >= workload.records {
                break;
            }
            let mut numbers = start..workload.records.min(start + at_a_time);
            let count = numbers.end - numbers.start;
            meter.generate(|| chunk.fill(count, || (numbers.next().unwrap_or_default(), 0)));
            for batch in chunk.batches() {
                meter.call(batch.len() as u64, || writer.put(batch))?;
                meter.wrote(batch.bytes.len() as u64);
            }
        }
        Ok::<_, Failure>(meter.finish_thread())
    };
    let writers = (0..workload.writers).map(|_| engine.writer().zip(meter.another().ok()));
    let writers: Option<Vec<_>> = writers.collect();
    let writers = writers.ok_or("it takes one writer at a time: leave `writers` out")?;
    meter.start();
    let taken: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            writers.into_iter().map(|(writer, meter)| scope.spawn(|| load(writer, meter))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a writer panicked".into())))
            .collect()
    });
    taken?.iter().for_each(|taken| meter.beside(taken));
    meter.stop();
    let count = workload.records.min(next.into_inner());
    world.written = Some((count, meter.elapsed()));
    world.oracle.written_to(count);
    Ok(())
}

/// Records up to this number, the engine being looked at this many times.
pub(super) fn load_to(
    end: u64,
    samples: u64,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let mut next = world.oracle.numbers().end;
    let seconds_max = world.plan.workload.load_seconds_max;
    let first = next;
    let done = put_all(
        Puts { count: end - next, samples, seconds_max },
        |done| done,
        engine,
        world,
        meter,
        |_| {
            next += 1;
            (next - 1, 0)
        },
    )?;
    world.oracle.written_to(first + done);
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
    let (workload, records) = (&world.plan.workload, world.live());
    let count = workload.operations(spec.operations_per_record);
    put_all(
        Puts { count, samples: workload.samples, seconds_max: spec.seconds_max },
        |_| records,
        engine,
        world,
        meter,
        |world| {
            let number = world.oracle.numbers().start + picker.next(live);
            (number, world.oracle.overwrite(number))
        },
    )
    .map(drop)
}

/// This many records, unless it takes longer; the engine is looked at this many times.
struct Puts {
    count: u64,
    samples: u64,
    seconds_max: Option<f64>,
}

/// `there` tells how many records there are when this many are put. Gives how many were put.
fn put_all(
    Puts { count, samples, seconds_max }: Puts,
    there: impl Fn(u64) -> u64,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
    mut next: impl FnMut(&mut World<'_>) -> (u64, u32),
) -> Result<u64, Failure> {
    let batch = world.plan.workload.batch;
    let at_a_time = records_at_a_time(batch, world.records.record_bytes());
    let mut chunk = Chunk::new(&world.records, batch);
    let (mut done, mut sampled) = (0, 0);
    meter.start();
    let stop = seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    while done < count && stop.is_none_or(|stop| meter.now() < stop) {
        let now = at_a_time.min(count - done);
        meter.generate(|| chunk.fill(now, || next(world)));
        chunk.put(engine, meter)?;
        done += now;
        if done * samples >= (sampled + 1) * count {
            sampled = done * samples / count;
            world.sample(there(done), None, engine, meter);
        }
    }
    meter.stop();
    world.written = Some((done, meter.elapsed()));
    world.steady_rate = meter.steady_rate();
    Ok(done)
}

/// The records in the midst, one by one.
pub(super) fn delete(
    spec: &Delete,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let (records, batch) = (&world.records, world.plan.workload.batch);
    let (numbers, live) = (world.oracle.numbers(), world.oracle.live());
    let removed = (live as f64 * spec.share) as u64;
    let hole = numbers.start + (live - removed) / 2..numbers.start + (live - removed) / 2 + removed;
    let mut keys = Vec::new();
    meter.start();
    let mut next = hole.start;
    while next < hole.end {
        let count = batch.min(hole.end - next);
        meter.generate(|| {
            keys.resize(count as usize * records.key_bytes, 0);
            for (key, number) in keys.chunks_exact_mut(records.key_bytes).zip(next..) {
                records.fill_key(number, Presence::Present, key);
            }
        });
        meter.call(count, || engine.delete(&keys, records.key_bytes))?;
        meter.wrote(keys.len() as u64);
        next += count;
    }
    meter.stop();
    world.oracle.removed(hole);
    Ok(())
}
