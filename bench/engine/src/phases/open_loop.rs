//! `open_loop`: batches arrive when they arrive. A batch that waits because the engine is still at the one
//! before it waits in its latency, which counts from when it was meant to start. What the bench takes to look at the
//! engine is nobody's wait: all that is still to come is meant for this much later.

use std::time::Duration;

use forebay_env::Rng;

use crate::answers;
use crate::chunk::Chunk;
use crate::data::Presence;
use crate::meter::Meter;
use crate::pick::{Distribution, Picker, unit};
use crate::workload::{Arrivals, OpenLoop};
use crate::{Engine, Failure, pause};

use super::World;

pub(super) fn run(
    spec: &OpenLoop,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let workload = &world.plan.workload;
    let sustained = world.written.map(|(records, elapsed)| records as f64 / elapsed.as_secs_f64().max(1e-9));
    let share_of = |share: f64| sustained.map(|rate| rate * share);
    let steady = spec.steady_share.zip(world.steady_rate).map(|(share, rate)| share * rate);
    let rate = spec.records_per_second.or_else(|| spec.rate_share.and_then(share_of)).or(steady);
    let rate = rate.ok_or("there is no rate to take a share of")?;
    let mut schedule = Schedule::new(spec.arrivals, workload.batch as f64 / rate, world.phase_seed);
    let live = world.oracle.live();
    let mut picker = Picker::new(Distribution::Uniform, world.phase_seed, live);
    let mut lookups = Lookups::new(world.phase_seed, live);
    let mut chunk = Chunk::new(&world.records, workload.batch);
    let mut fresh = world.oracle.numbers().end;
    let mut left = workload.operations(spec.operations_per_record);
    let mut due = spec.sample_seconds.map(|_| Duration::ZERO);
    let mut next = schedule.next();
    meter.start();
    let mut began = meter.now();
    if let Some(layout) = &spec.layout {
        meter.call(0, || engine.set_layout(layout))?;
    }
    let is_late = |so_far: Duration| spec.seconds_max.is_some_and(|most| so_far.as_secs_f64() >= most);
    while left > 0 && !is_late(meter.now() - began) {
        let now = workload.batch.min(left);
        let meant = began + next;
        next = schedule.next();
        meter.generate(|| {
            chunk.fill(now, || {
                if spec.inserts {
                    fresh += 1;
                    return (fresh - 1, 0);
                }
                let number = world.oracle.numbers().start + picker.next(live);
                (number, world.oracle.overwrite(number))
            });
            pause::until(world.clock, meant);
        });
        for batch in chunk.batches() {
            meter.call_meant_for(meant, now, || engine.put(batch))?;
            meter.wrote(batch.bytes.len() as u64);
        }
        left -= now;
        lookups.make(spec.gets_per_batch, began + next, engine, world, meter)?;
        if let (Some(at), Some(every)) = (due, spec.sample_seconds)
            && meter.so_far() >= at
        {
            let records = world.oracle.live() + fresh - world.oracle.numbers().end;
            began += world.sample(records, None, engine, meter);
            due = Some(meter.so_far() + Duration::from_secs_f64(every));
        }
    }
    meter.stop();
    world.oracle.written_to(fresh);
    Ok(())
}

/// Single lookups of records that were there before.
struct Lookups {
    rng: Rng,
    live: u64,
    value: Vec<u8>,
    scratch: Vec<u8>,
}

impl Lookups {
    fn new(seed: u64, live: u64) -> Self {
        Self { rng: Rng::new(seed.rotate_left(7)), live, value: Vec::new(), scratch: Vec::new() }
    }

    /// This many, of which none but the first begins after `until`: a batch waits for one at most, as it would if
    /// others made them.
    fn make(
        &mut self,
        count: u64,
        until: Duration,
        engine: &mut dyn Engine,
        world: &World<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<(), Failure> {
        let (records, oracle) = (&world.records, &world.oracle);
        for lookup in 0..count {
            if lookup > 0 && meter.now() >= until {
                break;
            }
            let number = oracle.numbers().start + self.rng.below(self.live);
            self.value.clear();
            let key = records.key(number, Presence::Present);
            let found = meter.lookup(engine, &key, &mut self.value)?.then_some(&self.value[..]);
            answers::check(records, oracle.expected(number), found, &mut self.scratch)?;
        }
        Ok(())
    }
}

/// When batches are meant to start.
struct Schedule {
    arrivals: Arrivals,
    seconds_between: f64,
    rng: Rng,
    seconds: f64,
}

impl Schedule {
    fn new(arrivals: Arrivals, seconds_between: f64, seed: u64) -> Self {
        Self { arrivals, seconds_between, rng: Rng::new(!seed), seconds: 0.0 }
    }

    fn next(&mut self) -> Duration {
        let at = Duration::from_secs_f64(self.seconds);
        self.seconds += match self.arrivals {
            Arrivals::Fixed => self.seconds_between,
            Arrivals::Poisson => -libm::log(1.0 - unit(&mut self.rng)) * self.seconds_between,
        };
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_keep_their_rate() {
        let mut fixed = Schedule::new(Arrivals::Fixed, 0.25, 1);
        let times: Vec<f64> = (0..4).map(|_| fixed.next().as_secs_f64()).collect();
        assert_eq!(times, [0.0, 0.25, 0.5, 0.75]);
        let mut poisson = Schedule::new(Arrivals::Poisson, 0.25, 1);
        let times: Vec<f64> = (0..=10_000).map(|_| poisson.next().as_secs_f64()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.25).abs() < 0.01, "{mean}");
        // Of exponential gaps the part above the mean is 1/e.
        let above = gaps.iter().filter(|gap| **gap > 0.25).count();
        assert!((3400..3960).contains(&above), "{above}");
    }
}
