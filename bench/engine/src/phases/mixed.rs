//! `mixed`: single operations as YCSB mixes them.
//!
//! Operations are made a group at a time, each with what it has to find when its turn comes; what they found
//! is compared behind the group.

use std::time::Duration;

use forebay_env::Rng;

use crate::answers::{Answers, Expected};
use crate::chunk::records_at_a_time;
use crate::data::{Presence, Records};
use crate::meter::Meter;
use crate::pick::{Picker, unit};
use crate::workload::Mixed;
use crate::{Batch, Engine, Failure};

use super::World;
use super::scan_index::ScanIndex;

/// Operations between two looks at the time.
const BOUND_OPERATIONS: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read,
    Update,
    Insert,
    Scan { limit: usize },
    ReadModifyWrite,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    act: Act,
    number: u64,
}

pub(super) fn run(
    spec: &Mixed,
    engine: &mut dyn Engine,
    world: &mut World<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Failure> {
    let mut rng = Rng::new(world.phase_seed);
    let mut picker = Picker::new(spec.distribution, rng.next_u64(), world.oracle.live());
    let mut group = Group::new(&world.records);
    let mut index = (spec.scan > 0.0).then(|| ScanIndex::new(&world.records, world.oracle.numbers()));
    let at_a_time = match spec.seconds_max {
        // The time is looked at between groups.
        Some(_) => BOUND_OPERATIONS,
        None => records_at_a_time(1, world.records.record_bytes()),
    };
    let mut left = world.plan.workload.operations(spec.operations_per_record);
    meter.start();
    let stop = spec.seconds_max.map(|seconds| meter.now() + Duration::from_secs_f64(seconds));
    while left > 0 && stop.is_none_or(|stop| meter.now() < stop) {
        let now = at_a_time.min(left);
        meter.generate(|| {
            group.clear();
            (0..now).for_each(|_| group.push(act(spec, &mut rng), &mut picker, world));
        });
        group.run(engine, meter)?;
        meter.generate(|| group.check(world, index.as_mut()))?;
        left -= now;
    }
    meter.stop();
    Ok(())
}

/// The next kind of operation, by the shares.
fn act(spec: &Mixed, rng: &mut Rng) -> Act {
    let mut at = unit(rng);
    for (share, act) in [
        (spec.read, Act::Read),
        (spec.update, Act::Update),
        (spec.insert, Act::Insert),
        (spec.read_modify_write, Act::ReadModifyWrite),
    ] {
        if at < share {
            return act;
        }
        at -= share;
    }
    match spec.scan > 0.0 {
        true => Act::Scan { limit: rng.range(1..spec.scan_limit + 1) as usize },
        // The shares' sum is a hair below 1.
        false => Act::Read,
    }
}

/// Operations in their order, and what they found.
struct Group {
    records: Records,
    steps: Vec<Step>,
    /// A record for each step; of those that only read, the key.
    bytes: Vec<u8>,
    /// Of reads, in order.
    expected: Vec<Expected>,
    answers: Answers,
    /// Of scans, in order: entries back to back, and where each scan's end.
    scanned: Vec<u8>,
    scan_ends: Vec<usize>,
}

impl Group {
    fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
            steps: Vec::new(),
            bytes: Vec::new(),
            expected: Vec::new(),
            answers: Answers::default(),
            scanned: Vec::new(),
            scan_ends: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.bytes.clear();
        self.expected.clear();
        self.answers.clear();
        self.scanned.clear();
        self.scan_ends.clear();
    }

    fn push(&mut self, act: Act, picker: &mut Picker, world: &mut World<'_>) {
        let oracle = &mut world.oracle;
        let at = self.bytes.len();
        self.bytes.resize(at + self.records.record_bytes(), 0);
        let record = &mut self.bytes[at..];
        let number = match act {
            Act::Insert => oracle.numbers().end,
            _ => oracle.numbers().start + picker.next(oracle.live()),
        };
        if matches!(act, Act::Read | Act::ReadModifyWrite) {
            self.expected.push(oracle.expected(number));
        }
        match act {
            Act::Read | Act::Scan { .. } => {
                self.records.fill_key(number, Presence::Present, &mut record[..self.records.key_bytes]);
            }
            Act::Insert => {
                oracle.written_to(number + 1);
                self.records.fill_record(number, 0, record);
            }
            Act::Update | Act::ReadModifyWrite => {
                self.records.fill_record(number, oracle.overwrite(number), record);
            }
        }
        self.steps.push(Step { act, number });
    }

    fn run(&mut self, engine: &mut dyn Engine, meter: &mut Meter<'_>) -> Result<(), Failure> {
        let Records { key_bytes, value_bytes, .. } = self.records;
        let records = self.bytes.chunks_exact(key_bytes + value_bytes);
        for (step, bytes) in self.steps.iter().zip(records) {
            let (key, put) = (&bytes[..key_bytes], Batch { bytes, key_bytes, value_bytes });
            match step.act {
                Act::Read | Act::ReadModifyWrite => {
                    let (value, start) = self.answers.value();
                    let found = meter.call(1, || {
                        let found = engine.get(key, value)?;
                        if step.act == Act::ReadModifyWrite {
                            engine.put(put)?;
                        }
                        Ok(found)
                    })?;
                    self.answers.answered(start, found);
                    meter.looked_up(1);
                }
                Act::Update | Act::Insert => meter.call(1, || engine.put(put))?,
                Act::Scan { limit } => {
                    let scanned = &mut self.scanned;
                    let mut each = |key: &[u8], value: &[u8]| {
                        scanned.extend_from_slice(key);
                        scanned.extend_from_slice(value);
                    };
                    meter.call(1, || engine.scan(key, limit, &mut each))?;
                    self.scan_ends.push(self.scanned.len());
                }
            }
            if !matches!(step.act, Act::Read | Act::Scan { .. }) {
                meter.wrote(bytes.len() as u64);
            }
        }
        Ok(())
    }

    fn check(&mut self, world: &World<'_>, index: Option<&mut ScanIndex>) -> Result<(), Failure> {
        self.answers.check(&self.records, &self.expected)?;
        let Some(index) = index else { return Ok(()) };
        let mut ends = self.scan_ends.iter();
        let mut start = 0;
        for step in &self.steps {
            match step.act {
                Act::Insert => index.insert(&self.records, step.number),
                Act::Scan { limit } => {
                    let end = ends.next().copied().unwrap_or(start);
                    index.check(
                        &self.records,
                        &world.oracle,
                        step.number,
                        limit,
                        &self.scanned[start..end],
                    )?;
                    start = end;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
