//! Whether an item came: Bloom filters. Of one that did the answer is yes; of another it is no, but for a stated share. Where
//! as many came as were foreseen, another filter is put behind, larger and with half the share, and so on.

use std::ops::Range;

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use super::wire::{Rest, hashes, place};
use super::{BYTES_MAX, damaged, too_large};
use crate::value::Type;

const MISSING: &str = "ERR not found";
const ERROR: f64 = 0.01;
const CAPACITY: u64 = 100;
const EXPANSION: u32 = 2;
const EXPANSION_MAX: u32 = 32_768;
/// The least share of wrong answers, and so many filters, or one item would take long.
const ERROR_MIN: f64 = 1e-9;
const FILTERS_MAX: usize = 32;

/// One filter of several.
struct Filter {
    capacity: u64,
    count: u64,
    hashes: u32,
    bits: Vec<u8>,
}

/// See the module.
struct Filters {
    error: f64,
    /// How much larger the next one is; none is where it is 0.
    expansion: u32,
    all: Vec<Filter>,
}

impl Filter {
    fn new(capacity: u64, error: f64) -> Result<Self, Refusal> {
        let ln2 = std::f64::consts::LN_2;
        let bits = (capacity as f64 * -error.ln() / (ln2 * ln2)).ceil();
        let bytes = (bits / 8.0).ceil().max(1.0);
        if bytes > BYTES_MAX as f64 {
            return Err(too_large());
        }
        let hashes = (-error.log2()).ceil().max(1.0) as u32;
        Ok(Self { capacity, count: 0, hashes, bits: vec![0; bytes as usize] })
    }

    fn places(&self, item: (u64, u64)) -> impl Iterator<Item = (usize, u8)> + use<> {
        places(self.hashes, self.bits.len(), item)
    }

    fn has(&self, item: (u64, u64)) -> bool {
        self.places(item).all(|(byte, bit)| self.bits[byte] & bit != 0)
    }
}

/// The bits of an item: bytes, and what is set in each.
fn places(hashes: u32, bytes: usize, item: (u64, u64)) -> impl Iterator<Item = (usize, u8)> + use<> {
    let bits = bytes as u64 * 8;
    (0..hashes).map(move |number| place(item, number, bits)).map(|bit| ((bit / 8) as usize, 1 << (bit % 8)))
}

/// A filter where it stands in a sketch.
struct Placed {
    capacity: u64,
    count: u64,
    hashes: u32,
    /// Where its count stands, and its bits.
    count_at: usize,
    bits: Range<usize>,
}

impl Placed {
    fn places(&self, item: (u64, u64)) -> impl Iterator<Item = (usize, u8)> + use<> {
        let start = self.bits.start;
        places(self.hashes, self.bits.len(), item).map(move |(byte, bit)| (start + byte, bit))
    }

    fn has(&self, sketch: &[u8], item: (u64, u64)) -> bool {
        self.places(item).all(|(byte, bit)| sketch[byte] & bit != 0)
    }
}

/// All filters of a sketch, if that is sound.
fn placed(bytes: &[u8]) -> Result<Vec<Placed>, Refusal> {
    let mut rest = Rest(bytes);
    let (error, expansion, mut all) = (f64::from_bits(rest.u64()?), rest.u32()?, Vec::new());
    while !rest.0.is_empty() {
        let capacity = rest.u64()?;
        let count_at = bytes.len() - rest.0.len();
        let (count, hashes, length) = (rest.u64()?, rest.u32()?, rest.u32()? as usize);
        let start = bytes.len() - rest.0.len();
        rest.bytes(length)?;
        let is_sound = capacity > 0 && count <= capacity && (1..=HASHES_MAX).contains(&hashes);
        if length == 0 || !is_sound {
            return Err(damaged());
        }
        all.push(Placed { capacity, count, hashes, count_at, bits: start..start + length });
    }
    let is_sound = (ERROR_MIN..1.0).contains(&error)
        && expansion <= EXPANSION_MAX
        && (1..=FILTERS_MAX).contains(&all.len())
        && bytes.len() <= BYTES_MAX;
    if is_sound { Ok(all) } else { Err(damaged()) }
}

