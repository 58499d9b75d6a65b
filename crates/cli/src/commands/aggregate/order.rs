//! The order in which groups are shown: as they come, by their keys, or the largest only.
//!
//! Groups of a database may be in order already, but for n-grams, whose numbers have to be put in the order of their
//! words. Others are sorted in memory, part by part, so that no copy of all is there at a time; where they are in files
//! or memory is short, by an external sort.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use forebay::Error;
use forebay_aggregate::{Aggregator, Order, Value, Visit};

use super::engine::Measure;
use super::groups::Groups;
use super::labels::Labels;

/// A part takes this share of what all groups take,
const PART_SHARE: usize = 3;
/// or this much where that is more.
const PART_BYTES_MIN: usize = 4 << 20;
/// More walks over all groups than these cost more than an external sort does.
const WALKS_MAX: usize = 16;
/// Keys that tell where parts begin, and how much is kept of each.
const SAMPLED_KEYS_MAX: usize = 2048;
const SAMPLED_KEY_BYTES_MAX: usize = 128;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    AsTheyCome,
    ByKey,
    Largest(usize),
}

/// Shows groups with the keys that labels give them. Returns how many there are, shown or not.
pub(super) fn for_each<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    ordering: Arrangement,
    visit: &mut Visit<'_>,
) -> Result<u64, Error> {
    let mut count = 0;
    let counted = &mut |key: &[u8], state: &[u8]| {
        count += 1;
        visit(key, state)
    };
    match ordering {
        Arrangement::AsTheyCome => relabelled(groups, labels, counted)?,
        Arrangement::ByKey => by_key(groups, labels, counted)?,
        Arrangement::Largest(most) => return largest(groups, labels, most, visit),
    }
    Ok(count)
}

fn relabelled<A: Measure>(groups: &Groups<A>, labels: &Labels, visit: &mut Visit<'_>) -> Result<(), Error> {
    let mut buffer = Vec::new();
    groups.held.for_each(&mut |key, state| visit(labels.shown(key, &mut buffer), state))
}

/// One part after the other in memory, each found by a walk over all; what is in no such order an external sort has.
fn by_key<A: Measure>(groups: &Groups<A>, labels: &Labels, visit: &mut Visit<'_>) -> Result<(), Error> {
    if groups.held.is_sorted() && labels.keep_order() {
        return groups.held.for_each(visit);
    }
    if groups.held.is_spilled() {
        return sorted_in_files(groups, labels, b"", visit);
    }
    let mut sample = Sample::default();
    relabelled(groups, labels, &mut |key, state| {
        sample.take(key, state);
        Ok(())
    })?;
    let Some(part_bytes) = part_bytes(groups, sample.bytes) else {
        return sorted_in_files(groups, labels, b"", visit);
    };
    let parts = sample.bytes.div_ceil(part_bytes);
    let bounds = sample.bounds(parts);
    let mut from: &[u8] = b"";
    for end in bounds.iter().map(|bound| Some(&bound[..])).chain([None]) {
        let Some(mut part) = Part::gather(groups, labels, (from, end), 2 * part_bytes)? else {
            return sorted_in_files(groups, labels, from, visit);
        };
        part.show(visit)?;
        from = end.unwrap_or_default();
    }
    Ok(())
}

/// How much of a copy of all groups, which takes so many bytes, is there at a time; nothing where that would take too
/// many walks, or more memory than there is.
fn part_bytes<A: Measure>(groups: &Groups<A>, copy_bytes: usize) -> Option<usize> {
    let held_bytes = groups.held.memory_bytes();
    // A part may turn out twice as long as was thought.
    let left_bytes = groups.means.memory_bytes.saturating_sub(held_bytes) / 2;
    let (bytes, walks_max) = match groups.held.is_stored() {
        true => (left_bytes, 1),
        false => ((held_bytes / PART_SHARE).max(PART_BYTES_MIN).min(left_bytes), WALKS_MAX),
    };
    (copy_bytes <= bytes.saturating_mul(walks_max)).then_some(bytes.max(1))
}

/// The keys from one on, by an external sort.
fn sorted_in_files<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    from: &[u8],
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut sorter = groups.means.sorter(&groups.function)?;
    relabelled(groups, labels, &mut |key, state| {
        if key >= from { sorter.sort.add_state(key, state) } else { Ok(()) }
    })?;
    sorter.sort.finalize()?;
    sorter.sort.for_each(visit)
}

/// Keys of groups at even distances, and how much memory a copy of all takes.
#[derive(Default)]
struct Sample {
    bytes: usize,
    count: usize,
    /// The distance is two to this power.
    power: u32,
    keys: Vec<Vec<u8>>,
}

impl Sample {
    fn take(&mut self, key: &[u8], state: &[u8]) {
        self.bytes += size_of::<Entry>() + key.len() + state.len();
        if self.count.is_multiple_of(1 << self.power) {
            self.keys.push(key[..key.len().min(SAMPLED_KEY_BYTES_MAX)].to_vec());
            if self.keys.len() == SAMPLED_KEYS_MAX {
                let mut is_kept = false;
                self.keys.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.power += 1;
            }
        }
        self.count += 1;
    }

