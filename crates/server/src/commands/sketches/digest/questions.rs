//! What a digest is asked.

use super::super::super::{Answer, Call, Refusal, integer, numbers};
use super::super::check_count;
use super::{Estimates, STATE_COMPRESSION_MIN, WAITING_MAX, read};

fn estimates(call: &mut Call<'_, '_>) -> Result<Option<Estimates>, Refusal> {
    let key = call.arguments[1];
    read(call, key)?.estimates()
}

fn tell(call: &mut Call<'_, '_>, number: f64) {
    match number.is_nan() {
        true => call.reply.double("nan"),
        false => call.reply.double(&numbers::shown(number)),
    }
}

/// Answers one question for each argument behind the key.
fn each<T>(
    call: &mut Call<'_, '_>,
    parse: impl Fn(&[u8]) -> Result<T, Refusal>,
    answer: impl Fn(Option<&Estimates>, T) -> f64,
    tell: impl Fn(&mut Call<'_, '_>, f64),
) -> Answer {
    let items = &call.arguments[2..];
    check_count(items)?;
    let found = estimates(call)?;
    let asked = items.iter().map(|item| parse(item)).collect::<Result<Vec<_>, _>>()?;
    call.reply.array(asked.len());
    asked.into_iter().for_each(|one| tell(call, answer(found.as_ref(), one)));
    Ok(())
}

fn number(argument: &[u8], error: &'static str) -> Result<f64, Refusal> {
    numbers::score(argument).ok_or(error.into())
}

pub(in super::super) fn quantile(call: &mut Call<'_, '_>) -> Answer {
    let share = |argument: &[u8]| {
        let share = number(argument, "ERR T-Digest: error parsing quantile")?;
        let is_share = (0.0..=1.0).contains(&share);
        is_share.then_some(share).ok_or(Refusal::from("ERR T-Digest: quantile should be in [0,1]"))
    };
    let value = |found: Option<&Estimates>, share: f64| {
        found.map_or(f64::NAN, |found| found.value_at(share * found.count as f64))
    };
    each(call, share, value, tell)
}

fn value(argument: &[u8]) -> Result<f64, Refusal> {
    number(argument, "ERR T-Digest: error parsing value")
}

pub(in super::super) fn cdf(call: &mut Call<'_, '_>) -> Answer {
    let share = |found: Option<&Estimates>, value: f64| {
        found.map_or(f64::NAN, |found| found.rank(value) / found.count as f64)
    };
    each(call, |argument| number(argument, "ERR T-Digest: error parsing cdf"), share, tell)
}

fn tell_rank(call: &mut Call<'_, '_>, rank: f64) {
    // A half is not yet one more.
    call.reply.int((rank - 0.5).ceil() as i64);
}

/// No rank is of nothing, and none outside of all is told as one.
const OF_NOTHING: f64 = -2.0;
const OUTSIDE: f64 = -1.0;

pub(in super::super) fn rank(call: &mut Call<'_, '_>) -> Answer {
    let rank = |found: Option<&Estimates>, value: f64| match found {
        None => OF_NOTHING,
        Some(found) if value < found.least => OUTSIDE,
        Some(found) => found.rank(value),
    };
    each(call, value, rank, tell_rank)
}

pub(in super::super) fn reverse_rank(call: &mut Call<'_, '_>) -> Answer {
    let rank = |found: Option<&Estimates>, value: f64| match found {
        None => OF_NOTHING,
        Some(found) if value > found.greatest => OUTSIDE,
        Some(found) => found.count as f64 - found.rank(value),
    };
    each(call, value, rank, tell_rank)
}

fn place(argument: &[u8]) -> Result<u64, Refusal> {
    let place = integer(argument).map_err(|_| Refusal::from("ERR T-Digest: error parsing rank"))?;
    u64::try_from(place).map_err(|_| "ERR T-Digest: rank needs to be non negative".into())
}

/// The value of a rank, from the least on; the last is the greatest exactly.
fn of_rank(found: &Estimates, place: u64) -> f64 {
    if place + 1 == found.count { found.greatest } else { found.value_at(place as f64) }
}

pub(in super::super) fn by_rank(call: &mut Call<'_, '_>) -> Answer {
    let value = |found: Option<&Estimates>, place: u64| match found {
        None => f64::NAN,
        Some(found) if place >= found.count => f64::INFINITY,
        Some(found) => of_rank(found, place),
    };
    each(call, place, value, tell)
}

pub(in super::super) fn by_reverse_rank(call: &mut Call<'_, '_>) -> Answer {
    let value = |found: Option<&Estimates>, place: u64| match found {
        None => f64::NAN,
        Some(found) if place >= found.count => f64::NEG_INFINITY,
        Some(found) => of_rank(found, found.count - 1 - place),
    };
    each(call, place, value, tell)
}

pub(in super::super) fn min(call: &mut Call<'_, '_>) -> Answer {
    let least = estimates(call)?.map_or(f64::NAN, |found| found.least);
    tell(call, least);
    Ok(())
}

pub(in super::super) fn max(call: &mut Call<'_, '_>) -> Answer {
    let greatest = estimates(call)?.map_or(f64::NAN, |found| found.greatest);
    tell(call, greatest);
    Ok(())
}

pub(in super::super) fn trimmed_mean(call: &mut Call<'_, '_>) -> Answer {
    let found = estimates(call)?;
    let low = number(call.arguments[2], "ERR T-Digest: error parsing low_cut_percentile")?;
    let high = number(call.arguments[3], "ERR T-Digest: error parsing high_cut_percentile")?;
    if !(0.0..=1.0).contains(&low) || !(0.0..=1.0).contains(&high) {
        return Err("ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]".into());
    }
    if low >= high {
        return Err("ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile".into());
    }
    tell(call, found.map_or(f64::NAN, |found| found.mean_between(low, high)));
    Ok(())
}

pub(in super::super) fn info(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let digest = read(call, key)?;
    let (compression, merges) = (u64::from(digest.compression), digest.merges);
    let (waiting, bytes) = (digest.waiting.len() as u64, digest.state.len() as u64);
    let capacity = 2 * compression.max(STATE_COMPRESSION_MIN.into()) + 10 + WAITING_MAX as u64;
    let merged = match digest.state.is_empty() {
        true => (0, 0),
        false => {
            let centroids = digest.function()?.centroids(&digest.state).map_err(|_| super::damaged())?;
            (centroids.all.len() as u64, centroids.all.iter().map(|one| one.1).sum())
        }
    };
    call.reply.map(9);
    for (name, number) in [
        ("Compression", compression),
        ("Capacity", capacity),
        ("Merged nodes", merged.0),
        ("Unmerged nodes", waiting),
        ("Merged weight", merged.1),
        ("Unmerged weight", waiting),
        ("Observations", merged.1 + waiting),
        ("Total compressions", merges),
        ("Memory usage", 16 + 8 * waiting + bytes),
    ] {
        call.reply.bulk(name.as_bytes());
        call.reply.int(number.cast_signed());
    }
    Ok(())
}