/// Adds items where they stand, if the last filter has room for all of them. Returns which may be new.
fn add_within(sketch: &mut [u8], items: &[&[u8]]) -> Option<Vec<bool>> {
    let all = placed(sketch).ok()?;
    let last = all.last().filter(|last| last.count.saturating_add(items.len() as u64) <= last.capacity)?;
    let mut count = last.count;
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        let item = hashes(item);
        let is_new = !all.iter().any(|filter| filter.has(sketch, item));
        if is_new {
            last.places(item).for_each(|(byte, bit)| sketch[byte] |= bit);
            count += 1;
        }
        answers.push(is_new);
    }
    sketch[last.count_at..last.count_at + 8].copy_from_slice(&count.to_le_bytes());
    Some(answers)
}

/// No filter needs more: that of the least share, halved so many times.
const HASHES_MAX: u32 = 64;

impl Filters {
    fn new(capacity: u64, error: f64, expansion: u32) -> Result<Self, Refusal> {
        Ok(Self { error, expansion, all: vec![Filter::new(capacity, error)?] })
    }

    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = Rest(bytes);
        let (error, expansion) = (f64::from_bits(rest.u64()?), rest.u32()?);
        let filter = |one: Placed| Filter {
            capacity: one.capacity,
            count: one.count,
            hashes: one.hashes,
            bits: bytes[one.bits].to_vec(),
        };
        Ok(Self { error, expansion, all: placed(bytes)?.into_iter().map(filter).collect() })
    }

    fn write(&self, call: &mut Call<'_, '_>, key: &[u8]) -> Answer {
        let mut bytes = self.error.to_bits().to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.expansion.to_le_bytes());
        for filter in &self.all {
            bytes.extend_from_slice(&filter.capacity.to_le_bytes());
            bytes.extend_from_slice(&filter.count.to_le_bytes());
            bytes.extend_from_slice(&filter.hashes.to_le_bytes());
            bytes.extend_from_slice(&(filter.bits.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&filter.bits);
        }
        call.put_sketch(key, Type::Bloom, &bytes)
    }

    fn has(&self, item: &[u8]) -> bool {
        let item = hashes(item);
        self.all.iter().any(|filter| filter.has(item))
    }

    /// Returns whether it may be new.
    fn add(&mut self, item: &[u8]) -> Result<bool, Refusal> {
        if self.has(item) {
            return Ok(false);
        }
        let count = self.all.len() as i32;
        let last = self.all.last().ok_or_else(damaged)?;
        if last.count >= last.capacity {
            if self.expansion == 0 {
                return Err("ERR non scaling filter is full".into());
            }
            let capacity = last.capacity.saturating_mul(self.expansion.into());
            let next = Filter::new(capacity, self.error * 0.5_f64.powi(count))?;
            if self.all.len() == FILTERS_MAX || self.bytes() + next.bits.len() > BYTES_MAX / 2 {
                return Err(too_large());
            }
            self.all.push(next);
        }
        let last = self.all.last_mut().ok_or_else(damaged)?;
        last.count += 1;
        for (byte, bit) in last.places(hashes(item)) {
            last.bits[byte] |= bit;
        }
        Ok(true)
    }

    fn bytes(&self) -> usize {
        self.all.iter().map(|filter| filter.bits.len()).sum()
    }

    fn count(&self) -> u64 {
        self.all.iter().map(|filter| filter.count).sum()
    }
}

