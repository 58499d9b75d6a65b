//! Which value stands at which share of all, by a t-digest: the state is that of the function `approx_quantile`, so other
//! libraries read it. Values that have come since stand beside it, and are merged with it many at a time.

mod estimates;
mod questions;

use forebay_aggregate::Aggregate;
use forebay_aggregate::functions::ApproxQuantiles;

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is, numbers};
use super::damaged;
use super::wire::Rest;
use crate::value::Type;
use estimates::Estimates;

pub(super) use questions::{
    by_rank, by_reverse_rank, cdf, info, max, min, quantile, rank, reverse_rank, trimmed_mean,
};

const MISSING: &str = "ERR T-Digest: key does not exist";
const COMPRESSION: u32 = 100;
/// A state of so much takes 320 KiB.
const COMPRESSION_MAX: u32 = 10_000;
/// The least that a state has; of less the answers are only better than asked.
const STATE_COMPRESSION_MIN: u32 = 10;
/// So many values wait until they are merged.
const WAITING_MAX: usize = 512;
/// No digest has more: sums of some stay whole numbers in 64 bits.
const COUNT_MAX: u64 = 1 << 53;

/// See the module.
struct Digest {
    compression: u32,
    /// How often values that waited were merged.
    merges: u64,
    waiting: Vec<f64>,
    /// Of nothing empty.
    state: Vec<u8>,
}

impl Digest {
    fn new(compression: u32) -> Self {
        Self { compression, merges: 0, waiting: Vec::new(), state: Vec::new() }
    }

    fn function(&self) -> Result<ApproxQuantiles, Refusal> {
        Ok(ApproxQuantiles::new(self.compression.max(STATE_COMPRESSION_MIN) as u16, [0.5])?)
    }

    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = Rest(bytes);
        let mut read = Self::new(rest.u32()?);
        read.merges = rest.u64()?;
        let count = rest.u32()? as usize;
        if !(1..=COMPRESSION_MAX).contains(&read.compression) || count > WAITING_MAX {
            return Err(damaged());
        }
        for _ in 0..count {
            read.waiting.push(f64::from_bits(rest.u64()?));
        }
        read.state = rest.0.to_vec();
        if read.waiting.iter().all(|value| value.is_finite()) { Ok(read) } else { Err(damaged()) }
    }

    fn write(&self, call: &mut Call<'_, '_>, key: &[u8]) -> Answer {
        let mut bytes = self.compression.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.merges.to_le_bytes());
        bytes.extend_from_slice(&(self.waiting.len() as u32).to_le_bytes());
        self.waiting.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes.extend_from_slice(&self.state);
        call.put_sketch(key, Type::TDigest, &bytes)
    }

    /// Merges states of its own compression with its own.
    fn merge(&mut self, states: &[&[u8]]) -> Answer {
        let function = self.function()?;
        let all: Vec<&[u8]> = [&self.state[..]].into_iter().chain(states.iter().copied()).collect();
        let all: Vec<&[u8]> = all.into_iter().filter(|state| !state.is_empty()).collect();
        // One that cannot be read would be left out, and lost.
        let mut count = 0;
        for state in &all {
            let of = function.centroids(state).map_err(|_| damaged())?;
            count = of.all.iter().map(|one| one.1).fold(count, u64::saturating_add);
        }
        if count > COUNT_MAX {
            return Err("ERR T-Digest: overflow detected".into());
        }
        let mut merged = Vec::new();
        if !all.is_empty() {
            function.merge(&all, &mut merged);
        }
        (self.state, self.merges) = (merged, self.merges.saturating_add(1));
        Ok(())
    }

    fn merge_waiting(&mut self) -> Answer {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let state = self.function()?.of_values(waiting);
        self.merge(&[&state])
    }

    fn add(&mut self, mut values: Vec<f64>) -> Answer {
        self.waiting.append(&mut values);
        if self.waiting.len() > WAITING_MAX { self.merge_waiting() } else { Ok(()) }
    }

    /// What it answers, or nothing of nothing.
    fn estimates(mut self) -> Result<Option<Estimates>, Refusal> {
        self.merge_waiting()?;
        if self.state.is_empty() {
            return Ok(None);
        }
        let centroids = self.function()?.centroids(&self.state).map_err(|_| damaged())?;
        Ok(Some(Estimates::new(&centroids)))
    }
}

