//! The perceptual hash of an image: 64 bits, few of which differ where two images look alike.
//!
//! 1. Take the image in shades of grey at 32 times 32.
//! 2. Take its discrete cosine transform: how much there is of each wave.
//! 3. Of the 8 times 8 longest waves, the constant ones left out, a bit tells whether there is more than the
//!    median of them.
//!
//! Sizes, colours and small changes move few of these sums across the median. Half of the bits are set, so
//! that hashes spread over their prefixes.

use std::f32::consts::PI;

use super::picture::Picture;

const SIDE: usize = 32;
const WAVES: usize = 8;

pub(crate) fn of(picture: &Picture) -> u64 {
    let rows = picture.shrink::<SIDE>().map(|row| waves(|at| row[at]));
    // Each row's waves, and then each wave's own down the rows.
    let sums: [[f32; WAVES]; WAVES] = std::array::from_fn(|wave| waves(|at| rows[at][wave]));
    bits(sums.as_flattened())
}

/// How much there is of each wave but the constant one.
fn waves(value: impl Fn(usize) -> f32) -> [f32; WAVES] {
    std::array::from_fn(|wave| {
        let phase = |at: usize| PI / SIDE as f32 * (at as f32 + 0.5) * (wave + 1) as f32;
        (0..SIDE).map(|at| value(at) * phase(at).cos()).sum()
    })
}

/// A bit a sum, whether it is above the median.
fn bits(sums: &[f32]) -> u64 {
    let mut sorted = sums.to_vec();
    sorted.sort_by(f32::total_cmp);
    let median = sorted[sorted.len() / 2];
    sums.iter().fold(0, |bits, sum| bits << 1 | u64::from(*sum >= median))
}