pub(super) fn reserve(call: &mut Call<'_, '_>) -> Answer {
    let (key, mut words) = (call.arguments[1], &call.arguments[4..]);
    let error = std::str::from_utf8(call.arguments[2]).ok().and_then(|text| text.parse::<f64>().ok());
    let error = error
        .filter(|error| *error >= ERROR_MIN && *error < 1.0)
        .ok_or("ERR the error rate is to be from 0.000000001 to 1")?;
    let capacity = integer(call.arguments[3]).ok().and_then(|capacity| u64::try_from(capacity).ok());
    let capacity =
        capacity.filter(|capacity| *capacity > 0).ok_or("ERR (capacity should be larger than 0)")?;
    let mut expansion = EXPANSION;
    loop {
        words = match words {
            [] => break,
            [word, rest @ ..] if is(word, "NONSCALING") => {
                expansion = 0;
                rest
            }
            [word, times, rest @ ..] if is(word, "EXPANSION") => {
                let times = integer(times).ok().and_then(|times| u32::try_from(times).ok());
                expansion = times.filter(|times| *times <= EXPANSION_MAX).ok_or("ERR bad expansion")?;
                rest
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    if call.stored(key)?.is_some() {
        return Err("ERR item exists".into());
    }
    Filters::new(capacity, error, expansion)?.write(call, key)?;
    call.reply.ok();
    Ok(())
}

fn read(call: &mut Call<'_, '_>) -> Result<Option<Filters>, Refusal> {
    call.sketch(call.arguments[1], Type::Bloom)?.map(Filters::read).transpose()
}

/// One answer, or one for each item where there may be several.
fn tell(call: &mut Call<'_, '_>, answers: &[bool]) {
    if call.arguments[0][3].eq_ignore_ascii_case(&b'M') {
        call.reply.array(answers.len());
    }
    answers.iter().for_each(|answer| call.reply.truth(*answer));
}

/// `BF.ADD` and `BF.MADD`: all items, or none.
pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let (key, items) = (call.arguments[1], &call.arguments[2..]);
    super::check_count(items)?;
    let mut answers = None;
    let change = |stored: &mut Vec<u8>| {
        answers = add_within(&mut stored[1..], items);
        answers.as_ref().is_some_and(|answers| answers.contains(&true))
    };
    call.edit_sketch(key, Type::Bloom, |sketch| placed(sketch).map(drop), change)?;
    if let Some(answers) = answers {
        tell(call, &answers);
        return Ok(());
    }
    let there = read(call)?;
    let mut filters = match there {
        Some(there) => there,
        None => Filters::new(CAPACITY, ERROR, EXPANSION)?,
    };
    let answers = items.iter().map(|item| filters.add(item)).collect::<Result<Vec<_>, _>>()?;
    if answers.contains(&true) {
        filters.write(call, key)?;
    }
    tell(call, &answers);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_, '_>) -> Answer {
    let (key, items) = (call.arguments[1], &call.arguments[2..]);
    super::check_count(items)?;
    let mut answers = vec![false; items.len()];
    let look = |stored: &mut Vec<u8>| {
        let sketch = &stored[1..];
        let all = placed(sketch).unwrap_or_default();
        for (answer, item) in answers.iter_mut().zip(items) {
            let item = hashes(item);
            *answer = all.iter().any(|filter| filter.has(sketch, item));
        }
        false
    };
    call.edit_sketch(key, Type::Bloom, |sketch| placed(sketch).map(drop), look)?;
    tell(call, &answers);
    Ok(())
}

pub(super) fn card(call: &mut Call<'_, '_>) -> Answer {
    let count = read(call)?.map_or(0, |filters| filters.count());
    call.reply.int(count.cast_signed());
    Ok(())
}

pub(super) fn info(call: &mut Call<'_, '_>) -> Answer {
    let filters = read(call)?.ok_or(MISSING)?;
    let capacity = filters.all.iter().map(|filter| filter.capacity).fold(0, u64::saturating_add);
    call.reply.map(5);
    for (name, number) in [
        ("Capacity", capacity),
        ("Size", filters.bytes() as u64),
        ("Number of filters", filters.all.len() as u64),
        ("Number of items inserted", filters.count()),
    ] {
        call.reply.bulk(name.as_bytes());
        call.reply.int(number.cast_signed());
    }
    call.reply.bulk(b"Expansion rate");
    match filters.expansion {
        0 => call.reply.null(),
        times => call.reply.int(times.into()),
    }
    Ok(())
}
