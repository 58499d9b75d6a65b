//! What runs of counts have of a range, between bounds across which nothing changes.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range};

use super::super::set::{Part, Run};
use super::file::CountedFile;
use crate::inventory::{Keys, Zone};

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
    ends: &[Bound],
    buffer: Option<(f64, f64)>,
    zones: &Zones,
) -> Vec<Stretch> {
    let mut bounds = bounds(runs, range);
    bounds.extend(ends.iter().map(|end| end.prefix));
    zones.divide(&mut bounds, range);
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
        let records = zones.met(low, width, coverage).unwrap_or(records);
        found.push(Stretch { low, width, records, coverage });
    }
    found
}

/// Where which keys of a skewed load lie; nothing of any other.
pub(super) struct Zones {
    /// Each with where it begins, and how wide it is.
    all: Vec<(u64, f64, Zone)>,
    /// The logarithm of how likely one draw misses a key, were all alike.
    missed: f64,
}

impl Zones {
    pub(super) fn of(keys: Keys) -> Self {
        let count = keys.distinct().unwrap_or(1).max(1) as f64;
        let place = |key: f64| WHOLE * key / count;
        let placed = |zone: Zone| {
            let (low, high) = zone.keys;
            (place(low) as u64, place(high) - place(low), zone)
        };
        let missed = (-1.0 / count.max(1.0 + 1e-9)).ln_1p();
        Self { all: keys.zones().into_iter().map(placed).collect(), missed }
    }

    /// Adds to bounds inside a range those of zones.
    pub(super) fn divide(&self, bounds: &mut Vec<u64>, range: &Range) {
        bounds.extend(self.all.iter().map(|(low, ..)| *low).filter(|&low| range.contains(low, b"")));
        bounds.sort_unstable();
        bounds.dedup();
    }

    /// How many keys were come upon between these places by as many draws as would have come upon this share of all keys,
    /// were they even. `None` where they are.
    pub(super) fn met(&self, low: u64, width: f64, coverage: f64) -> Option<f64> {
        let draws = (-coverage.min(1.0 - 1e-15)).ln_1p() / self.missed;
        let (low, high) = (low as f64, low as f64 + width);
        let inside = |(start, width, zone): &(u64, f64, Zone)| {
            let start = *start as f64;
            let share = ((start + width).min(high) - start.max(low)).max(0.0) / width;
            if share > 0.0 { zone.met(draws) * share } else { 0.0 }
        };
        (!self.all.is_empty()).then(|| self.all.iter().map(inside).sum())
    }
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
