//! `transact`: transactions of several threads, each of which reads a few keys and adds one to the number of each. At the
//! end each key must have as many as were committed: an update that is lost shows.
//!
//! Keys are none of those that are loaded, and each phase has keys of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_env::Rng;

use crate::answers::WrongAnswer;
use crate::data::{Presence, Records};
use crate::meter::Meter;
use crate::workload::Transact;
use crate::{Engine, Failure, Transactor};

use super::World;

pub(super) fn run(
    spec: &Transact,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let (records, first) = (world.records.clone(), world.transacted_keys);
    let wanted = world.plan.workload.operations(spec.operations_per_record);
    let stop = spec.seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    let (begun, done, tried) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let added: Vec<AtomicU64> = (0..spec.among).map(|_| AtomicU64::new(0)).collect();
    let transact = |mut transactor: Box<dyn Transactor + '_>, mut meter: Meter<'_>, seed: u64| {
        let (mut rng, mut numbers) = (Rng::new(seed), vec![0; spec.keys as usize]);
        let mut keys = vec![0; numbers.len() * records.key_bytes];
        let mut change = |old: Option<&[u8]>, new: &mut Vec<u8>| value(&records, number(old) + 1, new);
        meter.start();
        while stop.is_none_or(|stop| meter.now() < stop) && begun.fetch_add(1, Ordering::Relaxed) < wanted {
            meter.generate(|| {
                for (key, number) in keys.chunks_exact_mut(records.key_bytes).zip(&mut numbers) {
                    *number = rng.below(spec.among);
                    records.fill_key(first + *number, Presence::Absent, key);
                }
            });
            let tries = meter.call(1, || transactor.transact(&keys, records.key_bytes, &mut change))?;
            meter.wrote(spec.keys * records.record_bytes() as u64);
            tried.fetch_add(tries, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
            for &number in &numbers {
                added[number as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok::<_, Failure>(meter.finish_thread())
    };
    let threads = (0..spec.threads).map(|_| engine.transactor().zip(meter.another().ok()));
    let threads: Option<Vec<_>> = threads.collect();
    let threads = threads.ok_or("it has no transactions")?;
    let phase_seed = world.phase_seed;
    meter.start();
    let taken: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let threads = threads.into_iter().zip(1..).map(|((transactor, meter), thread)| {
            let seed = phase_seed.wrapping_mul(31).wrapping_add(thread);
            let transact = &transact;
            scope.spawn(move || transact(transactor, meter, seed))
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|taken| taken.unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    });
    taken?.iter().for_each(|taken| meter.beside(taken));
    meter.stop();
    world.transacted_keys += spec.among;
    world.tries_per_operation = Some(tried.into_inner() as f64 / done.into_inner().max(1) as f64);
    let added: Vec<u64> = added.into_iter().map(AtomicU64::into_inner).collect();
    check(&records, first, &added, engine)
}

/// Keys from the first on must have these numbers.
fn check(records: &Records, first: u64, added: &[u64], engine: &mut dyn Engine) -> Result<(), Failure> {
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for (key, &added) in (first..).zip(added) {
        let key = records.key(key, Presence::Absent);
        found.clear();
        let is_there = engine.get(&key, &mut found)?;
        value(records, added, &mut expected);
        let expected = (added > 0).then_some(&expected[..]);
        let found = is_there.then_some(&found[..]);
        if expected != found {
            return Err(Box::new(WrongAnswer::new(&key, expected, found)));
        }
    }
    Ok(())
}

/// The value that stands for a number.
fn value(records: &Records, number: u64, value: &mut Vec<u8>) {
    value.clear();
    value.extend_from_slice(&number.to_le_bytes());
    value.resize(records.value_bytes, 0);
}

fn number(value: Option<&[u8]>) -> u64 {
    value.and_then(|value| value.first_chunk()).map_or(0, |number| u64::from_le_bytes(*number))
}
