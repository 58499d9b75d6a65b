//! The least or the greatest text of each group, or the number that texts say.

use super::accumulate::resize;
use super::read::{ShortOrOdd, decimal};
use super::{Accumulator, Rows, Wanted};
use crate::fixed::Plain;
use crate::number::{Number, NumberBytes};
use crate::optional::{MISSING, PRESENT};
use crate::value::Value;

/// The least or the greatest number of texts.
///
/// Texts of few digits are compared as the floating-point numbers nearest to them: no two numbers of up to 15 digits have
/// the same one, and its shortest text is the number again.
pub(crate) struct ExtremeDecimals {
    wanted: Wanted,
    lane: usize,
    read: ShortOrOdd<f64, NumberBytes>,
    /// Not a number for a group without values.
    kept: Vec<f64>,
    /// What groups have besides, as soon as one has.
    odd_kept: Vec<Option<NumberBytes>>,
}

impl ExtremeDecimals {
    /// That of the texts of a lane's values.
    pub(crate) fn over(wanted: Wanted, lane: usize) -> Box<dyn Accumulator> {
        let (read, kept, odd_kept) = Default::default();
        Box::new(Self { wanted, lane, read, kept, odd_kept })
    }
}

/// Which of two is wanted.
fn better<T: PartialOrd>(wanted: Wanted, one: T, other: T) -> T {
    if (wanted == Wanted::Least) == (other < one) { other } else { one }
}

impl Accumulator for ExtremeDecimals {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let odd = |value: Value<'_>| value.as_number().map(Number::to_bytes);
        self.read.read(&rows.lane(self.lane), f64::NAN, decimal, odd, refused);
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.kept, groups, f64::NAN);
        let odd = if self.odd_kept.is_empty() { 0 } else { groups };
        resize(&mut self.odd_kept, odd, None);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let lane = rows.lane(self.lane);
        let (has_nulls, is_least) = (lane.has_nulls(), self.wanted == Wanted::Least);
        for (at, (group, value)) in groups.iter().zip(&self.read.short).enumerate() {
            let kept = &mut self.kept[*group as usize];
            // What is not a number is neither less nor greater.
            let is_better = if is_least { value < kept } else { value > kept };
            if is_better || kept.is_nan() {
                *kept = if has_nulls && !lane.is_present(at) { *kept } else { *value };
            }
        }
        if !self.read.odd.is_empty() {
            self.odd_kept.resize(self.kept.len(), None);
        }
        for (row, number) in &self.read.odd {
            let kept = &mut self.odd_kept[groups[*row as usize] as usize];
            *kept = Some(kept.map_or(*number, |kept| better(self.wanted, kept, *number)));
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        state.resize(start + 1 + NumberBytes::BYTES, MISSING);
        let kept = Some(self.kept[group]).filter(|kept| !kept.is_nan());
        let kept = kept.map(|kept| Number::from(kept).to_bytes());
        let odd = self.odd_kept.get(group).copied().flatten();
        let both = kept.zip(odd).map(|(one, other)| better(self.wanted, one, other));
        if let Some(number) = both.or(kept).or(odd) {
            state[start] = PRESENT;
            number.write(&mut state[start + 1..]);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.read.memory_bytes()
            + size_of::<f64>() * self.kept.capacity()
            + size_of::<Option<NumberBytes>>() * self.odd_kept.capacity()
    }
}

/// See the module.
pub(crate) struct ExtremeTexts {
    wanted: Wanted,
    lane: usize,
    kept: Vec<Option<Vec<u8>>>,
    kept_bytes: usize,
}

impl ExtremeTexts {
    /// That of the texts of a lane's values.
    pub(crate) fn over(wanted: Wanted, lane: usize) -> Box<dyn Accumulator> {
        Box::new(Self { wanted, lane, kept: Vec::new(), kept_bytes: 0 })
    }
}

impl Accumulator for ExtremeTexts {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        let gone = self.kept.drain(groups.min(self.kept.len())..).flatten();
        self.kept_bytes -= gone.map(|text| text.capacity()).sum::<usize>();
        if groups == 0 {
            self.kept = Vec::new();
        }
        self.kept.resize(groups, None);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let lane = rows.lane(self.lane);
        for (at, group) in groups.iter().enumerate() {
            if *group == 0 || !lane.is_present(at) {
                continue;
            }
            let value = lane.value(at);
            let text = value.to_text();
            let kept = self.kept[*group as usize].get_or_insert_with(|| {
                self.kept_bytes += text.len();
                text.to_vec()
            });
            let order = if self.wanted == Wanted::Least { (**kept).cmp(&text) } else { (*text).cmp(kept) };
            if order.is_gt() {
                self.kept_bytes -= kept.capacity();
                kept.clear();
                kept.extend_from_slice(&text);
                self.kept_bytes += kept.capacity();
            }
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        match &self.kept[group] {
            None => state.push(MISSING),
            Some(text) => {
                state.push(PRESENT);
                state.extend_from_slice(text);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.kept_bytes + size_of::<Option<Vec<u8>>>() * self.kept.capacity()
    }
}