    /// Keys that divide all groups into about so many equal parts.
    fn bounds(mut self, parts: usize) -> Vec<Vec<u8>> {
        self.keys.sort_unstable();
        let mut bounds: Vec<_> =
            (1..parts).filter_map(|part| self.keys.get(part * self.keys.len() / parts).cloned()).collect();
        bounds.dedup();
        bounds
    }
}

/// A group in a copy.
struct Entry {
    prefix: u64,
    start: usize,
    key_bytes: u32,
    state_bytes: u32,
}

impl Entry {
    fn split<'a>(&self, copy: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let end = self.start + self.key_bytes as usize + self.state_bytes as usize;
        copy[self.start..end].split_at(self.key_bytes as usize)
    }
}

/// Groups whose keys lie between two.
#[derive(Default)]
struct Part {
    entries: Vec<Entry>,
    copy: Vec<u8>,
}

impl Part {
    /// Nothing where it takes more than so many bytes.
    fn gather<A: Measure>(
        groups: &Groups<A>,
        labels: &Labels,
        (from, end): (&[u8], Option<&[u8]>),
        bytes_max: usize,
    ) -> Result<Option<Self>, Error> {
        let Self { mut entries, mut copy } = Self::default();
        let mut fits = true;
        relabelled(groups, labels, &mut |key, state| {
            if key < from || end.is_some_and(|end| key >= end) || !fits {
                return Ok(());
            }
            grow(&mut entries, 1);
            grow(&mut copy, key.len() + state.len());
            entries.push(Entry {
                prefix: Order::Lexical.prefix(key),
                start: copy.len(),
                key_bytes: key.len() as u32,
                state_bytes: state.len() as u32,
            });
            copy.extend_from_slice(key);
            copy.extend_from_slice(state);
            fits = size_of::<Entry>() * entries.capacity() + copy.capacity() <= bytes_max;
            Ok(())
        })?;
        Ok(fits.then_some(Self { entries, copy }))
    }

    fn show(&mut self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let Self { entries, copy } = self;
        entries.sort_unstable_by(|one, other| {
            let key = |entry: &Entry| entry.split(copy).0;
            one.prefix.cmp(&other.prefix).then_with(|| key(one).cmp(key(other)))
        });
        entries.iter().try_for_each(|entry| {
            let (key, state) = entry.split(copy);
            visit(key, state)
        })
    }
}

/// Makes room in small steps: what is asked for counts, used or not.
fn grow<T>(vec: &mut Vec<T>, more: usize) {
    if vec.len() + more > vec.capacity() {
        vec.reserve_exact(more.max(vec.len() / 8));
    }
}

/// A group by its rank: the first answer, and among equals the key, of which the least ranks highest.
struct Ranked {
    first: Value<'static>,
    key: Reverse<Vec<u8>>,
    state: Vec<u8>,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.first, &other.first).then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

fn largest<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    most: usize,
    visit: &mut Visit<'_>,
) -> Result<u64, Error> {
    let (mut count, mut answers) = (0, Vec::new());
    // The least of the largest is on top.
    let mut heap: BinaryHeap<Reverse<Ranked>> = BinaryHeap::new();
    relabelled(groups, labels, &mut |key, state| {
        count += 1;
        answers.clear();
        groups.function.answer(state, &mut answers)?;
        let first = if answers.is_empty() { Value::Null } else { answers.swap_remove(0) };
        if heap.len() == most {
            let stays = |least: &Reverse<Ranked>| {
                compare(&first, &least.0.first).then_with(|| least.0.key.0[..].cmp(key)).is_le()
            };
            if heap.peek().is_none_or(stays) {
                return Ok(());
            }
            heap.pop();
        }
        heap.push(Reverse(Ranked { first, key: Reverse(key.to_vec()), state: state.to_vec() }));
        Ok(())
    })?;
    heap.into_sorted_vec().iter().try_for_each(|ranked| visit(&ranked.0.key.0, &ranked.0.state))?;
    Ok(count)
}

/// Nothing, then truths, numbers by size, and all else by its text.
fn compare(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    let kind = |value: &Value<'_>| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::I64(_) | Value::I128(_) | Value::F32(_) | Value::F64(_) | Value::Decimal(_) => 2,
        Value::Bytes(_) | Value::List(_) | Value::Pairs(_) | Value::Cut => 3,
    };
    match (one, other) {
        (Value::I64(one), Value::I64(other)) => one.cmp(other),
        (Value::I128(one), Value::I128(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        _ => kind(one).cmp(&kind(other)).then_with(|| match kind(one) {
            2 => one.as_number().cmp(&other.as_number()),
            3 => one.to_text().cmp(&other.to_text()),
            _ => Ordering::Equal,
        }),
    }
}
