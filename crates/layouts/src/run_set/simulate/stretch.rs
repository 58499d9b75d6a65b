//! What runs of counts have of a range, between bounds across which nothing changes.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range};

use super::super::set::{Part, Run};
use super::file::CountedFile;

/// All prefixes.
pub(super) const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Records side by side, by prefix, and the share of all keys there that they have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) low: u64,
    pub(super) width: f64,
    pub(super) records: f64,
    pub(super) coverage: f64,
}

/// Records of a part for each prefix.
pub(super) fn density(part: &Part<CountedFile>) -> f64 {
    part.portion.records as f64 / width(&part.range)
}

pub(super) fn width(range: &Range) -> f64 {
    (range.high.as_ref().map_or(WHOLE, |high| high.prefix as f64) - range.low.prefix as f64).max(1.0)
}

/// What becomes of what runs have of a range, and of a write buffer, each with its records for a prefix and its share
/// of all keys: between bounds across which nothing changes.
pub(super) fn stretches(
    runs: &[(&Run<CountedFile>, Range)],
    range: &Range,
    buffer: Option<(f64, f64)>,
) -> Vec<Stretch> {
    let bounds = bounds(runs, range);
    let ends = bounds[1..].iter().map(|&prefix| Some(prefix)).chain([None]);
    let mut found = Vec::with_capacity(bounds.len());
    for (&low, high) in bounds.iter().zip(ends) {
        let high = high.map_or_else(|| range.high.clone(), |prefix| Some(Bound::at_prefix(prefix)));
        let width = width(&Range { low: Bound::at_prefix(low), high });
        let current = runs.iter().filter(|(_, range)| range.contains(low, b""));
        let parts = current.filter_map(|(run, _)| run.find(low, b""));
        let sources = parts.map(|part| (density(part), part.fragment.counts.coverage())).chain(buffer);
        let (records, sum, absence) =
            sources.fold((0.0, 0.0, 1.0), |(records, sum, absence), (density, coverage)| {
                (records + density * width, sum + coverage, absence * (1.0 - coverage))
            });
        let coverage = 1.0 - absence;
        let records = if sum > 0.0 { records * coverage / sum } else { records };
        found.push(Stretch { low, width, records, coverage });
    }
    found
}

/// Prefixes at which a part of these runs begins or ends, inside a range, with its own low one in front.
pub(super) fn bounds(runs: &[(&Run<CountedFile>, Range)], range: &Range) -> Vec<u64> {
    let mut bounds = BTreeSet::from([range.low.prefix]);
    for (run, taken) in runs {
        for part in &run.parts[run.overlapping(taken)] {
            let piece = part.range.intersect(taken);
            let ends = [Some(piece.low), piece.high].into_iter().flatten();
            bounds.extend(ends.map(|end| end.prefix).filter(|&prefix| range.contains(prefix, b"")));
        }
    }
    bounds.into_iter().collect()
}
