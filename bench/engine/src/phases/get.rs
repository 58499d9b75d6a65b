//! `get`: lookups, one by one or many at a time.

use std::time::Duration;

use forebay_env::Rng;

use crate::answers::{Answers, Expected};
use crate::chunk::records_at_a_time;
use crate::data::Records;
use crate::meter::Meter;
use crate::pick::{Picker, unit};
use crate::workload::Get;
use crate::{Engine, Failure};

use super::World;

/// Keys between two looks at the time.
const BOUND_KEYS: u64 = 256;

pub(super) fn run(
    spec: &Get,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let mut rng = Rng::new(world.phase_seed);
    let live = world.oracle.live();
    let mut picker = Picker::new(spec.distribution, rng.next_u64(), live);
    let mut next = |world: &World<'_>| {
        let number = world.oracle.numbers().start + picker.next(live);
        if unit(&mut rng) < spec.present { world.oracle.expected(number) } else { Expected::Never { number } }
    };
    let at_a_time = at_a_time(spec, world);
    let mut left = world.plan.workload.operations(spec.operations_per_record);
    let mut lookups = Lookups::new(&world.records, spec.batch as usize);
    meter.start();
    let stop = spec.seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    while left > 0 && stop.is_none_or(|stop| meter.now() < stop) {
        let now = at_a_time.min(left);
        meter.generate(|| lookups.fill(now, || next(world)));
        lookups.ask(engine, meter)?;
        meter.generate(|| lookups.check())?;
        left -= now;
    }
    meter.stop();
    Ok(())
}

/// Few where there is a bound in seconds, which is looked at between groups.
fn at_a_time(spec: &Get, world: &World<'_>) -> u64 {
    match spec.seconds_max {
        Some(_) => (BOUND_KEYS / spec.batch).max(1) * spec.batch,
        None => records_at_a_time(spec.batch, world.records.record_bytes()),
    }
}

/// A group of lookups: made, asked, checked.
pub(super) struct Lookups {
    records: Records,
    batch: usize,
    keys: Vec<u8>,
    expected: Vec<Expected>,
    answers: Answers,
}

impl Lookups {
    pub(super) fn new(records: &Records, batch: usize) -> Self {
        let records = records.clone();
        Self { records, batch, keys: Vec::new(), expected: Vec::new(), answers: Answers::default() }
    }

    /// Makes `count` keys of what `next` expects.
    pub(super) fn fill(&mut self, count: u64, next: impl FnMut() -> Expected) {
        self.expected.clear();
        self.expected.extend(std::iter::repeat_with(next).take(count as usize));
        self.keys.resize(count as usize * self.records.key_bytes, 0);
        for (key, expected) in self.keys.chunks_exact_mut(self.records.key_bytes).zip(&self.expected) {
            let (number, presence) = expected.key();
            self.records.fill_key(number, presence, key);
        }
        self.answers.clear();
    }

    /// The keys, back to back.
    pub(super) fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// Looks all of them up.
    pub(super) fn ask(&mut self, engine: &mut dyn Engine, meter: &mut Meter<'_>) -> Result<(), Failure> {
        let (key_bytes, answers) = (self.records.key_bytes, &mut self.answers);
        for keys in self.keys.chunks(self.batch * key_bytes) {
            let count = (keys.len() / key_bytes) as u64;
            if self.batch == 1 {
                let (value, start) = answers.value();
                let found = meter.call(1, || engine.get(keys, value))?;
                answers.answered(start, found);
            } else {
                let first = answers.reserve(count as usize);
                let mut each = |place, value: Option<&[u8]>| answers.place(first + place, value);
                meter.call(count, || engine.multi_get(keys, key_bytes, &mut each))?;
            }
            meter.looked_up(count);
        }
        Ok(())
    }

    /// Compares the answers.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.answers.check(&self.records, &self.expected)
    }
}
