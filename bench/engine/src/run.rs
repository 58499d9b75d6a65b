//! One run: every phase of a workload on one engine, measured.

use forebay_env::Clock;

use crate::counts::Counts;
use crate::host::counters::{Counters, Device};
use crate::host::{self, Machine, cgroup, disk, memory};
use crate::launch::Program;
use crate::meter::{Meter, Taken};
use crate::oracle::Oracle;
use crate::phases::{self, World};
use crate::plan::{CgroupState, Plan};
use crate::report::{self, ByThread, Latency, Line, rate, ratio};
use crate::{Engine, Failure, Kind};

/// What grew since the last drain, or the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct SinceDrain {
    user_bytes: u64,
    /// The kernel's counter then.
    written_before: Option<u64>,
}

/// Runs the plan, and tells `emit` of the setup and of each phase.
pub(crate) fn run(
    program: &Program<'_>,
    kind: &dyn Kind,
    plan: &Plan,
    clock: &dyn Clock,
    emit: &mut dyn FnMut(Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    emit(Line::Setup(setup_of(kind, plan)?))?;
    let device = Device::of(&plan.dir);
    let mut world = World {
        plan,
        program,
        kind,
        clock,
        setup: plan.setup(),
        records: plan.records(),
        oracle: Oracle::default(),
        counts: Counts::default(),
        phase_seed: plan.seed,
        written: None,
        steady_rate: None,
        transacted_keys: 0,
        tries_per_operation: None,
        cache_dropped: None,
    };
    let mut engine = None;
    let mut since_drain = SinceDrain { user_bytes: 0, written_before: written(&Counters::now(&device)) };
    let phases = plan.workload.phases.iter().zip(plan.workload.phase_names());
    for (number, (phase, name)) in phases.enumerate() {
        world.tries_per_operation = None;
        world.phase_seed = plan.seed.rotate_left(32) ^ number as u64;
        let mut meter = Meter::new(clock, &device)?;
        memory::reset_peak();
        if let CgroupState::Limited { peak_file, .. } = &plan.cgroup {
            cgroup::reset_peak(peak_file);
        }
        let reads_before = device_reads(&engine);
        phases::run(phase, &mut engine, &mut world, &mut meter)?;
        let taken = meter.finish();
        since_drain.user_bytes += taken.user_bytes;
        let mut result = measures(&world, name, &taken, &engine);
        result.device_reads_per_get = device_reads(&engine).and_then(|reads| {
            ratio(reads.saturating_sub(reads_before.unwrap_or(0)) as f64, taken.lookups as f64)
        });
        if matches!(phase, crate::workload::Phase::Drain) {
            let now = written(&Counters::now(&device));
            let bytes = now.zip(since_drain.written_before).map(|(now, before)| now.saturating_sub(before));
            result.write_amplification_total =
                bytes.and_then(|bytes| ratio(bytes as f64, since_drain.user_bytes as f64));
            since_drain = SinceDrain { user_bytes: 0, written_before: now };
        }
        emit(Line::Phase(Box::new(result)))?;
    }
    phases::close(&mut engine)
}

fn setup_of(kind: &dyn Kind, plan: &Plan) -> Result<report::Setup, Failure> {
    let setup = plan.setup();
    Ok(report::Setup {
        engine: kind.name().into(),
        version: kind.version(),
        workload: plan.workload.name.clone(),
        repetition: plan.repetition,
        bench_version: env!("CARGO_PKG_VERSION").into(),
        seed: plan.seed,
        dir: plan.dir.clone(),
        records: plan.workload.records,
        batch: plan.workload.batch,
        machine: Machine::here(),
        cgroup: plan.cgroup.clone(),
        options: kind.options(&setup),
        setup: serde_json::to_value(&setup)?,
    })
}

fn measures(
    world: &World<'_>,
    phase: String,
    taken: &Taken,
    engine: &Option<Box<dyn Engine>>,
) -> report::Phase {
    let plan = world.plan;
    let Taken { operations, lookups, user_bytes, elapsed, .. } = *taken;
    let (process, device) = (taken.counters.process, taken.counters.device);
    let live = world.live();
    let a_get = |count: u64| ratio(count as f64, lookups as f64);
    let index_memory_bytes = engine.as_ref().and_then(|engine| engine.index_memory_bytes());
    let disk_bytes = disk::used_bytes(&plan.dir);
    report::Phase {
        engine: world.kind.name().into(),
        version: world.kind.version(),
        workload: plan.workload.name.clone(),
        phase,
        repetition: plan.repetition,
        operations,
        records: live,
        seconds: elapsed.as_secs_f64(),
        operations_per_second: rate(operations, elapsed),
        cpu_seconds: taken.counters.cpu.as_secs_f64(),
        cpu_seconds_per_million: ratio(taken.counters.cpu.as_secs_f64() * 1e6, operations as f64),
        generator_cpu_seconds: taken.generator.as_secs_f64(),
        cpu_seconds_by_thread: ByThread::of(&taken.counters),
        processor_share: ratio(
            taken.counters.cpu.as_secs_f64(),
            elapsed.as_secs_f64() * host::cores() as f64,
        ),
        machine_busy_share: taken.counters.machine.and_then(|machine| machine.busy_share()),
        latency_us: Latency::of(&taken.latency),
        gets: taken.gets.as_ref().map(report::Gets::of),
        longest_gap_ms: taken.longest_gap.as_secs_f64() * 1e3,
        throughput_cv: taken.throughput_cv,
        operations_per_100_ms: taken.slots.clone(),
        slowest_second_operations: taken.slowest_second(),
        fastest_second_operations: taken.fastest_second(),
        // Of what writes: nobody asks how evenly lookups went.
        curve: if user_bytes > 0 { taken.curve.clone() } else { Vec::new() },
        user_bytes,
        write_bytes: process.map(|io| io.write_bytes),
        read_bytes: process.map(|io| io.read_bytes),
        device_write_bytes: device.map(|io| io.write_bytes),
        device_read_bytes: device.map(|io| io.read_bytes),
        write_amplification: process.and_then(|io| ratio(io.write_bytes as f64, user_bytes as f64)),
        write_amplification_total: None,
        disk_bytes,
        space_amplification: ratio(disk_bytes as f64, (live * world.records.record_bytes() as u64) as f64),
        device_reads_per_get: None,
        kernel_reads_per_get: process.and_then(|io| a_get(io.read_bytes / 4096)),
        block_reads_per_get: device.and_then(|io| a_get(io.reads)),
        index_memory_bytes_per_key: index_memory_bytes.and_then(|bytes| ratio(bytes as f64, live as f64)),
        lists_per_path: engine.as_ref().and_then(|engine| engine.lists_per_path()),
        peak_memory_bytes: memory::peak_bytes(),
        cgroup_peak_bytes: match &plan.cgroup {
            CgroupState::Limited { peak_file, .. } => cgroup::peak_bytes(peak_file),
            CgroupState::Off | CgroupState::Unavailable(_) => None,
        },
        tries_per_operation: world.tries_per_operation,
        page_cache_dropped: world.cache_dropped,
        wrong_answers: 0,
        samples: taken.samples.clone(),
    }
}

fn written(counters: &Counters) -> Option<u64> {
    counters.process.map(|io| io.write_bytes)
}

fn device_reads(engine: &Option<Box<dyn Engine>>) -> Option<u64> {
    engine.as_ref().and_then(|engine| engine.device_reads())
}
