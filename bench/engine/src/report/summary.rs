//! Repetitions put together: median, least and most, and how the first engine compares with the others.

use super::{Phase, Spread, Summary, ratio};

/// Rates and times by workload, phase and engine, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Summaries(Vec<Group>);

#[derive(Debug)]
struct Group {
    workload: String,
    phase: String,
    engine: String,
    /// Operations a second; empty for a phase without operations.
    rates: Vec<f64>,
    seconds: Vec<f64>,
}

impl Summaries {
    /// Adds a repetition.
    pub(crate) fn add(&mut self, phase: &Phase) {
        let is_of = |group: &&mut Group| {
            (&group.workload, &group.phase, &group.engine) == (&phase.workload, &phase.phase, &phase.engine)
        };
        if let Some(group) = self.0.iter_mut().find(is_of) {
            group.rates.extend(phase.operations_per_second);
            group.seconds.push(phase.seconds);
            return;
        }
        self.0.push(Group {
            workload: phase.workload.clone(),
            phase: phase.phase.clone(),
            engine: phase.engine.clone(),
            rates: phase.operations_per_second.into_iter().collect(),
            seconds: vec![phase.seconds],
        });
    }

    /// All of them, the engines of a phase together, compared with the engine called `first`.
    pub(crate) fn finish(mut self, first: &str) -> Vec<Summary> {
        let places: Vec<(String, String)> =
            self.0.iter().map(|group| (group.workload.clone(), group.phase.clone())).collect();
        let place = |group: &Group| {
            places.iter().position(|(workload, phase)| (workload, phase) == (&group.workload, &group.phase))
        };
        self.0.sort_by_key(place);
        self.0.iter().filter_map(|group| self.summary(group, first)).collect()
    }

    fn summary(&self, group: &Group, first: &str) -> Option<Summary> {
        let is_same_phase =
            |other: &&Group| (&other.workload, &other.phase) == (&group.workload, &group.phase);
        let same_phase = || self.0.iter().filter(is_same_phase);
        let first = same_phase().find(|other| other.engine == first);
        let (rates, seconds) = (spread(&group.rates), spread(&group.seconds)?);
        let speedup = first.and_then(|first| match (spread(&first.rates), rates) {
            (Some(first), Some(rates)) => ratio(first.median, rates.median),
            _ => ratio(seconds.median, spread(&first.seconds)?.median),
        });
        Some(Summary {
            workload: group.workload.clone(),
            phase: group.phase.clone(),
            engine: group.engine.clone(),
            repetitions: group.seconds.len(),
            runs: same_phase().map(|other| other.seconds.len()).sum(),
            operations_per_second: rates,
            seconds,
            first_engine_speedup: speedup,
        })
    }
}

/// `None` of nothing.
fn spread(figures: &[f64]) -> Option<Spread> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let half = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 };
    Some(Spread { median, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::phase;

    #[test]
    fn engines_of_a_phase_stand_together_with_medians_and_speedups() {
        let mut summaries = Summaries::default();
        for (repetition, of_a, of_b) in [(1, 300.0, 100.0), (2, 100.0, 50.0), (3, 200.0, 150.0)] {
            summaries.add(&phase("a", "load", repetition, Some(of_a)));
            summaries.add(&phase("a", "drain", repetition, None));
            summaries.add(&phase("b", "load", repetition, Some(of_b)));
            summaries.add(&phase("b", "drain", repetition, None));
        }
        let told: Vec<(String, String, Option<f64>)> = summaries
            .finish("a")
            .into_iter()
            .inspect(|summary| assert_eq!((summary.repetitions, summary.runs), (3, 6)))
            .map(|summary| {
                let median = summary.operations_per_second.map(|rates| rates.median);
                (summary.phase + &summary.engine, format!("{median:?}"), summary.first_engine_speedup)
            })
            .collect();
        let expected = [
            ("loada", "Some(200.0)", Some(1.0)),
            ("loadb", "Some(100.0)", Some(2.0)),
            ("draina", "None", Some(1.0)),
            ("drainb", "None", Some(1.0)),
        ];
        assert_eq!(told, expected.map(|(name, median, ratio)| (name.into(), median.into(), ratio)));
    }

    #[test]
    fn spreads() {
        let of = |figures: &[f64]| spread(figures).map(|spread| (spread.median, spread.min, spread.max));
        assert_eq!(of(&[3.0, 1.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(of(&[5.0, 1.0, 2.0]), Some((2.0, 1.0, 5.0)));
        assert_eq!(of(&[]), None);
    }
}
