//! What workloads do, one file a kind of work. A phase draws keys from the seed, calls the engine under the
//! meter, and compares what it answers.

mod count;
mod get;
mod grow;
mod mixed;
mod open_loop;
mod queue;
mod range;
mod reopen;
mod scan;
mod scan_index;
mod transact;
mod write;

pub(crate) use reopen::load_until_killed;

use std::time::Duration;

use forebay_env::Clock;

use crate::counts::Counts;
use crate::data::Records;
use crate::host::cache::{self, CacheDrop};
use crate::host::disk;
use crate::launch::Program;
use crate::meter::Meter;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::report::{Sample, ratio};
use crate::workload::{Phase, Wait};
use crate::{Engine, Failure, Kind, Setup, pause};

/// What phases share.
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) program: &'a Program<'a>,
    pub(crate) kind: &'a dyn Kind,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) setup: Setup,
    pub(crate) records: Records,
    pub(crate) oracle: Oracle,
    /// The same where values are counts.
    pub(crate) counts: Counts,
    /// For what the current phase draws.
    pub(crate) phase_seed: u64,
    /// Records of the last load or overwrite, and how long they took with the debt they left, if that was
    /// drained.
    pub(crate) written: Option<(u64, Duration)>,
    /// Records a second over the last half of that load or overwrite.
    pub(crate) steady_rate: Option<f64>,
    /// How many keys phases of transactions have had.
    pub(crate) transacted_keys: u64,
    /// How often a transaction of the current phase was tried, on average.
    pub(crate) tries_per_operation: Option<f64>,
    /// How the page cache was last emptied.
    pub(crate) cache_dropped: Option<CacheDrop>,
}

impl World<'_> {
    /// How many records there are.
    pub(crate) fn live(&self) -> u64 {
        self.oracle.live().max(self.counts.keys())
    }

    fn open(&self) -> Result<Box<dyn Engine>, Failure> {
        self.kind.open(&self.plan.dir, &self.setup)
    }

    /// How things stand with this many records, while the meter runs. Gives how long it took to look.
    fn sample(
        &self,
        records: u64,
        range_us: Option<f64>,
        engine: &dyn Engine,
        meter: &mut Meter<'_>,
    ) -> Duration {
        let seconds = meter.so_far().as_secs_f64();
        let data_bytes = (records * self.records.record_bytes() as u64) as f64;
        let (sample, took) = meter.aside(|| {
            let (seen, disk_bytes) = (engine.observe(), disk::used_bytes(&self.plan.dir));
            Sample {
                seconds,
                records,
                disk_bytes,
                space_amplification: ratio(disk_bytes as f64, data_bytes),
                table_bytes_written: seen.map(|seen| seen.table_bytes_written),
                table_bytes_read: seen.map(|seen| seen.table_bytes_read),
                table_bytes: seen.map(|seen| seen.table_bytes),
                table_live_bytes: seen.map(|seen| seen.table_live_bytes),
                table_limit_bytes: seen.and_then(|seen| seen.table_limit_bytes),
                lists_per_path: seen.map(|seen| seen.lists_per_path),
                range_us,
            }
        });
        meter.sample(sample);
        took
    }
}

/// Does the phase. `engine` is open before and behind it.
pub(crate) fn run(
    phase: &Phase,
    engine: &mut Option<Box<dyn Engine>>,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    if engine.is_none() {
        *engine = Some(world.open()?);
    }
    let Some(open) = engine.as_deref_mut() else { return Ok(()) };
    match phase {
        Phase::Load if world.setup.adds => count::load(open, world, meter),
        Phase::Load => write::load(open, world, meter),
        Phase::Grow(spec) => grow::run(spec, engine, world, meter),
        Phase::Delete(spec) => write::delete(spec, open, world, meter),
        Phase::Scan => scan::run(open, world, meter),
        Phase::Overwrite(spec) => write::overwrite(spec, open, world, meter),
        Phase::Mixed(spec) => mixed::run(spec, open, world, meter),
        Phase::Get(spec) => get::run(spec, open, world, meter),
        Phase::Range(spec) => range::run(spec, open, world, meter),
        Phase::Queue(spec) => queue::run(spec, open, world, meter),
        Phase::OpenLoop(spec) => open_loop::run(spec, open, world, meter),
        Phase::Count(spec) => count::run(spec, open, world, meter),
        Phase::Hot(spec) => count::run_hot(spec, open, world, meter),
        Phase::Finalize => count::finalize(open, world, meter),
        Phase::Reopen(spec) => reopen::run(spec, engine, world, meter),
        Phase::Transact(spec) => transact::run(spec, open, world, meter),
        Phase::Drain => drain(open, world, meter),
        Phase::Wait(spec) => wait(spec, world, meter),
        Phase::Cold => cold(engine, world, meter),
    }
}

fn drain(engine: &mut dyn Engine, world: &mut World<'_>, meter: &mut Meter<'_>) -> Result<(), Failure> {
    meter.start();
    meter.call(0, || engine.drain())?;
    if world.plan.workload.samples > 0 {
        world.sample(world.live(), None, engine, meter);
    }
    meter.stop();
    world.written = world.written.map(|(records, elapsed)| (records, elapsed + meter.elapsed()));
    Ok(())
}

fn wait(spec: &Wait, world: &World<'_>, meter: &mut Meter<'_>) -> Result<(), Failure> {
    meter.start();
    let then = meter.now() + Duration::from_secs_f64(spec.seconds);
    meter.generate(|| pause::until(world.clock, then));
    meter.stop();
    Ok(())
}

fn cold(
    engine: &mut Option<Box<dyn Engine>>,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    close(engine)?;
    world.cache_dropped = Some(cache::empty(&world.plan.dir, world.plan.cache_drop));
    meter.start();
    *engine = Some(meter.call(0, || world.open())?);
    meter.stop();
    Ok(())
}

pub(crate) fn close(engine: &mut Option<Box<dyn Engine>>) -> Result<(), Failure> {
    engine.take().map_or(Ok(()), |engine| engine.close())
}
