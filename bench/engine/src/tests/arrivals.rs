//! In an open loop latencies count from when a batch was meant to start.

use std::path::Path;
use std::time::Duration;

use ::forebay_env::{Clock, ManualClock};
use ::std::sync::Arc;

use super::map::{Lie, Map};
use super::run_all;
use crate::report::Phase;
use crate::workload::Workload;
use crate::{Batch, Engine, Failure, Kind, Observation, Setup};

/// Every look at it takes a microsecond.
#[derive(Default)]
pub(super) struct Ticking(ManualClock);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        self.0.advance(Duration::from_micros(1));
        self.0.now()
    }

    fn unix_milliseconds(&self) -> u64 {
        0
    }
}

/// A map whose every put takes this long on the clock, and every look at it that long.
pub(super) struct Slow {
    pub(super) map: Map,
    pub(super) clock: Arc<Ticking>,
    pub(super) put: Duration,
    pub(super) look: Duration,
}

impl Kind for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn options(&self, _: &Setup) -> String {
        "none".into()
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let engine = self.map.open(dir, setup)?;
        Ok(Box::new(SlowOpen { engine, clock: Arc::clone(&self.clock), put: self.put, look: self.look }))
    }
}

struct SlowOpen {
    engine: Box<dyn Engine>,
    clock: Arc<Ticking>,
    put: Duration,
    look: Duration,
}

impl Engine for SlowOpen {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.clock.0.advance(self.put);
        self.engine.put(batch)
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        self.engine.delete(keys, key_bytes)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        self.engine.get(key, value)
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.engine.scan(from, limit, each)
    }

    fn observe(&self) -> Option<Observation> {
        self.clock.0.advance(self.look);
        None
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.engine.drain()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.engine.close()
    }
}

/// 100 batches of 10 records, one every 5 ms; the load before it runs at its own speed.
fn arrivals() -> Workload {
    let text = "\
name = 'arrivals'
description = 'd'
key_bytes = 8
value_bytes = 8
records = 1000
batch = 10
phases = ['load', { open_loop = { records_per_second = 2000.0, arrivals = 'fixed', sample_seconds = 0.0999, \
                    operations_per_record = 1.0 } }]
";
    toml::from_str(text).unwrap()
}

/// The open loop of an engine with such puts and looks.
fn open_loop(put: Duration, look: Duration) -> Phase {
    let clock = Arc::new(Ticking::default());
    let kind = Slow { map: Map::new(Lie::None), clock: Arc::clone(&clock), put, look };
    let mut phases = run_all(&kind, arrivals(), &*clock).unwrap();
    let (Some(open_loop), Some(load)) = (phases.pop(), phases.pop()) else { panic!("two phases") };
    // In a closed loop a call takes what it takes.
    assert!(load.latency_us.max < put.as_micros() as f64 * 1.01 + 10.0, "{load:?}");
    open_loop
}

/// Its latencies, in milliseconds, at the median and at most; and how long it took in seconds.
fn latencies(put: Duration) -> (f64, f64, f64) {
    let Phase { latency_us, seconds, .. } = open_loop(put, Duration::ZERO);
    (latency_us.p50 / 1e3, latency_us.max / 1e3, seconds)
}

#[test]
fn a_batch_that_waits_for_the_one_before_it_waits_in_its_latency() {
    // Batch k is meant for 5 k ms and ends at 10 (k + 1): after 10 + 5 k.
    let (p50, max, seconds) = latencies(Duration::from_millis(10));
    assert!((255.0..263.0).contains(&p50), "{p50}");
    assert!((504.0..510.0).contains(&max), "{max}");
    assert!((1.0..1.01).contains(&seconds), "{seconds}");
}

#[test]
fn an_engine_that_keeps_up_is_waited_for_nobody() {
    let (p50, max, seconds) = latencies(Duration::from_millis(1));
    assert!((1.0..1.01).contains(&p50) && (1.0..1.01).contains(&max), "{p50} {max}");
    // The last of 100 batches starts at 495 ms.
    assert!((0.496..0.498).contains(&seconds), "{seconds}");
}

#[test]
fn a_look_at_the_engine_makes_no_batch_late() {
    let phase = open_loop(Duration::from_millis(1), Duration::from_millis(50));
    let looks = phase.samples.len();
    assert!((4..=6).contains(&looks), "{:?}", phase.samples);
    assert!(phase.latency_us.max < 1010.0 && phase.longest_gap_ms < 6.0, "{phase:?}");
    let expected = 0.497 + looks as f64 * 0.05;
    assert!((phase.seconds - expected).abs() < 1e-3, "{phase:?}");
}
