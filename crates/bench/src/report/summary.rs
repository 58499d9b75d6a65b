//! Repetitions put together: median, least and most of each engine's rate, and how the first engine compares.

use super::{Phase, Spread, Summary, ratio};

/// Rates by workload, phase and engine, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Summaries(Vec<(Key, Vec<f64>)>);

#[derive(Debug, PartialEq, Eq)]
struct Key {
    workload: String,
    phase: String,
    engine: String,
}

impl Summaries {
    /// Adds a repetition. Phases without operations have no rate.
    pub(crate) fn add(&mut self, phase: &Phase) {
        let Some(rate) = phase.operations_per_second else { return };
        let (workload, engine) = (phase.workload.clone(), phase.engine.clone());
        let key = Key { workload, phase: phase.phase.clone(), engine };
        match self.0.iter_mut().find(|(found, _)| *found == key) {
            Some((_, rates)) => rates.push(rate),
            None => self.0.push((key, vec![rate])),
        }
    }

    /// All of them: by workload and phase in the order in which these first came, in each the engines in the
    /// order of `engines`, whose first is the one compared with.
    pub(crate) fn finish(&self, engines: &[&str]) -> Vec<Summary> {
        let mut told: Vec<(&str, &str)> = Vec::new();
        let mut summaries = Vec::new();
        for (key, _) in &self.0 {
            let place = (key.workload.as_str(), key.phase.as_str());
            if told.contains(&place) {
                continue;
            }
            told.push(place);
            let of = |engine: &str| {
                let found = self.0.iter().find(|(key, _)| {
                    (key.workload.as_str(), key.phase.as_str()) == place && key.engine == engine
                })?;
                Some((spread(&found.1)?, found.1.len()))
            };
            let first = engines.first().and_then(|engine| of(engine));
            for engine in engines {
                let Some((rates, repetitions)) = of(engine) else { continue };
                summaries.push(Summary {
                    workload: key.workload.clone(),
                    phase: key.phase.clone(),
                    engine: engine.to_string(),
                    repetitions,
                    operations_per_second: rates,
                    first_engine_by_this: first.and_then(|(first, _)| ratio(first.median, rates.median)),
                });
            }
        }
        summaries
    }
}

fn spread(rates: &[f64]) -> Option<Spread> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let half = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 };
    Some(Spread { median, min, max })
}