fn read(call: &mut Call<'_, '_>, key: &[u8]) -> Result<Digest, Refusal> {
    Digest::read(call.sketch_there(key, Type::TDigest, MISSING)?)
}

fn compression(argument: &[u8]) -> Result<u32, Refusal> {
    let asked = integer(argument).map_err(|_| "ERR T-Digest: error parsing compression parameter")?;
    if asked <= 0 {
        return Err("ERR T-Digest: compression parameter needs to be a positive integer".into());
    }
    let asked = u32::try_from(asked).ok().filter(|asked| *asked <= COMPRESSION_MAX);
    asked.ok_or_else(|| format!("ERR T-Digest: compression is at most {COMPRESSION_MAX}").into())
}

pub(super) fn create(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let asked = match &call.arguments[2..] {
        [] => COMPRESSION,
        [word, asked] if is(word, "COMPRESSION") => compression(asked)?,
        _ => return Err(super::super::wrong_arity("tdigest.create")),
    };
    if call.stored(key)?.is_some() {
        return Err("ERR T-Digest: key already exists".into());
    }
    Digest::new(asked).write(call, key)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let (key, items) = (call.arguments[1], &call.arguments[2..]);
    super::check_count(items)?;
    let mut digest = read(call, key)?;
    let values = items.iter().map(|item| {
        let value = numbers::score(item).ok_or("ERR T-Digest: error parsing val parameter")?;
        let is_finite = value.is_finite();
        is_finite
            .then_some(value)
            .ok_or(Refusal::from("ERR T-Digest: val parameter needs to be a finite number"))
    });
    let values = values.collect::<Result<Vec<_>, _>>()?;
    digest.add(values)?;
    digest.write(call, key)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn reset(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let digest = read(call, key)?;
    Digest::new(digest.compression).write(call, key)?;
    call.reply.ok();
    Ok(())
}

/// What stands behind the sources of a merge: a compression, and whether the target is made anew.
fn merge_options(mut words: &[&[u8]]) -> Result<(Option<u32>, bool), Refusal> {
    let (mut asked, mut is_new) = (None, false);
    loop {
        words = match words {
            [] => return Ok((asked, is_new)),
            [word, rest @ ..] if is(word, "OVERRIDE") => {
                is_new = true;
                rest
            }
            [word, number, rest @ ..] if is(word, "COMPRESSION") => {
                asked = Some(compression(number)?);
                rest
            }
            _ => return Err(SYNTAX.into()),
        };
    }
}

/// `TDIGEST.MERGE target count source .. [COMPRESSION c] [OVERRIDE]`: the target has what all of them have, and what it had
/// before.
pub(super) fn merge(call: &mut Call<'_, '_>) -> Answer {
    let count = integer(call.arguments[2]).map_err(|_| "ERR T-Digest: error parsing numkeys")?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or("ERR T-Digest: numkeys needs to be a positive integer")?;
    let (target, rest) = (call.arguments[1], &call.arguments[3..]);
    let (sources, words) = rest.split_at_checked(count).ok_or(super::super::wrong_arity("tdigest.merge"))?;
    super::check_count(sources)?;
    let (asked, is_new) = merge_options(words)?;
    let mut budget = call.budget();
    let mut digests = Vec::with_capacity(sources.len().min(1024));
    let there = call.sketch(target, Type::TDigest)?.map(Digest::read).transpose()?;
    let kept = there.filter(|_| !is_new);
    let known = kept.as_ref().map(|kept| kept.compression);
    digests.extend(kept);
    for source in sources {
        let mut digest = read(call, source)?;
        digest.merge_waiting()?;
        budget.take(digest.state.len() + size_of::<Digest>())?;
        digests.push(digest);
    }
    let most = digests.iter().map(|digest| digest.compression).max();
    let mut merged = Digest::new(asked.or(known).or(most).unwrap_or(COMPRESSION));
    let function = merged.function()?;
    let mut states = Vec::with_capacity(digests.len());
    for mut digest in digests {
        digest.merge_waiting()?;
        if !digest.state.is_empty() {
            states.push(function.converted(&digest.state).map_err(|_| damaged())?);
        }
    }
    merged.merge(&states.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    merged.write(call, target)?;
    call.reply.ok();
    Ok(())
}
