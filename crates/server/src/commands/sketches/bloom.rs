//! Whether an item came: Bloom filters. Of one that did the answer is yes; of another it is no, but for a stated share. Where
//! as many came as were foreseen, another filter is put behind, larger and with half the share, and so on.

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
        let bits = self.bits.len() as u64 * 8;
        (0..self.hashes)
            .map(move |number| place(item, number, bits))
            .map(|bit| ((bit / 8) as usize, 1 << (bit % 8)))
    }

    fn has(&self, item: (u64, u64)) -> bool {
        self.places(item).all(|(byte, bit)| self.bits[byte] & bit != 0)
    }
}

/// No filter needs more: that of the least share, halved so many times.
const HASHES_MAX: u32 = 64;

impl Filters {
    fn new(capacity: u64, error: f64, expansion: u32) -> Result<Self, Refusal> {
        Ok(Self { error, expansion, all: vec![Filter::new(capacity, error)?] })
    }

    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = Rest(bytes);
        let mut read = Self { error: f64::from_bits(rest.u64()?), expansion: rest.u32()?, all: Vec::new() };
        while !rest.0.is_empty() {
            let (capacity, count, hashes) = (rest.u64()?, rest.u64()?, rest.u32()?);
            let length = rest.u32()? as usize;
            let bits = rest.bytes(length)?.to_vec();
            let is_sound = capacity > 0 && count <= capacity && (1..=HASHES_MAX).contains(&hashes);
            if bits.is_empty() || !is_sound {
                return Err(damaged());
            }
            read.all.push(Filter { capacity, count, hashes, bits });
        }
        let is_sound = (ERROR_MIN..1.0).contains(&read.error)
            && read.expansion <= EXPANSION_MAX
            && (1..=FILTERS_MAX).contains(&read.all.len())
            && bytes.len() <= BYTES_MAX;
        if is_sound { Ok(read) } else { Err(damaged()) }
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
    super::check_count(&call.arguments[2..])?;
    let there = read(call)?;
    let mut filters = match there {
        Some(there) => there,
        None => Filters::new(CAPACITY, ERROR, EXPANSION)?,
    };
    let answers = call.arguments[2..].iter().map(|item| filters.add(item)).collect::<Result<Vec<_>, _>>()?;
    if answers.contains(&true) {
        let key = call.arguments[1];
        filters.write(call, key)?;
    }
    tell(call, &answers);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_, '_>) -> Answer {
    super::check_count(&call.arguments[2..])?;
    let filters = read(call)?;
    let has = |item: &&[u8]| filters.as_ref().is_some_and(|filters| filters.has(item));
    let answers: Vec<bool> = call.arguments[2..].iter().map(has).collect();
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
