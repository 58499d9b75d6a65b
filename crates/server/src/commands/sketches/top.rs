//! The most frequent items, by Space-Saving: some more counters than are asked for. An item without one takes that of the
//! least, and its count. So a count is never too low, and too high by at most all that came, divided by the counters.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::super::{Answer, Call, Refusal, SYNTAX, integer, is};
use super::wire::Rest;
use super::{BYTES_MAX, damaged};
use crate::value::Type;

const MISSING: &str = "TopK: key does not exist";
/// As many counters for each item that is asked for.
const COUNTERS_OF_ONE: usize = 8;
const COUNT_MAX: u32 = 10_000;
const ITEM_BYTES_MAX: usize = 1024;
/// What a counter takes besides its item, and all of them together at most.
const COUNTER_BYTES: usize = 8 + 4;
const COUNTERS_BYTES_MAX: usize = BYTES_MAX - 64;
/// The most that an item is counted at once, as in other servers.
const MORE_MAX: i64 = 100_000;

/// See the module.
struct Top {
    asked: u32,
    /// What it was told besides, which others want to know: width, depth, and the bits of the decay.
    told: (u32, u32, u64),
    counters: Vec<(Vec<u8>, u64)>,
}

impl Top {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = Rest(bytes);
        let mut read =
            Self { asked: rest.u32()?, told: (rest.u32()?, rest.u32()?, rest.u64()?), counters: Vec::new() };
        while !rest.0.is_empty() {
            let (count, length) = (rest.u64()?, rest.u32()? as usize);
            read.counters.push((rest.bytes(length)?.to_vec(), count));
        }
        let most = read.asked as usize * COUNTERS_OF_ONE;
        let is_decay = (0.0..=1.0).contains(&f64::from_bits(read.told.2));
        if (1..=COUNT_MAX).contains(&read.asked) && read.counters.len() <= most && is_decay {
            Ok(read)
        } else {
            Err(damaged())
        }
    }

    fn write(&mut self, call: &mut Call<'_, '_>, key: &[u8]) -> Answer {
        let (width, depth, decay) = self.told;
        self.sort();
        let mut bytes = [self.asked, width, depth].map(u32::to_le_bytes).concat();
        bytes.extend_from_slice(&decay.to_le_bytes());
        for (item, count) in &self.counters {
            bytes.extend_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&(item.len() as u32).to_le_bytes());
            bytes.extend_from_slice(item);
        }
        call.put_sketch(key, Type::TopK, &bytes)
    }

    /// Greatest first, and of equal ones by their bytes.
    fn sort(&mut self) {
        self.counters.sort_unstable_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
    }

    /// Those that are asked for, in order.
    fn best(&mut self) -> &[(Vec<u8>, u64)] {
        self.sort();
        &self.counters[..self.counters.len().min(self.asked as usize)]
    }
}

/// The least count first, and of equal ones the item that comes last.
type Ranks = BTreeSet<(u64, Reverse<Vec<u8>>)>;

/// Counters while items come.
struct Ranked {
    asked: usize,
    counts: HashMap<Vec<u8>, u64>,
    best: Ranks,
    rest: Ranks,
    /// Which the counters take.
    bytes: usize,
}

impl Ranked {
    fn of(top: &mut Top) -> Result<Self, Refusal> {
        top.sort();
        let asked = top.asked as usize;
        let counters = std::mem::take(&mut top.counters);
        let ranks =
            |some: &[(Vec<u8>, u64)]| some.iter().map(|one| (one.1, Reverse(one.0.clone()))).collect();
        let (best, rest) = counters.split_at(asked.min(counters.len()));
        let (best, rest) = (ranks(best), ranks(rest));
        let (count, bytes) = (counters.len(), counters.iter().map(|one| COUNTER_BYTES + one.0.len()).sum());
        let counts: HashMap<_, _> = counters.into_iter().collect();
        match counts.len() == count {
            true => Ok(Self { asked, counts, best, rest, bytes }),
            false => Err(damaged()),
        }
    }

    /// Has there be room for another item. Returns how often that may have come, as it may be one that was dropped.
    fn make_room(&mut self, item: &[u8]) -> u64 {
        // Counters of many long items were fewer than there may be, and may be again.
        let may_have_dropped = self.bytes > COUNTERS_BYTES_MAX / 2;
        let mut least = self.rest.first().filter(|_| may_have_dropped).map_or(0, |one| one.0);
        self.bytes += COUNTER_BYTES + item.len();
        while self.counts.len() >= self.asked * COUNTERS_OF_ONE || self.bytes > COUNTERS_BYTES_MAX {
            let Some((count, Reverse(dropped))) = self.rest.pop_first() else { break };
            self.counts.remove(&dropped);
            self.bytes -= COUNTER_BYTES + dropped.len();
            least = count;
        }
        least
    }

