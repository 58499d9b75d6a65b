//! `reopen`: a process that loads is killed, and the database opened.
//!
//! 1. Another process loads, and tells how many records are acknowledged.
//! 2. When enough are, it is killed, in the midst of loading.
//! 3. Opening is timed. The last records that were acknowledged, and some of the older ones, are looked up.
//! 4. The next process goes on from there, in the same database.

use std::io::{self, Read, Write};
use std::time::Duration;

use forebay_env::{Clock, RealClock, Rng};

use crate::chunk::{Chunk, records_at_a_time};
use crate::data::RECORDS_MAX;
use crate::meter::Meter;
use crate::plan::{Plan, Role};
use crate::workload::Reopen;
use crate::{Engine, Failure, Kind};

use super::queue::check_each;
use super::{World, close};

/// How often a loading process tells what is acknowledged.
const TELL_EVERY: Duration = Duration::from_millis(1);

pub(super) fn run(
    spec: &Reopen,
    engine: &mut Option<Box<dyn Engine>>,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let records = world.plan.workload.records;
    let mut rng = Rng::new(world.phase_seed);
    for kill in 1..=spec.kills {
        close(engine)?;
        let from = world.oracle.numbers().end;
        let acknowledged = load_and_kill(world, from, (records * kill / spec.kills).max(from + 1))?;
        meter.start();
        let mut open = meter.call(1, || world.open())?;
        meter.stop();
        world.oracle.written_to(acknowledged);
        let newest = acknowledged.saturating_sub(spec.checked / 2)..acknowledged;
        let older = (0..spec.checked / 2).map(|_| rng.below(acknowledged));
        check_each(newest.chain(older).map(|number| world.oracle.expected(number)), &mut *open, world)?;
        *engine = Some(open);
    }
    Ok(())
}

/// Loads in another process from record `from` on, kills it when `target` are acknowledged, and gives how
/// many were.
fn load_and_kill(world: &World<'_>, from: u64, target: u64) -> Result<u64, Failure> {
    let plan = Plan { role: Role::LoadFrom(from), ..world.plan.clone() };
    let mut child = world.program.start(&plan)?;
    let mut acknowledged = from;
    let mut told = [0; 8];
    while acknowledged < target {
        if let Err(error) = child.output()?.read_exact(&mut told) {
            let status = child.wait()?;
            return Err(format!("the loading process ended early ({error}): {status}").into());
        }
        acknowledged = u64::from_le_bytes(told);
    }
    child.kill()?;
    Ok(acknowledged)
}

/// The process that is killed: puts records from `from` on, and writes to standard output how many are
/// acknowledged. Ends by itself only when nobody listens any more.
pub(crate) fn load_until_killed(kind: &dyn Kind, plan: &Plan, from: u64) -> Result<(), Failure> {
    let mut engine = kind.open(&plan.dir, &plan.setup())?;
    let (batch, records) = (plan.workload.batch, plan.records());
    let at_a_time = records_at_a_time(batch, records.record_bytes());
    let mut chunk = Chunk::new(&records, batch);
    let clock = RealClock::new();
    let (mut next, mut acknowledged, mut told) = (from, from, Duration::ZERO);
    let mut out = io::stdout().lock();
    while next + at_a_time < RECORDS_MAX {
        chunk.fill(at_a_time, || {
            next += 1;
            (next - 1, 0)
        });
        for batch in chunk.batches() {
            engine.put(batch)?;
            acknowledged += batch.len() as u64;
            if clock.now() >= told + TELL_EVERY {
                out.write_all(&acknowledged.to_le_bytes())?;
                out.flush()?;
                told = clock.now();
            }
        }
    }
    Ok(())
}
