//! `open_loop`: batches arrive when they arrive. A batch that waits because the engine is still at the one
//! before it waits in its latency, which counts from when it was meant to start.

use std::time::Duration;

use forebay::env::Rng;

use crate::chunk::Chunk;
use crate::meter::Meter;
use crate::pick::{Distribution, Picker, unit};
use crate::workload::{Arrivals, OpenLoop};
use crate::{Engine, Failure};

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
    let rate = spec.records_per_second.or_else(|| spec.rate_share.and_then(share_of));
    let rate = rate.ok_or("there is no rate to take a share of")?;
    let mut schedule = Schedule::new(spec.arrivals, workload.batch as f64 / rate, world.phase_seed);
    let live = world.oracle.live();
    let mut picker = Picker::new(Distribution::Uniform, world.phase_seed, live);
    let mut chunk = Chunk::new(&world.records, workload.batch);
    let mut fresh = world.oracle.numbers().end;
    let mut left = workload.operations(spec.operations_per_record);
    meter.start();
    let began = meter.now();
    while left > 0 {
        let now = workload.batch.min(left);
        let meant = began + schedule.next();
        meter.generate(|| {
            chunk.fill(now, || {
                if spec.inserts {
                    fresh += 1;
                    return (fresh - 1, 0);
                }
                let number = world.oracle.numbers().start + picker.next(live);
                (number, world.oracle.overwrite(number))
            });
            // Spinning, as sleeping would add what the kernel takes to wake up.
            while world.clock.now() < meant {
                std::hint::spin_loop();
            }
        });
        for batch in chunk.batches() {
            meter.call_meant_for(meant, now, || engine.put(batch))?;
            meter.wrote(batch.bytes.len() as u64);
        }
        left -= now;
    }
    meter.stop();
    world.oracle.written_to(fresh);
    Ok(())
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