    /// Counts an item. Returns the one that it has driven from the best.
    fn add(&mut self, item: &[u8], more: u64) -> Option<Vec<u8>> {
        let mut is_best = false;
        let before = match self.counts.get(item) {
            Some(&count) => {
                let rank = (count, Reverse(item.to_vec()));
                is_best = self.best.remove(&rank);
                self.rest.remove(&rank);
                count
            }
            None => self.make_room(item),
        };
        let count = before.saturating_add(more);
        self.counts.insert(item.to_vec(), count);
        let rank = (count, Reverse(item.to_vec()));
        let rises = self.best.first().is_none_or(|least| rank > *least);
        if !is_best && self.best.len() == self.asked && !rises {
            self.rest.insert(rank);
            return None;
        }
        let full = !is_best && self.best.len() == self.asked;
        let fell = if full { self.best.pop_first() } else { None };
        self.best.insert(rank);
        self.rest.extend(fell.clone());
        fell.map(|(_, Reverse(item))| item)
    }
}

pub(super) fn reserve(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arguments[1];
    let number = |argument: &[u8]| integer(argument).ok().and_then(|number| u32::try_from(number).ok());
    let asked = number(call.arguments[2]).filter(|asked| *asked > 0).ok_or("TopK: invalid k")?;
    if asked > COUNT_MAX {
        return Err(format!("TopK: k is at most {COUNT_MAX}").into());
    }
    let told = match &call.arguments[3..] {
        [] => (8, 7, 0.9_f64.to_bits()),
        [width, depth, decay] => {
            let decay = std::str::from_utf8(decay).ok().and_then(|text| text.parse::<f64>().ok());
            let decay = decay
                .filter(|decay| (0.0..=1.0).contains(decay))
                .ok_or("TopK: invalid decay value. must be '<= 1' & '> 0'")?;
            (
                number(width).ok_or("TopK: invalid width")?,
                number(depth).ok_or("TopK: invalid depth")?,
                decay.to_bits(),
            )
        }
        _ => return Err(super::super::wrong_arity("topk.reserve")),
    };
    if call.stored(key)?.is_some() {
        return Err("TopK: key already exists".into());
    }
    let mut top = Top { asked, told, counters: Vec::new() };
    top.write(call, key)?;
    call.reply.ok();
    Ok(())
}

fn read(call: &mut Call<'_, '_>) -> Result<Top, Refusal> {
    let key = call.arguments[1];
    Top::read(call.sketch_there(key, Type::TopK, MISSING)?)
}

/// `TOPK.ADD` and `TOPK.INCRBY`: answers for each item which one is no longer among the best.
pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let is_counted = is(call.arguments[0], "TOPK.INCRBY");
    let (items, step) = (&call.arguments[2..], if is_counted { 2 } else { 1 });
    if !items.len().is_multiple_of(step) {
        return Err(super::super::wrong_arity("topk.incrby"));
    }
    super::check_count(items)?;
    let mut top = read(call)?;
    let mut ranked = Ranked::of(&mut top)?;
    let mut gone = Vec::with_capacity(items.len() / step);
    for one in items.chunks(step) {
        if one[0].len() > ITEM_BYTES_MAX {
            return Err(format!("TopK: an item has at most {ITEM_BYTES_MAX} bytes").into());
        }
        let more = if is_counted { integer(one[1]).ok() } else { Some(1) };
        let more = more.filter(|more| (1..=MORE_MAX).contains(more));
        let more = more.ok_or("TopK: increment must be from 1 to 100000")?;
        gone.push(ranked.add(one[0], more.unsigned_abs()));
    }
    top.counters = ranked.counts.into_iter().collect();
    let key = call.arguments[1];
    top.write(call, key)?;
    call.reply.array(gone.len());
    gone.iter().for_each(|gone| call.reply.bulk_or_null(gone.as_deref()));
    Ok(())
}

/// Whether items are among the best.
pub(super) fn query(call: &mut Call<'_, '_>) -> Answer {
    let mut top = read(call)?;
    let best: HashMap<&[u8], u64> = top.best().iter().map(|one| (&one.0[..], one.1)).collect();
    call.reply.array(call.arguments.len() - 2);
    call.arguments[2..].iter().for_each(|item| call.reply.truth(best.contains_key(item)));
    Ok(())
}

pub(super) fn count(call: &mut Call<'_, '_>) -> Answer {
    let top = read(call)?;
    let counts: HashMap<&[u8], u64> = top.counters.iter().map(|one| (&one.0[..], one.1)).collect();
    call.reply.array(call.arguments.len() - 2);
    call.arguments[2..]
        .iter()
        .for_each(|item| call.reply.int(counts.get(item).map_or(0, |count| count.cast_signed())));
    Ok(())
}

pub(super) fn list(call: &mut Call<'_, '_>) -> Answer {
    let with_count = match &call.arguments[2..] {
        [] => false,
        [word] if is(word, "WITHCOUNT") => true,
        _ => return Err(SYNTAX.into()),
    };
    let mut top = read(call)?;
    let best = top.best();
    call.reply.array(best.len() * if with_count { 2 } else { 1 });
    for (item, count) in best {
        call.reply.bulk(item);
        if with_count {
            call.reply.int(count.cast_signed());
        }
    }
    Ok(())
}

pub(super) fn info(call: &mut Call<'_, '_>) -> Answer {
    let top = read(call)?;
    let (width, depth, decay) = top.told;
    call.reply.map(4);
    for (name, number) in [("k", top.asked), ("width", width), ("depth", depth)] {
        call.reply.bulk(name.as_bytes());
        call.reply.int(number.into());
    }
    call.reply.bulk(b"decay");
    call.reply.double(&f64::from_bits(decay).to_string());
    Ok(())
}
