//! [`Accumulator`]: what a function keeps of groups while their rows come by columns, and those of the functions that
//! come most often.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::lane::{Items, Lane, plain, plain_single, shown};
use super::read::{floats, numbers};
use super::{Kind, Rows};
use crate::fixed::{FixedAggregate, Plain};
use crate::number::{Number, NumberBytes};
use crate::optional::{MISSING, PRESENT};
use crate::value::Value;

/// What a function keeps of groups that are numbered from 0. Group 0 takes the rows that are nobody's: its state is
/// never asked for.
///
/// Each batch is given to [`read`](Self::read), then to [`add`](Self::add). All batches have the kinds of lanes that it
/// was made for.
pub trait Accumulator: Send + Sync {
    /// Reads the values of a batch; the numbers of rows whose values it refuses are appended to `refused`.
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>);

    /// Has this many groups from now on; new ones have no values. With none it gives back the memory for them.
    fn resize(&mut self, groups: usize);

    /// Adds the batch that was read: each row to its group.
    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]);

    /// Puts what was added in order, for states that are written next.
    fn gather(&mut self) {}

    /// Appends the state of a group; what was added is gathered.
    fn write_state(&self, group: usize, state: &mut Vec<u8>);

    /// How many bytes of memory it takes.
    fn memory_bytes(&self) -> usize;
}

/// The group of each row; 0 for those without a value in this lane.
#[inline]
pub(crate) fn present<'g>(lane: &'g Lane<'g>, groups: &'g [u32]) -> impl Iterator<Item = usize> + 'g {
    let has_nulls = lane.has_nulls();
    groups.iter().enumerate().map(move |(at, group)| match has_nulls && !lane.is_present(at) {
        true => 0,
        false => *group as usize,
    })
}

/// As [`Accumulator::resize`].
pub(crate) fn resize<T: Clone>(kept: &mut Vec<T>, groups: usize, nothing: T) {
    if groups == 0 {
        *kept = Vec::new();
    }
    kept.resize(groups, nothing);
}

/// How many rows.
#[derive(Default)]
pub(crate) struct Counts(Vec<u64>);

impl Accumulator for Counts {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        resize(&mut self.0, groups, 0);
    }

    fn add(&mut self, _rows: &Rows<'_>, groups: &[u32]) {
        groups.iter().for_each(|group| self.0[*group as usize] += 1);
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0[group].to_le_bytes());
    }

    fn memory_bytes(&self) -> usize {
        size_of::<u64>() * self.0.capacity()
    }
}

/// How many rows with a value in a lane.
pub(crate) struct PresentCounts {
    lane: usize,
    counts: Counts,
}

impl PresentCounts {
    pub(crate) fn new(lane: usize) -> Self {
        Self { lane, counts: Counts::default() }
    }
}

impl Accumulator for PresentCounts {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        present(&rows.lane(self.lane), groups).for_each(|group| self.counts.0[group] += 1);
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        state.push(PRESENT);
        self.counts.write_state(group, state);
    }

    fn memory_bytes(&self) -> usize {
        self.counts.memory_bytes()
    }
}

/// A function of the values of one lane that keeps little of them.
pub(crate) trait Folding: Send + Sync {
    /// What a value is read as.
    type Value: Copy + Send + Sync;
    /// What is kept of some.
    type Kept: Copy + Default + Send + Sync;
    /// How many bytes a state has, besides that which tells whether there is one.
    const BYTES: usize;

    /// Puts the values of a lane in place of what `values` holds, any under nulls.
    fn read(&self, lane: &Lane<'_>, values: &mut Vec<Self::Value>, refused: &mut Vec<u32>);
    /// What is kept of a value.
    fn of(&self, value: Self::Value) -> Self::Kept;
    /// What is kept of some and of one more.
    fn join(&self, kept: Self::Kept, value: Self::Value) -> Self::Kept;
    /// Writes the state of what is kept.
    fn write(&self, kept: Self::Kept, state: &mut [u8]);
}

/// See [`Folding`].
pub(crate) struct Folded<F: Folding> {
    folding: F,
    lane: usize,
    values: Vec<F::Value>,
    /// Of a group without values, anything.
    kept: Vec<F::Kept>,
    has_values: Vec<bool>,
}

impl<F: Folding + 'static> Folded<F> {
    /// What a function keeps of the values of a lane.
    pub(crate) fn over(folding: F, lane: usize) -> Box<dyn Accumulator> {
        let (values, kept, has_values) = Default::default();
        Box::new(Self { folding, lane, values, kept, has_values })
    }
}

impl<F: Folding> Accumulator for Folded<F> {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        self.folding.read(&rows.lane(self.lane), &mut self.values, refused);
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.kept, groups, F::Kept::default());
        resize(&mut self.has_values, groups, false);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!(
            (self.values.len(), groups.len()),
            (rows.len(), rows.len()),
            "what was read is added"
        );
        for (group, value) in present(&rows.lane(self.lane), groups).zip(&self.values) {
            let (kept, has_values) = (&mut self.kept[group], &mut self.has_values[group]);
            *kept = if *has_values { self.folding.join(*kept, *value) } else { self.folding.of(*value) };
            *has_values = true;
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        state.resize(start + 1 + F::BYTES, MISSING);
        if self.has_values[group] {
            state[start] = PRESENT;
            self.folding.write(self.kept[group], &mut state[start + 1..]);
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<F::Value>() * self.values.capacity()
            + size_of::<F::Kept>() * self.kept.capacity()
            + self.has_values.capacity()
    }
}

