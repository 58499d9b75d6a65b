//! The clocks and counters of one phase.
//!
//! 1. Between [`Meter::start`] and [`Meter::stop`] time, processor time and bytes count.
//! 2. A call to the engine is timed by itself: from the end of what came before it, or from when it was meant
//!    to start.
//! 3. The generator's work - keys, values, comparing answers - is between calls. It counts into the phase's
//!    time, and is told apart by its processor time.
//!
//! **Invariant:** what is measured comes from the clock that is given; a test brings its own.

use std::time::Duration;

use forebay_env::Clock;
use hdrhistogram::Histogram;

use crate::host::counters::{Counters, Device};
use crate::host::thread_cpu;
use crate::host::threads::Kind;
use crate::report::{Point, Sample};
use crate::{Engine, Failure};

/// Throughput is looked at in slots of this length.
const SLOT: Duration = Duration::from_millis(100);
/// As many slots as a second has.
const SECOND_SLOTS: usize = 10;
/// The curve has half of these points at least, once there are as many: then every other is dropped.
const POINTS_MAX: usize = 200;

/// See the module.
pub(crate) struct Meter<'a> {
    clock: &'a dyn Clock,
    device: &'a Device,
    started: Duration,
    at_start: Counters,
    /// When the last call, or the generator behind it, ended.
    mark: Duration,
    last_completion: Duration,
    /// When the curve's first point is due, and its next, and how far apart points are.
    point_first: Duration,
    point_due: Duration,
    point_every: Duration,
    taken: Taken,
}

/// What a phase came to.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// Records written, read or removed.
    pub(crate) operations: u64,
    /// Of those, keys looked up.
    pub(crate) lookups: u64,
    /// Bytes of keys and values given to the engine to be written.
    pub(crate) user_bytes: u64,
    pub(crate) elapsed: Duration,
    pub(crate) generator: Duration,
    /// Processor time of the thread that the meter was of, where that has ended.
    thread: Duration,
    pub(crate) longest_gap: Duration,
    /// Of calls, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// Of lookups beside other work.
    pub(crate) gets: Option<Gets>,
    pub(crate) counters: Counters,
    pub(crate) throughput_cv: Option<f64>,
    /// Operations completed in each slot of 100 ms.
    pub(crate) slots: Vec<u64>,
    /// How far it had come at moments that are evenly apart, and at the end.
    pub(crate) curve: Vec<Point>,
    pub(crate) samples: Vec<Sample>,
}

/// What single lookups took, apart from the work beside which they were made.
#[derive(Clone, Debug)]
pub(crate) struct Gets {
    /// In nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// Processor time of the calling thread, in nanoseconds.
    pub(crate) cpu: Histogram<u64>,
    /// Empty where the engine does not count them.
    pub(crate) device_reads: Histogram<u64>,
}

impl Gets {
    fn new() -> Result<Self, Failure> {
        let device_reads = Histogram::new(3)?;
        Ok(Self { latency: nanoseconds()?, cpu: nanoseconds()?, device_reads })
    }
}

/// One nanosecond to one hour.
fn nanoseconds() -> Result<Histogram<u64>, Failure> {
    Ok(Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?)
}

