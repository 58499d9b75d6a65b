//! The values at the few greatest places of each group: most that come are less than all that is kept, which two
//! floating-point numbers tell.

use std::cmp::Ordering;

use super::lane::{Items, Lane, plain, plain_single};
use super::read::decimal;
use super::{Accumulator, Rows};
use crate::function::place_of;
use crate::optional::{MISSING, PRESENT};
use crate::value::Value;

/// What is kept for more is kept by rows.
const KEPT_MAX: usize = 64;

/// Writes the state of places and values, the greatest first, at least one.
pub(crate) type WriteTops = fn(&mut dyn Iterator<Item = (&[u8], &[u8])>, &mut Vec<u8>);

/// See the module.
pub(crate) struct Tops {
    most: usize,
    /// The lanes of values and of what they are ordered by.
    lanes: [usize; 2],
    write: WriteTops,
    kept: Vec<Vec<Kept>>,
    kept_bytes: usize,
}

/// A value, and where it stands.
struct Kept {
    place: Vec<u8>,
    value: Vec<u8>,
    /// No greater than the place's number.
    low: f64,
}

impl Kept {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.place.capacity() + self.value.capacity()
    }

    /// The greatest first.
    fn order(&self, other: &Self) -> Ordering {
        (&other.place, &other.value).cmp(&(&self.place, &self.value))
    }
}

impl Tops {
    /// What is kept of the values of a lane, in the order of another's, for no more than a few.
    pub(crate) fn over(most: usize, lanes: [usize; 2], write: WriteTops) -> Option<Box<dyn Accumulator>> {
        let tops = Self { most, lanes, write, kept: Vec::new(), kept_bytes: 0 };
        (most <= KEPT_MAX).then(|| Box::new(tops) as Box<dyn Accumulator>)
    }

    fn put(&mut self, group: usize, value: &Value<'_>, by: &Value<'_>) {
        let low = match by.as_number().map(|number| number.as_f64()) {
            Some(number) if number.is_nan() => f64::NEG_INFINITY,
            Some(number) => number,
            // Texts come behind all numbers.
            None => f64::INFINITY,
        };
        let new = Kept { place: place_of(by), value: value.to_text().into_owned(), low };
        let kept = &mut self.kept[group];
        let at = kept.partition_point(|kept| kept.order(&new).is_le());
        if at >= self.most {
            return;
        }
        if kept.len() == self.most
            && let Some(least) = kept.pop()
        {
            self.kept_bytes -= least.bytes();
        }
        self.kept_bytes += new.bytes();
        kept.insert(at, new);
        debug_assert!(kept.len() <= self.most, "the others are not kept");
    }
}

/// A number that is no less than the one at this place; infinite where that is not known.
#[inline]
fn high(lane: &Lane<'_>, at: usize) -> f64 {
    let high = match lane.items() {
        Items::I64(values) => values[at] as f64,
        Items::F64(values) => plain(values[at]),
        // What counts is its text, which another number may be nearest to.
        Items::F32(values) => f64::from(plain_single(values[at]).next_up()),
        Items::Bytes(_) | Items::Codes { .. } => decimal(lane.text(at)).unwrap_or(f64::INFINITY),
        _ => f64::INFINITY,
    };
    if high.is_nan() { f64::INFINITY } else { high }
}

impl Accumulator for Tops {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        for kept in self.kept.drain(groups.min(self.kept.len())..) {
            self.kept_bytes -= kept.iter().map(Kept::bytes).sum::<usize>();
        }
        if groups == 0 {
            self.kept = Vec::new();
        }
        self.kept.resize_with(groups, Vec::new);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let [values, by] = self.lanes.map(|lane| rows.lane(lane));
        for (at, group) in groups.iter().enumerate() {
            let group = *group as usize;
            if group == 0 || !values.is_present(at) || !by.is_present(at) {
                continue;
            }
            if let Some(least) = self.kept[group].get(self.most - 1)
                && high(&by, at) < least.low
            {
                continue;
            }
            self.put(group, &values.value(at), &by.value(at));
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        match &self.kept[group][..] {
            [] => state.push(MISSING),
            kept => {
                state.push(PRESENT);
                (self.write)(&mut kept.iter().map(|kept| (&kept.place[..], &kept.value[..])), state);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.kept_bytes + size_of::<Vec<Kept>>() * self.kept.capacity()
    }
}
