//! How often each item came at most: Count-Min. Rows of counters, of which each item has one in each row; the least of them
//! is the answer.

use super::super::{Answer, Call, Refusal, containers, integer, is};
use super::wire::{Rest, hashes, place, u32_at, u64_at};
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
}

/// Where the numbers of a sound sketch stand, behind the byte of its type.
const WIDTH_AT: usize = 1;
const DEPTH_AT: usize = WIDTH_AT + 4;
const COUNT_AT: usize = DEPTH_AT + 4;
const CELLS_AT: usize = COUNT_AT + 8;

/// Where the counters of an item stand.
fn places(stored: &[u8], item: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let (hashes, width) = (hashes(item), u32_at(stored, WIDTH_AT));
    (0..u32_at(stored, DEPTH_AT)).map(move |row| {
        CELLS_AT + (row as usize * width as usize + place(hashes, row, width.into()) as usize) * CELL_BYTES
    })
}

/// Counts stop at the highest that a counter has.
fn add_to(stored: &mut [u8], item: &[u8], more: u32) -> u32 {
    let count = u64_at(stored, COUNT_AT).saturating_add(more.into());
    stored[COUNT_AT..CELLS_AT].copy_from_slice(&count.to_le_bytes());
    let mut least = u32::MAX;
    for at in places(stored, item) {
        let count = u32_at(stored, at).saturating_add(more);
        stored[at..at + CELL_BYTES].copy_from_slice(&count.to_le_bytes());
        least = least.min(count);
    }
    least
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
    let more = |count: &[u8]| size(count, "CMS: Cannot parse number");
    let counts = pairs.chunks(2).map(|pair| more(pair[1])).collect::<Result<Vec<_>, _>>();
    let mut least = Vec::new();
    let change = |stored: &mut Vec<u8>| match &counts {
        Ok(counts) => {
            least.extend(pairs.chunks(2).zip(counts).map(|(pair, more)| add_to(stored, pair[0], *more)));
            true
        }
        Err(_) => false,
    };
    call.edit_sketch(key, Type::CountMin, |sketch| CountMin::read(sketch).map(drop), change)?
        .ok_or(MISSING)?;
    counts?;
    call.reply.array(least.len());
    least.iter().for_each(|least| call.reply.int(i64::from(*least)));
    Ok(())
}

pub(super) fn query(call: &mut Call<'_, '_>) -> Answer {
    let (key, items) = (call.arguments[1], &call.arguments[2..]);
    super::check_count(items)?;
    let mut found = Vec::new();
    let look = |stored: &mut Vec<u8>| {
        let least = |item: &&[u8]| places(stored, item).map(|at| u32_at(stored, at)).min().unwrap_or(0);
        found.extend(items.iter().map(least));
        false
    };
    call.edit_sketch(key, Type::CountMin, |sketch| CountMin::read(sketch).map(drop), look)?.ok_or(MISSING)?;
    call.reply.array(found.len());
    found.iter().for_each(|found| call.reply.int(i64::from(*found)));
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