impl<'a> Meter<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, device: &'a Device) -> Result<Self, Failure> {
        let taken = Taken {
            operations: 0,
            lookups: 0,
            user_bytes: 0,
            elapsed: Duration::ZERO,
            generator: Duration::ZERO,
            thread: Duration::ZERO,
            longest_gap: Duration::ZERO,
            latency: nanoseconds()?,
            gets: None,
            counters: Counters::default(),
            throughput_cv: None,
            slots: Vec::new(),
            curve: Vec::new(),
            samples: Vec::new(),
        };
        let now = clock.now();
        Ok(Self {
            clock,
            device,
            started: now,
            at_start: Counters::default(),
            mark: now,
            last_completion: now,
            point_first: SLOT,
            point_due: SLOT,
            point_every: SLOT,
            taken,
        })
    }

    /// Begins, or goes on behind a stop.
    pub(crate) fn start(&mut self) {
        self.at_start = Counters::now(self.device);
        self.taken.slots.clear();
        self.taken.curve.clear();
        (self.point_due, self.point_every) = (self.point_first, SLOT);
        self.started = self.clock.now();
        self.mark = self.started;
        self.last_completion = self.started;
    }

    /// Stops.
    pub(crate) fn stop(&mut self) {
        let so_far = self.clock.now() - self.started;
        self.taken.elapsed += so_far;
        let mut counters = Counters::now(self.device).since(&self.at_start);
        if let Some(threads) = &mut counters.threads {
            threads.add(Kind::Writer, std::mem::take(&mut self.taken.thread));
        }
        self.taken.counters = self.taken.counters.plus(&counters);
        if self.taken.slots.iter().any(|slot| *slot > 0) {
            let point = Point::new(so_far.as_secs_f64(), self.done_since_start(), &counters);
            self.taken.curve.push(point);
        }
        self.taken.throughput_cv = coefficient_of_variation(&self.taken.slots);
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// A call of the engine that begins where the last thing ended.
    #[inline]
    pub(crate) fn call<T>(
        &mut self,
        operations: u64,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.call_meant_for(self.mark, operations, work)
    }

    /// A call of the engine that was meant to begin at that time.
    #[inline]
    pub(crate) fn call_meant_for<T>(
        &mut self,
        meant: Duration,
        operations: u64,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let answer = work()?;
        let now = self.clock.now();
        let nanoseconds = now.saturating_sub(meant).as_nanos();
        self.taken.latency.saturating_record(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.taken.longest_gap = self.taken.longest_gap.max(now - self.last_completion);
        let slot = ((now - self.started).as_nanos() / SLOT.as_nanos()) as usize;
        if slot >= self.taken.slots.len() {
            self.taken.slots.resize(slot + 1, 0);
        }
        self.taken.slots[slot] += operations;
        self.taken.operations += operations;
        self.last_completion = now;
        self.mark = now;
        if now - self.started >= self.point_due {
            self.point(now - self.started);
        }
        Ok(answer)
    }

    /// A point of the curve. Looking at counters is no call's time.
    #[cold]
    fn point(&mut self, so_far: Duration) {
        let counters = Counters::now(self.device).since(&self.at_start);
        let point = Point::new(so_far.as_secs_f64(), self.done_since_start(), &counters);
        self.taken.curve.push(point);
        if self.taken.curve.len() >= POINTS_MAX {
            let mut number = 0;
            self.taken.curve.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.point_every *= 2;
        }
        let every = self.point_every.as_nanos();
        let slots = (so_far.as_nanos() / every + 1) * every;
        self.point_due = Duration::from_nanos(u64::try_from(slots).unwrap_or(u64::MAX));
        self.mark = self.clock.now();
    }

    fn done_since_start(&self) -> u64 {
        self.taken.slots.iter().sum()
    }

    /// Operations a second over the last half of them, by the curve; `None` where that is too short.
    pub(crate) fn steady_rate(&self) -> Option<f64> {
        let end = self.taken.curve.last()?;
        let half = self.taken.curve.iter().find(|point| 2 * point.operations >= end.operations)?;
        let (count, seconds) = (end.operations - half.operations, end.seconds - half.seconds);
        (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
    }

    /// A lookup beside the work that the phase measures: it takes of the phase's time, and is counted apart.
    pub(crate) fn lookup(
        &mut self,
        engine: &mut dyn Engine,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let gets = match &mut self.taken.gets {
            Some(gets) => gets,
            none => none.insert(Gets::new()?),
        };
        let (reads, cpu, started) = (engine.device_reads(), thread_cpu(), self.clock.now());
        let found = engine.get(key, value)?;
        let now = self.clock.now();
        let cpu = thread_cpu().saturating_sub(cpu);
        let whole = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        gets.latency.saturating_record(whole(now.saturating_sub(started)));
        gets.cpu.saturating_record(whole(cpu));
        if let Some((now, before)) = engine.device_reads().zip(reads) {
            gets.device_reads.saturating_record(now.saturating_sub(before));
        }
        self.taken.lookups += 1;
        self.mark = self.clock.now();
        self.last_completion = self.mark;
        Ok(found)
    }

    /// This many bytes of keys and values were written.
    pub(crate) fn wrote(&mut self, user_bytes: u64) {
        self.taken.user_bytes += user_bytes;
    }

    /// What another thread did meanwhile, as its own meter has it.
    pub(crate) fn beside(&mut self, other: &Taken) {
        let taken = &mut self.taken;
        taken.latency.add(&other.latency).unwrap_or_else(|_| debug_assert!(false, "bounds are the same"));
        taken.operations += other.operations;
        taken.user_bytes += other.user_bytes;
        taken.generator += other.generator;
        taken.thread += other.thread;
        taken.longest_gap = taken.longest_gap.max(other.longest_gap);
        taken.slots.resize(taken.slots.len().max(other.slots.len()), 0);
        taken.slots.iter_mut().zip(&other.slots).for_each(|(slot, more)| *slot += more);
    }

    /// A meter for another thread. It has no curve: many threads would look at all threads for nobody.
    pub(crate) fn another(&self) -> Result<Self, Failure> {
        Ok(Self { point_first: Duration::MAX, ..Self::new(self.clock, self.device)? })
    }

    /// This many keys were looked up.
    pub(crate) fn looked_up(&mut self, keys: u64) {
        self.taken.lookups += keys;
    }

    /// Work of the generator, waiting for an arrival included.
    #[inline]
    pub(crate) fn generate<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = thread_cpu();
        let made = work();
        self.taken.generator += thread_cpu().saturating_sub(before);
        self.mark = self.clock.now();
        made
    }

    /// Work that is the bench's own: no gap between calls. Gives how long it took, too.
    pub(crate) fn aside<T>(&mut self, work: impl FnOnce() -> T) -> (T, Duration) {
        let before = self.clock.now();
        let made = self.generate(work);
        let took = self.mark - before;
        self.last_completion += took;
        (made, took)
    }

    /// How things stand now.
    pub(crate) fn sample(&mut self, sample: Sample) {
        self.taken.samples.push(sample);
    }

    /// The time that counted until now, between a start and a stop.
    pub(crate) fn so_far(&self) -> Duration {
        self.taken.elapsed + (self.clock.now() - self.started)
    }

    /// The time that counted until the last stop.
    pub(crate) fn elapsed(&self) -> Duration {
        self.taken.elapsed
    }

    pub(crate) fn finish(self) -> Taken {
        self.taken
    }

    /// The same by a thread that was there for this alone, and ends.
    pub(crate) fn finish_thread(mut self) -> Taken {
        self.taken.thread = thread_cpu();
        self.taken
    }
}

impl Taken {
    /// Operations in the slowest second of full slots; `None` where there is none.
    pub(crate) fn slowest_second(&self) -> Option<u64> {
        let (_, full) = self.slots.split_last()?;
        full.windows(SECOND_SLOTS).map(|second| second.iter().sum()).min()
    }

    /// The same of the fastest.
    pub(crate) fn fastest_second(&self) -> Option<u64> {
        let (_, full) = self.slots.split_last()?;
        full.windows(SECOND_SLOTS).map(|second| second.iter().sum()).max()
    }
}

/// Standard deviation by mean of the full slots, which are all but the last; `None` for fewer than two.
fn coefficient_of_variation(slots: &[u64]) -> Option<f64> {
    let full = slots.split_last().map_or(&[][..], |(_, full)| full);
    let mean = full.iter().sum::<u64>() as f64 / full.len() as f64;
    if full.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = full.iter().map(|count| (*count as f64 - mean).powi(2)).sum();
    Some((squares / full.len() as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forebay_env::ManualClock;

    use super::*;

    #[test]
    fn calls_gaps_and_slots_are_counted_on_the_given_clock() {
        let clock = ManualClock::new();
        let device = Device::of(Path::new("no/such/place"));
        let mut meter = Meter::new(&clock, &device).unwrap();
        clock.advance(Duration::from_secs(5));
        meter.start();
        for (microseconds, operations) in [(50_000, 10), (60_000, 10), (250_000, 4), (1_000, 1)] {
            let work = || {
                clock.advance(Duration::from_micros(microseconds));
                Ok(())
            };
            meter.call(operations, work).unwrap();
            // Time between calls is no call's.
            meter.generate(|| clock.advance(Duration::from_micros(1)));
            // And what is aside is no gap.
            let ((), took) = meter.aside(|| clock.advance(Duration::from_micros(5)));
            assert_eq!(took, Duration::from_micros(5));
        }
        meter.stop();
        let taken = meter.finish();
        assert_eq!(taken.elapsed, Duration::from_micros(361_024));
        assert_eq!((taken.operations, taken.latency.len()), (25, 4));
        assert_eq!(taken.longest_gap, Duration::from_micros(250_001));
        // To three digits.
        assert!(taken.latency.max().abs_diff(250_000_000) < 250_000, "{}", taken.latency.max());
        assert!(taken.latency.min().abs_diff(1_000_000) < 1_000, "{}", taken.latency.min());
        // Slots 10, 10, 0 and an unfinished one of 5.
        assert!((taken.throughput_cv.unwrap() - 0.5f64.sqrt()).abs() < 1e-9);
    }

    /// The kernel forgets what a thread took when it ends.
    #[test]
    fn what_writers_beside_each_other_took_is_not_lost() {
        let clock = ManualClock::new();
        let device = Device::of(Path::new("no/such/place"));
        let mut meter = Meter::new(&clock, &device).unwrap();
        meter.start();
        let spins = |other: Meter<'_>| {
            while thread_cpu() < Duration::from_millis(50) {}
            other.finish_thread()
        };
        let takens: Vec<Taken> = std::thread::scope(|scope| {
            let others = [meter.another().unwrap(), meter.another().unwrap()];
            others.map(|other| scope.spawn(|| spins(other))).map(|thread| thread.join().unwrap()).into()
        });
        takens.iter().for_each(|taken| meter.beside(taken));
        meter.stop();
        let counters = meter.finish().counters;
        assert!(counters.threads.unwrap().of(Kind::Writer) >= Duration::from_millis(100));
        assert!(counters.machine.unwrap().busy_share().is_some());
    }

    #[test]
    fn a_stop_leaves_out_what_lies_behind_it() {
        let clock = ManualClock::new();
        let device = Device::of(Path::new("no/such/place"));
        let mut meter = Meter::new(&clock, &device).unwrap();
        for _ in 0..3 {
            meter.start();
            clock.advance(Duration::from_millis(2));
            meter.stop();
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(meter.finish().elapsed, Duration::from_millis(6));
    }
}
