//! The order in which groups are shown: as they come, by their keys, or the largest only.
//!
//! Groups of a database may be in order already, but for n-grams, whose numbers have to be put in the order of their
//! words. Others are sorted in memory, if they are there and there is room for a copy, or else by an external sort.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use forebay::Error;
use forebay_aggregate::{Aggregator, Order, Value, Visit};

use super::engine::Measure;
use super::groups::Groups;
use super::labels::Labels;

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

fn by_key<A: Measure>(groups: &Groups<A>, labels: &Labels, visit: &mut Visit<'_>) -> Result<(), Error> {
    if groups.held.is_sorted() && labels.keep_order() {
        return groups.held.for_each(visit);
    }
    if !groups.held.is_spilled() {
        let (mut count, mut bytes) = (0, 0);
        groups.held.for_each(&mut |key, state| {
            count += 1;
            bytes += key.len() + state.len();
            Ok(())
        })?;
        let copy_bytes = bytes + count * size_of::<Entry>();
        if groups.held.memory_bytes() + copy_bytes <= groups.means.memory_bytes {
            return sorted_in_memory(groups, labels, (count, bytes), visit);
        }
    }
    let mut sorter = groups.means.sorter(&groups.function)?;
    relabelled(groups, labels, &mut |key, state| sorter.sort.add_state(key, state))?;
    sorter.sort.finalize()?;
    sorter.sort.for_each(visit)
}

/// A group in a copy of all.
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

fn sorted_in_memory<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    (count, bytes): (usize, usize),
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let (mut entries, mut copy) = (Vec::with_capacity(count), Vec::with_capacity(bytes));
    relabelled(groups, labels, &mut |key, state| {
        entries.push(Entry {
            prefix: Order::Lexical.prefix(key),
            start: copy.len(),
            key_bytes: key.len() as u32,
            state_bytes: state.len() as u32,
        });
        copy.extend_from_slice(key);
        copy.extend_from_slice(state);
        Ok(())
    })?;
    entries.sort_unstable_by(|one, other| {
        let key = |entry: &Entry| entry.split(&copy).0;
        one.prefix.cmp(&other.prefix).then_with(|| key(one).cmp(key(other)))
    });
    entries.iter().try_for_each(|entry| {
        let (key, state) = entry.split(&copy);
        visit(key, state)
    })
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
