//! Random fault rules, on top of power losses.

use std::time::Duration;

use forebay::Error;
use forebay_env::Rng;
use forebay_env::fs::FaultyFs;
use forebay_testkit::Op;

use crate::run::{Run, STEPS_TO_IDLE};

const OPERATIONS: [&str; 11] =
    ["write", "write", "sync", "create", "rename", "remove", "reserve", "sync_dir", "open", "read", "any"];
const FILES: [&str; 9] =
    ["*.list", "*.tree", "*.log", "*.manifest", "*.values", "CURRENT*", "FOREBAY*", "*", "*"];

/// A rule such as `write *.list #7 no-space`.
pub(crate) fn draw(rng: &mut Rng) -> String {
    let operation = OPERATIONS[rng.index(OPERATIONS.len())];
    let files = FILES[rng.index(FILES.len())];
    let within = [3, 20, 200][rng.index(3)];
    let nth = 1 + rng.below(within);
    let selection = if rng.chance(70) { format!("#{nth}") } else { format!("from:{nth}") };
    let fault = match operation {
        "write" => ["no-space", "io-error", "short"][rng.index(3)],
        "sync" => ["io-error", "lost"][rng.index(2)],
        "read" | "open" => "io-error",
        _ => ["no-space", "io-error"][rng.index(2)],
    };
    format!("{operation} {files} {selection} {fault}")
}

/// Adds one or two rules.
pub(crate) fn add(fs: &FaultyFs, rng: &mut Rng) -> Vec<String> {
    let rules: Vec<String> = (0..1 + rng.below(2)).map(|_| draw(rng)).collect();
    for rule in &rules {
        fs.rule(rule).expect("a rule that is well formed");
    }
    rules
}

impl Run {
    /// Once the disk is well again, so is the database, unless a sync has failed.
    pub(crate) fn recover_from_faults(&mut self) {
        if !self.may_fail || self.fs.is_off() {
            return;
        }
        self.faulty.clear();
        self.fs.heal();
        self.options.config.trip.clear();
        self.env.jobs.advance(Duration::from_secs(1));
        self.env.jobs.step_some(STEPS_TO_IDLE);
        for database in &mut self.databases {
            // What was set aside for a panic is tried again where its table is compacted, and then nothing is in the
            // way.
            let tables = if self.panics { database.config.tables() } else { 0 };
            (0..tables).for_each(|table| drop(database.apply(&Op::Compact(table))));
            let compacted = (0..tables).try_for_each(|table| database.apply(&Op::Compact(table)));
            match compacted.and_then(|()| database.apply(&Op::Flush)) {
                Ok(()) | Err(Error::Poisoned(_)) => {}
                Err(_) if self.fs.is_off() => return,
                Err(error) => panic!("the disk is well again, and writing is not: {error}"),
            }
            if !self.fs.is_off() {
                database.check_all().expect("reading after faults");
            }
        }
    }
}