/// A function of floating-point numbers.
pub(crate) struct Floats<A>(pub(crate) A);

impl<A> Folding for Floats<A>
where
    A: for<'a> FixedAggregate<Input<'a> = f64>,
    A::State: Default + Send + Sync,
{
    type Value = f64;
    type Kept = A::State;
    const BYTES: usize = A::State::BYTES;

    fn read(&self, lane: &Lane<'_>, values: &mut Vec<f64>, refused: &mut Vec<u32>) {
        floats(lane, values, refused);
    }
    #[inline]
    fn of(&self, value: f64) -> A::State {
        self.0.of(value)
    }
    #[inline]
    fn join(&self, kept: A::State, value: f64) -> A::State {
        self.0.join(kept, self.0.of(value))
    }
    fn write(&self, kept: A::State, state: &mut [u8]) {
        kept.write(state);
    }
}

/// Which end of the numbers is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Least,
    Greatest,
}

/// The least or the greatest number, compared as what it came as.
pub(crate) struct Extreme<T>(Wanted, PhantomData<fn() -> T>);

impl Extreme<()> {
    /// That of the values of a lane of this kind.
    pub(crate) fn over(wanted: Wanted, kind: Kind, lane: usize) -> Box<dyn Accumulator> {
        match kind {
            Kind::I64 => Folded::over(Extreme::<i64>(wanted, PhantomData), lane),
            Kind::F64 => Folded::over(Extreme::<f64>(wanted, PhantomData), lane),
            Kind::F32 => Folded::over(Extreme::<f32>(wanted, PhantomData), lane),
            Kind::Bytes => super::extremes::ExtremeDecimals::over(wanted, lane),
            Kind::Bool | Kind::Null => Folded::over(Extreme::<NumberBytes>(wanted, PhantomData), lane),
        }
    }
}

/// What is ordered as the numbers are that it stands for.
pub(crate) trait Ranked: Copy + Default + Send + Sync {
    fn read(lane: &Lane<'_>, values: &mut Vec<Self>, refused: &mut Vec<u32>);
    fn order(&self, other: &Self) -> Ordering;
    /// What functions are given that take rows.
    fn value(self) -> Value<'static>;
    fn bytes(self) -> NumberBytes {
        number(&self.value())
    }
}

impl Ranked for i64 {
    fn read(lane: &Lane<'_>, values: &mut Vec<Self>, _refused: &mut Vec<u32>) {
        values.clear();
        values.extend_from_slice(if let Items::I64(values) = lane.items() { values } else { &[] });
    }
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
    fn value(self) -> Value<'static> {
        Value::I64(self)
    }
}

impl Ranked for f64 {
    fn read(lane: &Lane<'_>, values: &mut Vec<Self>, _refused: &mut Vec<u32>) {
        values.clear();
        let items = if let Items::F64(values) = lane.items() { values } else { &[] };
        values.extend(items.iter().map(|value| plain(*value)));
    }
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
    fn value(self) -> Value<'static> {
        shown(self)
    }
}

impl Ranked for f32 {
    fn read(lane: &Lane<'_>, values: &mut Vec<Self>, _refused: &mut Vec<u32>) {
        values.clear();
        let items = if let Items::F32(values) = lane.items() { values } else { &[] };
        values.extend(items.iter().map(|value| plain_single(*value)));
    }
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
    fn value(self) -> Value<'static> {
        Value::F32(self)
    }
}

impl Ranked for NumberBytes {
    fn read(lane: &Lane<'_>, values: &mut Vec<Self>, refused: &mut Vec<u32>) {
        numbers(lane, values, refused, |at| lane.value(at).as_number().map(Number::to_bytes));
    }
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
    fn value(self) -> Value<'static> {
        Value::from(Number::from(self))
    }
    fn bytes(self) -> NumberBytes {
        self
    }
}

/// The number that a value is; every floating-point number is one.
fn number(value: &Value<'_>) -> NumberBytes {
    value.as_number().map(Number::to_bytes).unwrap_or_default()
}

impl<T: Ranked> Folding for Extreme<T> {
    type Value = T;
    type Kept = T;
    const BYTES: usize = NumberBytes::BYTES;

    fn read(&self, lane: &Lane<'_>, values: &mut Vec<T>, refused: &mut Vec<u32>) {
        T::read(lane, values, refused);
    }
    #[inline]
    fn of(&self, value: T) -> T {
        value
    }
    #[inline]
    fn join(&self, kept: T, value: T) -> T {
        let order = if self.0 == Wanted::Least { kept.order(&value) } else { value.order(&kept) };
        if order.is_gt() { value } else { kept }
    }
    fn write(&self, kept: T, state: &mut [u8]) {
        kept.bytes().write(state);
    }
}
