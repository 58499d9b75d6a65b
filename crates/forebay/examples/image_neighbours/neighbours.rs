//! The two jobs. The first groups images by a prefix of their hashes, again for every rotation of them; the second
//! compares all pairs of each cluster, and keeps the nearest neighbours of each image.
//!
//! Rotating changes no distance. Of hashes of 64 bits and prefixes of P, two hashes that differ in fewer than 64 / P
//! bits agree in one of the prefixes, so that no such pair is missed.

use forebay::aggregate::functions::Collect;
use forebay::aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, StateType};
use forebay::{Error, Result};

/// How neighbours are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// A divisor of 64.
    pub(crate) prefix_bits: u32,
    /// How many neighbours of an image are kept.
    pub(crate) nearest: usize,
    /// Of each job.
    pub(crate) memory_bytes: usize,
}

impl Settings {
    /// The prefixes of a hash, one a rotation.
    pub(crate) fn prefixes(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..64 / self.prefix_bits)
            .map(move |turn| hash.rotate_left(turn * self.prefix_bits) >> (64 - self.prefix_bits))
    }
}

/// Another image, and in how many bits its hash differs. The nearer comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neighbour {
    pub(crate) distance: u8,
    pub(crate) image: u32,
}

impl Neighbour {
    const BYTES: usize = 5;

    pub(crate) fn between(hash: u64, other: u64, image: u32) -> Self {
        Self { distance: (hash ^ other).count_ones() as u8, image }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.image.to_le_bytes();
        [self.distance, a, b, c, d]
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let [distance, image @ ..] = *bytes.first_chunk::<{ Self::BYTES }>()?;
        Some(Self { distance, image: u32::from_le_bytes(image) })
    }
}

/// The nearest neighbours that were met. A state is up to this many of them, the nearest first, each once.
struct Nearest(usize);

impl Nearest {
    fn decode(state: &[u8]) -> impl Iterator<Item = Neighbour> {
        state.chunks(Neighbour::BYTES).filter_map(Neighbour::of_bytes)
    }
}

impl Aggregate for Nearest {
    type Input<'a> = Neighbour;
    type Output = Vec<Neighbour>;

    fn state_type(&self) -> StateType {
        StateType::new("nearest", 1).with("k", self.0)
    }

    fn lift(&self, neighbour: Neighbour, state: &mut Vec<u8>) -> Result<()> {
        state.extend_from_slice(&neighbour.to_bytes());
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let mut met: Vec<Neighbour> = states.iter().flat_map(|state| Self::decode(state)).collect();
        met.sort_unstable();
        // A pair that agrees in two prefixes is met twice.
        met.dedup();
        met.truncate(self.0);
        met.iter().for_each(|neighbour| out.extend_from_slice(&neighbour.to_bytes()));
    }

    fn finish(&self, state: &[u8]) -> Result<Vec<Neighbour>> {
        match state.len() % Neighbour::BYTES {
            0 => Ok(Self::decode(state).collect()),
            _ => Err(self.state_type().malformed(state)),
        }
    }
}

/// What the jobs came to.
pub(crate) struct Found {
    /// By image, those that have any, the nearest first.
    pub(crate) nearest: Vec<(u32, Vec<Neighbour>)>,
    pub(crate) clusters: u64,
    /// That were compared.
    pub(crate) pairs: u64,
    /// What both jobs held at their ends.
    pub(crate) memory_bytes: usize,
}

pub(crate) fn find(hashes: &[u64], settings: Settings) -> Result<Found> {
    let clusters = cluster(hashes, settings)?;
    let function = Nearest(settings.nearest);
    let nearest = CompressedAggregator::new(function, options(settings))?;
    let mut found = Found { nearest: Vec::new(), clusters: 0, pairs: 0, memory_bytes: 0 };
    let members = Collect::list(usize::MAX)?;
    clusters.for_each(&mut |_, state| {
        let images = members.finish(state)?.values;
        let images: Vec<(u32, u64)> = images.iter().map(|image| decode(image)).collect::<Result<_>>()?;
        found.clusters += 1;
        for (place, (one, hash)) in images.iter().enumerate() {
            for (other, other_hash) in &images[place + 1..] {
                found.pairs += 1;
                nearest.add(&one.to_be_bytes(), Neighbour::between(*hash, *other_hash, *other))?;
                nearest.add(&other.to_be_bytes(), Neighbour::between(*hash, *other_hash, *one))?;
            }
        }
        Ok(())
    })?;
    nearest.finalize()?;
    found.memory_bytes = clusters.memory_bytes() + nearest.memory_bytes();
    let function = Nearest(settings.nearest);
    nearest.for_each(&mut |key, state| {
        let image = key.first_chunk().ok_or_else(|| function.state_type().malformed(key))?;
        found.nearest.push((u32::from_be_bytes(*image), function.finish(state)?));
        Ok(())
    })?;
    found.nearest.sort_unstable_by_key(|(image, _)| *image);
    Ok(found)
}

/// The first job: under each prefix of each rotation the images that have it, with their hashes.
fn cluster(hashes: &[u64], settings: Settings) -> Result<CompressedAggregator<Collect>> {
    let clusters = CompressedAggregator::new(Collect::list(usize::MAX)?, options(settings))?;
    for (image, hash) in (0_u32..).zip(hashes) {
        let mut member = [0; MEMBER_BYTES];
        member[..4].copy_from_slice(&image.to_be_bytes());
        member[4..].copy_from_slice(&hash.to_be_bytes());
        for (turn, prefix) in (0_u8..).zip(settings.prefixes(*hash)) {
            let mut key = [turn; 9];
            key[1..].copy_from_slice(&prefix.to_be_bytes());
            clusters.add(&key, &member)?;
        }
    }
    clusters.finalize()?;
    Ok(clusters)
}

const MEMBER_BYTES: usize = 12;

fn decode(member: &[u8]) -> Result<(u32, u64)> {
    let parts = member.split_first_chunk().and_then(|(image, hash)| Some((image, hash.first_chunk()?)));
    let (image, hash) = parts.ok_or_else(|| Error::invalid("an image of a cluster has too few bytes"))?;
    Ok((u32::from_be_bytes(*image), u64::from_be_bytes(*hash)))
}

fn options(settings: Settings) -> AggregatorOptions {
    AggregatorOptions::default().memory_limit(settings.memory_bytes)
}
