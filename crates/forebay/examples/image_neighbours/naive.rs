//! The same found by comparing all pairs, one by one, and how much of the plain truth the method finds.

use std::time::Instant;

use super::neighbours::{Found, Neighbour, Settings};

/// Pairs that differ in no more bits look alike.
const ALIKE: u8 = 6;

/// The nearest neighbours among the images that `may_be` lets be neighbours.
pub(crate) fn nearest(
    hashes: &[u64],
    settings: Settings,
    may_be: impl Fn(u64, u64) -> bool,
) -> Vec<(u32, Vec<Neighbour>)> {
    let of = |(image, hash): (u32, &u64)| {
        let others = (0_u32..)
            .zip(hashes)
            .filter(|(other, other_hash)| *other != image && may_be(*hash, **other_hash));
        let mut met: Vec<_> =
            others.map(|(other, other_hash)| Neighbour::between(*hash, *other_hash, other)).collect();
        if met.len() > settings.nearest {
            met.select_nth_unstable(settings.nearest);
            met.truncate(settings.nearest);
        }
        met.sort_unstable();
        (image, met)
    };
    (0_u32..).zip(hashes).map(of).filter(|(_, met)| !met.is_empty()).collect()
}

/// Whether two hashes agree in the prefix of a rotation.
pub(crate) fn share_prefix(settings: Settings, one: u64, other: u64) -> bool {
    settings.prefixes(one).zip(settings.prefixes(other)).any(|(one, other)| one == other)
}

/// Holds what was found against all pairs; JSON, or that it differs.
pub(crate) fn check(hashes: &[u64], settings: Settings, found: &Found) -> Result<String, String> {
    let expected = nearest(hashes, settings, |one, other| share_prefix(settings, one, other));
    if expected != found.nearest {
        return Err("the neighbours are not those that all pairs give".into());
    }
    let started = Instant::now();
    let all = nearest(hashes, settings, |_, _| true);
    let seconds = started.elapsed().as_secs_f64();
    // Both are in the order of the images; an image that has no neighbour is not among the found.
    let mut own = found.nearest.iter().peekable();
    let (mut alike, mut alike_found, mut nearest_found) = (0_u64, 0_u64, 0_u64);
    for (image, truth) in &all {
        let found = own.next_if(|(found, _)| found == image).map_or(&[][..], |(_, nearest)| nearest);
        let first = |nearest: &[Neighbour]| nearest.first().map(|neighbour| neighbour.distance);
        nearest_found += u64::from(first(found) == first(truth));
        let near = |nearest: &[Neighbour]| nearest.iter().filter(|one| one.distance <= ALIKE).count() as u64;
        alike += near(truth);
        alike_found += near(found);
    }
    Ok(format!(
        "{{\"equal\":true,\"nearest_found\":{:.4},\"alike_found\":{:.4},\
         \"naive_seconds\":{seconds:.3}}}",
        nearest_found as f64 / all.len().max(1) as f64,
        alike_found as f64 / alike.max(1) as f64
    ))
}
