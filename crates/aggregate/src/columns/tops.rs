//! The values at the few greatest places of each group: most that come are less than all that is kept, which two
//! floating-point numbers tell. Numbers that are ordered by themselves are kept as they are, and so are texts that are
//! the shortest ones of their numbers.

use std::cmp::Ordering;

use super::accumulate::{Ranked, present, resize};
use super::lane::{Items, Lane, plain, plain_single};
use super::read::{ShortOrOdd, decimal, shortest};
use super::{Accumulator, Kind, Rows};
use crate::function::place_of;
use crate::optional::{MISSING, PRESENT};
use crate::value::Value;

/// What is kept for more is kept by rows.
const KEPT_MAX: usize = 64;
/// More numbers than these have no places of their own before they come.
const NUMBERS_MAX: usize = 16;

/// Writes the state of places and values, the greatest first, at least one.
pub(crate) type WriteTops = fn(&mut dyn Iterator<Item = (&[u8], &[u8])>, &mut Vec<u8>);

/// See the module.
pub(crate) struct Tops {
    most: usize,
    /// The lanes of values and of what they are ordered by.
    lanes: [usize; 2],
    write: WriteTops,
    kept: Vec<Vec<Kept>>,
    /// No greater than any number that a group still takes.
    lows: Vec<f64>,
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
    /// What is kept of the values of a lane, in the order of another's, for no more than a few. These are the kinds of
    /// the two.
    pub(crate) fn over(
        most: usize,
        lanes: [usize; 2],
        kinds: [Kind; 2],
        write: WriteTops,
    ) -> Option<Box<dyn Accumulator>> {
        let [lane, by] = lanes;
        if lane == by && most <= NUMBERS_MAX {
            match kinds[0] {
                Kind::I64 => return Some(TopNumbers::<i64>::over(most, lane, write)),
                Kind::F64 => return Some(TopNumbers::<f64>::over(most, lane, write)),
                Kind::F32 => return Some(TopNumbers::<f32>::over(most, lane, write)),
                Kind::Bytes => return Some(Box::new(TopTexts::new(most, lane, write))),
                Kind::Bool | Kind::Null => {}
            }
        }
        (most <= KEPT_MAX).then(|| Box::new(Self::new(most, lanes, write)) as Box<dyn Accumulator>)
    }

    fn new(most: usize, lanes: [usize; 2], write: WriteTops) -> Self {
        let (kept, lows, kept_bytes) = Default::default();
        Self { most, lanes, write, kept, lows, kept_bytes }
    }

    #[inline]
    fn add_row(&mut self, at: usize, group: usize, [values, by]: [&Lane<'_>; 2]) {
        if group > 0 && values.is_present(at) && by.is_present(at) && high(by, at) >= self.lows[group] {
            self.put(group, &values.value(at), &by.value(at));
        }
    }

    fn put(&mut self, group: usize, value: &Value<'_>, by: &Value<'_>) {
        let place = place_of(by);
        let low = match by.as_number().map(|number| number.as_f64()) {
            Some(number) if number.is_nan() => f64::NEG_INFINITY,
            Some(number) => number,
            // Texts come behind all numbers.
            None => f64::INFINITY,
        };
        let new = Kept { place, value: value.to_text().into_owned(), low };
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
        self.lows[group] = kept.get(self.most - 1).map_or(f64::NEG_INFINITY, |least| least.low);
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
        resize(&mut self.lows, groups, f64::NEG_INFINITY);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let [values, by] = self.lanes.map(|lane| rows.lane(lane));
        for (at, group) in groups.iter().enumerate() {
            self.add_row(at, *group as usize, [&values, &by]);
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
        self.kept_bytes
            + size_of::<Vec<Kept>>() * self.kept.capacity()
            + size_of::<f64>() * self.lows.capacity()
    }
}

/// The greatest numbers of each group.
struct Greatest<T> {
    most: usize,
    /// So many places for each group, the greatest first, and how many have come.
    kept: Vec<T>,
    counts: Vec<u8>,
}

impl<T: Ranked> Greatest<T> {
    fn new(most: usize) -> Self {
        debug_assert!((1..=NUMBERS_MAX).contains(&most), "there is a place for each");
        Self { most, kept: Vec::new(), counts: Vec::new() }
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.kept, groups * self.most, T::default());
        resize(&mut self.counts, groups, 0);
    }

    #[inline]
    fn put(&mut self, group: usize, value: &T) {
        let (kept, count) = (&mut self.kept[group * self.most..][..self.most], self.counts[group] as usize);
        if count == self.most && value.order(&kept[count - 1]).is_le() {
            return;
        }
        let at = kept[..count].partition_point(|kept| kept.order(value).is_ge());
        let count = self.most.min(count + 1);
        kept[at..count].rotate_right(1);
        kept[at] = *value;
        self.counts[group] = count as u8;
    }

    /// The places and texts of a group's.
    fn items(&self, group: usize) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let kept = &self.kept[group * self.most..][..self.counts[group] as usize];
        kept.iter().map(|number| {
            let value = number.value();
            (place_of(&value), value.to_text().into_owned())
        })
    }

