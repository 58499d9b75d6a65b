//! What was measured, read from kept JSON lines: medians and spreads over rounds.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::compact;
use super::part::DIRECT;

/// The lines of one part.
#[derive(Debug, Default)]
pub(super) struct Results {
    samples: Vec<Sample>,
    /// Of each engine: what its runs are to be read against, by the workload.
    pub(super) setups: BTreeMap<String, BTreeMap<String, Value>>,
    /// Runs without result, in words.
    pub(super) failures: Vec<String>,
    /// The line about the campaign.
    pub(super) campaign: Value,
    /// Lines of other types.
    pub(super) others: Vec<Value>,
}

/// One phase of one run.
#[derive(Debug)]
struct Sample {
    engine: String,
    workload: String,
    line: Value,
}

/// Over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// A phase of a workload, by its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase<'a>(pub(super) &'a str, pub(super) &'a str);

impl Results {
    /// Reads a file; `None` where there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut results = Self::default();
        let mut engine = String::new();
        for (index, line) in text.lines().enumerate() {
            let line: Value =
                serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))?;
            let line = compact::unpack(line);
            let word = |name: &str| line[name].as_str().unwrap_or_default().to_string();
            match line["type"].as_str() {
                Some("campaign") => results.campaign = line,
                Some("setup") => {
                    // Phases follow their setup.
                    engine = word("engine");
                    if line["setup"]["direct_io"] == true {
                        engine.push_str(DIRECT);
                    }
                    results.setups.entry(engine.clone()).or_default().insert(word("workload"), line);
                }
                Some("phase") => {
                    results.samples.push(Sample { engine: engine.clone(), workload: word("workload"), line })
                }
                // A count tells its engine itself.
                Some("groups") => {
                    let (engine, workload) = (word("engine"), word("workload"));
                    results.samples.push(Sample { engine, workload, line });
                }
                Some("failure" | "skipped") => results.failures.push(format!(
                    "{} on {}: {}",
                    word("engine"),
                    word("workload"),
                    word("reason").replace('\n', " ")
                )),
                _ => results.others.push(line),
            }
        }
        Ok(results)
    }

    /// The engines that did that, in the order of their first appearance.
    pub(super) fn engines(&self, workload: &str) -> Vec<&str> {
        let mut engines: Vec<&str> = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.workload == workload) {
            if !engines.contains(&sample.engine.as_str()) {
                engines.push(&sample.engine);
            }
        }
        engines
    }

    /// The memory that the engine was given.
    pub(super) fn memory_bytes(&self, engine: &str, workload: &str) -> Option<u64> {
        self.setups.get(engine)?.get(workload)?["setup"]["memory_bytes"].as_u64()
    }

    /// The lines of all rounds.
    pub(super) fn lines<'a>(&'a self, engine: &'a str, phase: Phase<'a>) -> impl Iterator<Item = &'a Value> {
        let Phase(workload, name) = phase;
        let is = move |sample: &&Sample| {
            sample.engine == engine && sample.workload == workload && sample.line["phase"] == name
        };
        self.samples.iter().filter(is).map(|sample| &sample.line)
    }

    /// The last run's line.
    pub(super) fn last<'a>(&'a self, engine: &'a str, phase: Phase<'a>) -> Option<&'a Value> {
        self.lines(engine, phase).last()
    }

    /// Of all looks at the engine in the last run's phase: what they tell of both.
    pub(super) fn samples(
        &self,
        engine: &str,
        phase: Phase<'_>,
        tells: impl Fn(&Value) -> Option<(f64, f64)>,
    ) -> Vec<(f64, f64)> {
        let samples = self.last(engine, phase).and_then(|line| line["samples"].as_array());
        samples.into_iter().flatten().filter_map(tells).collect()
    }

    /// A measure over rounds; `pointer` is its place in a line, such as `/latency_us/p99`.
    pub(super) fn spread(&self, engine: &str, phase: Phase<'_>, pointer: &str) -> Option<Spread> {
        let figures = self.lines(engine, phase).filter_map(|line| line.pointer(pointer)?.as_f64());
        Spread::of(figures.collect())
    }

    pub(super) fn median(&self, engine: &str, phase: Phase<'_>, pointer: &str) -> Option<f64> {
        self.spread(engine, phase, pointer).map(|spread| spread.median)
    }

    /// Operations a second.
    pub(super) fn rate(&self, engine: &str, phase: Phase<'_>) -> Option<f64> {
        self.median(engine, phase, "/operations_per_second")
    }

    /// The engine's rate, through the page cache or around it: the better one counts.
    pub(super) fn best_rate(&self, engine: &str, phase: Phase<'_>) -> Option<f64> {
        self.best_rates(engine, phase).map(|spread| spread.median)
    }

    /// The spread of that.
    pub(super) fn best_rates(&self, engine: &str, phase: Phase<'_>) -> Option<Spread> {
        let direct = self.rates(&format!("{engine}{DIRECT}"), phase);
        let better = |one: &Spread, other: &Spread| one.median.total_cmp(&other.median);
        self.rates(engine, phase).into_iter().chain(direct).max_by(better)
    }

    /// Operations a second over rounds.
    pub(super) fn rates(&self, engine: &str, phase: Phase<'_>) -> Option<Spread> {
        self.spread(engine, phase, "/operations_per_second")
    }

    /// How many rounds there are.
    pub(super) fn rounds(&self, engine: &str, phase: Phase<'_>) -> usize {
        self.lines(engine, phase).count()
    }
}

impl Spread {
    /// `None` of nothing.
    pub(super) fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let half = figures.len() / 2;
        let median =
            if figures.len() % 2 == 1 { figures[half] } else { (figures[half - 1] + figures[half]) / 2.0 };
        Some(Self { median, min, max })
    }
}
