//! How often each item came at most: Count-Min. Rows of counters, of which each item has one in each row; the least of them
//! is the answer.

use super::super::{Answer, Call, Refusal, containers, integer, is};
use super::wire::{Rest, hashes, place};
use super::{BYTES_MAX, damaged, too_large};
use crate::value::Type;

const MISSING: &str = "CMS: key does not exist";
const CELL_BYTES: usize = 4;
/// Each item is looked for in all rows.
const DEPTH_MAX: u32 = 64;

/// See the module.
#[derive(Clone)]
struct CountMin {
    width: u32,
    depth: u32,
    count: u64,
    cells: Vec<u32>,
}

impl CountMin {
    fn new(width: u32, depth: u32) -> Result<Self, Refusal> {
        let cells = (width as usize).checked_mul(depth as usize);
        let cells = cells
            .filter(|cells| *cells <= BYTES_MAX / CELL_BYTES - 8 && depth <= DEPTH_MAX)
            .ok_or_else(too_large)?;
        Ok(Self { width, depth, count: 0, cells: vec![0; cells] })
    }

    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = Rest(bytes);
        let mut read = Self::new(rest.u32()?, rest.u32()?)?;
        read.count = rest.u64()?;
        for cell in &mut read.cells {
            *cell = rest.u32()?;
        }
        if rest.0.is_empty() && read.width > 0 && read.depth > 0 { Ok(read) } else { Err(damaged()) }
    }

    fn write(&self, call: &mut Call<'_, '_>, key: &[u8]) -> Answer {
        let mut bytes = [self.width, self.depth].map(u32::to_le_bytes).concat();
        bytes.extend_from_slice(&self.count.to_le_bytes());
        self.cells.iter().for_each(|cell| bytes.extend_from_slice(&cell.to_le_bytes()));
        call.put_sketch(key, Type::CountMin, &bytes)
    }

    fn places(&self, item: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let (hashes, width) = (hashes(item), self.width);
        (0..self.depth)
            .map(move |row| row as usize * width as usize + place(hashes, row, width.into()) as usize)
    }

    /// Counts stop at the highest that a counter has.
    fn add(&mut self, item: &[u8], more: u32) -> u32 {
        self.count = self.count.saturating_add(more.into());
        let mut least = u32::MAX;
        for place in self.places(item) {
            self.cells[place] = self.cells[place].saturating_add(more);
            least = least.min(self.cells[place]);
        }
        least
    }

    fn query(&self, item: &[u8]) -> u32 {
        self.places(item).map(|place| self.cells[place]).min().unwrap_or(0)
    }
}

fn create(call: &mut Call<'_, '_>, width: u32, depth: u32) -> Answer {
    let key = call.arguments[1];
    if call.stored(key)?.is_some() {
        return Err("CMS: key already exists".into());
    }
    CountMin::new(width, depth)?.write(call, key)?;
    call.reply.ok();
    Ok(())
}

fn size(argument: &[u8], error: &'static str) -> Result<u32, Refusal> {
    let size = integer(argument).ok().and_then(|size| u32::try_from(size).ok());
    size.filter(|size| *size > 0).ok_or(error.into())
}

pub(super) fn by_size(call: &mut Call<'_, '_>) -> Answer {
    let width = size(call.arguments[2], "CMS: invalid width")?;
    let depth = size(call.arguments[3], "CMS: invalid depth")?;
    create(call, width, depth)
}

/// By the share of all that an answer may be too high, and how likely more is.
pub(super) fn by_error(call: &mut Call<'_, '_>) -> Answer {
    let share = |argument: &[u8], error: &'static str| {
        let share = std::str::from_utf8(argument).ok().and_then(|text| text.parse::<f64>().ok());
        share.filter(|share| *share > 0.0 && *share < 1.0).ok_or(Refusal::from(error))
    };
    let error = share(call.arguments[2], "CMS: invalid overestimation value")?;
    let unlikely = share(call.arguments[3], "CMS: invalid prob value")?;
    create(call, (2.0 / error).ceil() as u32, (unlikely.log10() / 0.5_f64.log10()).ceil() as u32)
}

fn read(call: &mut Call<'_, '_>, key: &[u8]) -> Result<CountMin, Refusal> {
    CountMin::read(call.sketch_there(key, Type::CountMin, MISSING)?)
}

pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let (key, pairs) = (call.arguments[1], &call.arguments[2..]);
    if !pairs.len().is_multiple_of(2) {
        return Err(super::super::wrong_arity("cms.incrby"));
    }
    super::check_count(pairs)?;
    let mut sketch = read(call, key)?;
    let more = |count: &[u8]| size(count, "CMS: Cannot parse number");
    let counts = pairs.chunks(2).map(|pair| more(pair[1])).collect::<Result<Vec<_>, _>>()?;
    let least: Vec<u32> = pairs.chunks(2).zip(counts).map(|(pair, more)| sketch.add(pair[0], more)).collect();
    sketch.write(call, key)?;
    call.reply.array(least.len());
    least.iter().for_each(|least| call.reply.int(i64::from(*least)));
    Ok(())
}

pub(super) fn query(call: &mut Call<'_, '_>) -> Answer {
    super::check_count(&call.arguments[2..])?;
    let key = call.arguments[1];
    let sketch = read(call, key)?;
    call.reply.array(call.arguments.len() - 2);
    call.arguments[2..].iter().for_each(|item| call.reply.int(i64::from(sketch.query(item))));
    Ok(())
}

/// `CMS.MERGE target count source .. [WEIGHTS weight ..]`: the target holds the sum of the others then.
pub(super) fn merge(call: &mut Call<'_, '_>) -> Answer {
    let (target, (sources, words)) = (call.arguments[1], containers::counted_of(&call.arguments[1..])?);
    super::check_count(sources)?;
    let weights = match words {
        [] => vec![1; sources.len()],
        [word, weights @ ..] if is(word, "WEIGHTS") && weights.len() == sources.len() => {
            let weights = weights.iter().map(|weight| size(weight, "CMS: Cannot parse number"));
            weights.collect::<Result<Vec<u32>, _>>()?
        }
        _ => return Err(super::super::SYNTAX.into()),
    };
    let known = read(call, target)?;
    let mut sum = CountMin::new(known.width, known.depth)?;
    let mut budget = call.budget();
    for (source, weight) in sources.iter().zip(weights) {
        let source = read(call, source)?;
        budget.take(source.cells.len() * CELL_BYTES)?;
        if (source.width, source.depth) != (sum.width, sum.depth) {
            return Err("CMS: width/depth is not equal".into());
        }
        sum.count = sum.count.saturating_add(source.count.saturating_mul(weight.into()));
        for (cell, more) in sum.cells.iter_mut().zip(source.cells) {
            *cell = cell.saturating_add(more.saturating_mul(weight));
        }
    }
    sum.write(call, target)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn info(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let sketch = read(call, key)?;
    call.reply.map(3);
    for (name, number) in
        [("width", sketch.width.into()), ("depth", sketch.depth.into()), ("count", sketch.count)]
    {
        call.reply.bulk(name.as_bytes());
        call.reply.int(number.cast_signed());
    }
    Ok(())
}