    fn memory_bytes(&self) -> usize {
        size_of::<T>() * self.kept.capacity() + self.counts.capacity()
    }
}

/// Appends the state of places and values, the greatest first.
fn write_items(items: &[(Vec<u8>, Vec<u8>)], write: WriteTops, state: &mut Vec<u8>) {
    if items.is_empty() {
        return state.push(MISSING);
    }
    state.push(PRESENT);
    write(&mut items.iter().map(|(place, text)| (&place[..], &text[..])), state);
}

/// The greatest numbers of a lane.
struct TopNumbers<T> {
    lane: usize,
    write: WriteTops,
    values: Vec<T>,
    greatest: Greatest<T>,
}

impl<T: Ranked + 'static> TopNumbers<T> {
    fn over(most: usize, lane: usize, write: WriteTops) -> Box<dyn Accumulator> {
        Box::new(Self { lane, write, values: Vec::new(), greatest: Greatest::<T>::new(most) })
    }
}

impl<T: Ranked> Accumulator for TopNumbers<T> {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        T::read(&rows.lane(self.lane), &mut self.values, refused);
    }

    fn resize(&mut self, groups: usize) {
        self.greatest.resize(groups);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!(self.values.len(), groups.len(), "what was read is added");
        for (group, value) in present(&rows.lane(self.lane), groups).zip(&self.values) {
            self.greatest.put(group, value);
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        write_items(&self.greatest.items(group).collect::<Vec<_>>(), self.write, state);
    }

    fn memory_bytes(&self) -> usize {
        size_of::<T>() * self.values.capacity() + self.greatest.memory_bytes()
    }
}

/// The greatest texts of a lane: those that are the shortest ones of their numbers as these, and others beside them.
struct TopTexts {
    lane: usize,
    write: WriteTops,
    read: ShortOrOdd<f64, ()>,
    greatest: Greatest<f64>,
    /// What groups have besides, as soon as one has.
    others: Tops,
}

impl TopTexts {
    fn new(most: usize, lane: usize, write: WriteTops) -> Self {
        let (greatest, others) = (Greatest::new(most), Tops::new(most, [lane; 2], write));
        Self { lane, write, read: ShortOrOdd::default(), greatest, others }
    }
}

impl Accumulator for TopTexts {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        self.read.read(&rows.lane(self.lane), f64::NAN, shortest, |_| Some(()), refused);
    }

    fn resize(&mut self, groups: usize) {
        self.greatest.resize(groups);
        self.others.resize(if self.others.kept.is_empty() { 0 } else { groups });
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!(self.read.short.len(), groups.len(), "what was read is added");
        let lane = rows.lane(self.lane);
        for (group, value) in present(&lane, groups).zip(&self.read.short) {
            self.greatest.put(if value.is_nan() { 0 } else { group }, value);
        }
        if !self.read.odd.is_empty() {
            self.others.resize(self.greatest.counts.len());
        }
        for (row, ()) in &self.read.odd {
            self.others.add_row(*row as usize, groups[*row as usize] as usize, [&lane; 2]);
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let mut items: Vec<_> = self.greatest.items(group).collect();
        let others = self.others.kept.get(group).into_iter().flatten();
        items.extend(others.map(|kept| (kept.place.clone(), kept.value.clone())));
        items.sort_unstable_by(|one, other| other.cmp(one));
        items.truncate(self.greatest.most);
        write_items(&items, self.write, state);
    }

    fn memory_bytes(&self) -> usize {
        self.read.memory_bytes() + self.greatest.memory_bytes() + self.others.memory_bytes()
    }
}
