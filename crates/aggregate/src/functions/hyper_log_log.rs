//! HyperLogLog, as a [sketch](super::sketches) whose states values are added to where they lie.

use std::hash::{Hash, Hasher};

use datasketches::hash::value::raw_bytes;
use datasketches::hll::{Coupon, HllSketch, HllType, HllUnion};
use forebay_base::Result;
use forebay_base::wire::{u32_at, u64_at};

use super::sketches::refused;
use crate::{Aggregate, StateType};

/// About how many distinct values: HyperLogLog with registers of eight bits. The standard error is
/// `1.04 / sqrt(2^lg_k)`.
///
/// States are canonical, which the library's are not: coupons are in order, and no history is kept.
#[derive(Clone, Copy, Debug)]
pub struct ApproxDistinct {
    lg_k: u8,
}

const HLL_LIST_AT: usize = 8;
const HLL_SET_AT: usize = 12;
const HLL_TABLE_AT: usize = 4;
const HLL_COUNT_AT: usize = 8;
/// Above these a coupon has the height of its register.
const HLL_PLACE_BITS: u32 = 26;
const HLL_SUMS_AT: usize = 16;
const HLL_ZEROS_AT: usize = 32;
const HLL_REGISTERS_AT: usize = 40;
const HLL_REGISTER_MAX: u8 = 63;
const HLL_TYPE_8: u8 = 2;
const HLL_OUT_OF_ORDER: u8 = 16;

impl ApproxDistinct {
    /// With `2^lg_k` registers, 4 to 21; 12 gives a standard error of 1.6 %.
    pub fn new(lg_k: u8) -> Result<Self> {
        HllUnion::new(lg_k).map_err(|error| refused(&error))?;
        Ok(Self { lg_k })
    }

    /// Whether a state is one of this function, and not damaged.
    pub fn is_sound(&self, state: &[u8]) -> bool {
        self.read(state).is_some()
    }

    /// Adds an element to a sound state, or to nothing, as lifting and merging would. Returns whether that has changed it.
    ///
    /// 1. The element alone is a state of one coupon: a place, and how high its register is to be.
    /// 2. Among coupons, one that is there changes nothing; another goes to its place in order, if there is room.
    /// 3. Among registers, one that is as high changes nothing; another is raised, with the sums over all.
    /// 4. Where a state gets another form the two are merged.
    pub fn add(&self, value: &[u8], state: &mut Vec<u8>) -> bool {
        let coupon = coupon_of(value);
        if let Some(is_changed) = self.add_coupon_within(coupon, state) {
            return is_changed;
        }
        if state.get(7).is_some_and(|mode| mode & 3 == 1) && add_coupon(state, coupon) {
            return true;
        }
        let mut one = Vec::new();
        // `new` has refused what this would.
        if self.lift(value, &mut one).is_err() {
            return false;
        }
        if state.is_empty() {
            *state = one;
            return true;
        }
        let mut merged = Vec::new();
        self.merge(&[state, &one], &mut merged);
        let is_changed = merged != *state;
        *state = merged;
        is_changed
    }

    /// The same where the state's length stays; else `None`, and nothing is changed.
    pub fn add_within(&self, value: &[u8], state: &mut [u8]) -> Option<bool> {
        self.add_coupon_within(coupon_of(value), state)
    }

    fn add_coupon_within(&self, coupon: u32, state: &mut [u8]) -> Option<bool> {
        match state.get(7)? & 3 {
            0 => has_coupon(&state[HLL_LIST_AT..], coupon).then_some(false),
            1 => place_of(state, coupon).is_ok().then_some(false),
            _ => Some(raise_register(state, coupon, self.lg_k)),
        }
    }

    fn read(&self, state: &[u8]) -> Option<HllSketch> {
        sound_hll(state, self.lg_k).then(|| HllSketch::deserialize(state).ok())?
    }
}

/// The coupon of a value, as states have it: the library shows it to hashers.
fn coupon_of(value: &[u8]) -> u32 {
    struct Seen(u32);
    impl Hasher for Seen {
        fn write_u32(&mut self, coupon: u32) {
            self.0 = coupon;
        }
        fn write(&mut self, _: &[u8]) {}
        fn finish(&self) -> u64 {
            self.0.into()
        }
    }
    let mut seen = Seen(0);
    Coupon::from_value(raw_bytes::from_slice(value)).hash(&mut seen);
    seen.0
}

fn has_coupon(coupons: &[u8], coupon: u32) -> bool {
    coupons.as_chunks::<4>().0.iter().any(|one| u32::from_le_bytes(*one) == coupon)
}

/// Where a coupon stands among those of a set, which are in order, or is to stand.
fn place_of(state: &[u8], coupon: u32) -> std::result::Result<usize, usize> {
    let coupons = state.get(HLL_SET_AT..).unwrap_or_default().as_chunks::<4>().0;
    coupons.binary_search_by_key(&coupon, |one| u32::from_le_bytes(*one))
}

/// Puts another coupon there, unless the set has to grow.
fn add_coupon(state: &mut Vec<u8>, coupon: u32) -> bool {
    let Err(at) = place_of(state, coupon) else { return false };
    // The library makes tables of coupons larger once they are fuller than three quarters.
    let (count, table) = (u32_at(state, HLL_COUNT_AT) + 1, 1u64.checked_shl(state[HLL_TABLE_AT].into()));
    if table.is_none_or(|table| u64::from(count) * 4 > table * 3)
        || state.len() != HLL_SET_AT + 4 * (count as usize - 1)
    {
        return false;
    }
    let at = HLL_SET_AT + at * 4;
    state.splice(at..at, coupon.to_le_bytes());
    state[HLL_COUNT_AT..HLL_SET_AT].copy_from_slice(&count.to_le_bytes());
    true
}

/// Raises the register of a coupon, if it is lower. No sum of these rounds.
fn raise_register(state: &mut [u8], coupon: u32, lg_k: u8) -> bool {
    let (place, height) = (coupon as usize & ((1 << lg_k) - 1), (coupon >> HLL_PLACE_BITS) as u8);
    let Some(register) = state.get_mut(HLL_REGISTERS_AT + place).filter(|register| **register < height)
    else {
        return false;
    };
    let before = std::mem::replace(register, height);
    for (height, sign) in [(before, -1.0), (height, 1.0)] {
        let at = HLL_SUMS_AT + usize::from(height / 32) * 8;
        let sum = f64::from_bits(u64_at(state, at)) + sign / (1u64 << height) as f64;
        state[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    }
    let zeros = u32_at(state, HLL_ZEROS_AT).saturating_sub(u32::from(before == 0));
    state[HLL_ZEROS_AT..HLL_ZEROS_AT + 4].copy_from_slice(&zeros.to_le_bytes());
    true
}

/// Whether the fields of these bytes fit one another: the library would trust the registers' values, the count of
/// zeros, and the sums that it keeps.
fn sound_hll(state: &[u8], lg_k: u8) -> bool {
    let Some(&[_, _, _, lg, _, _, _, mode]) = state.first_chunk::<HLL_LIST_AT>() else { return false };
    if lg != lg_k || mode >> 2 != HLL_TYPE_8 {
        return false;
    }
    match mode & 3 {
        2 => {
            let Some((head, registers)) = state.split_at_checked(HLL_REGISTERS_AT) else { return false };
            let mut counts = [0u32; HLL_REGISTER_MAX as usize + 1];
            let mut count = |&register: &u8| counts.get_mut(register as usize).map(|count| *count += 1);
            registers.len() == 1 << lg_k
                && registers.iter().all(|register| count(register).is_some())
                && u32_at(head, HLL_ZEROS_AT) == counts[0]
                && head[HLL_SUMS_AT..HLL_ZEROS_AT] == hll_sums(&counts)
        }
        mode => mode < 2,
    }
}

/// The sums of 2^-register, by how often each comes: over those below 32, and over the others. No addition rounds.
fn hll_sums(counts: &[u32]) -> [u8; HLL_ZEROS_AT - HLL_SUMS_AT] {
    let mut sums = [0.0, 0.0];
    for (register, &count) in counts.iter().enumerate() {
        sums[register / 32] += f64::from(count) / (1u64 << register) as f64;
    }
    let mut bytes = [0; HLL_ZEROS_AT - HLL_SUMS_AT];
    bytes[..8].copy_from_slice(&f64::to_le_bytes(sums[0]));
    bytes[8..].copy_from_slice(&f64::to_le_bytes(sums[1]));
    bytes
}

/// Puts a sketch's bytes into the one form that all of its histories have.
fn canonical_hll(mut bytes: Vec<u8>) -> Vec<u8> {
    let coupons_at = match bytes.get(7).map(|mode| mode & 3) {
        Some(0) => HLL_LIST_AT,
        Some(1) => HLL_SET_AT,
        _ => {
            if let Some(flags) = bytes.get_mut(5) {
                *flags |= HLL_OUT_OF_ORDER;
            }
            if let Some(history) = bytes.get_mut(8..16) {
                history.fill(0);
            }
            return bytes;
        }
    };
    if let Some(coupons) = bytes.get_mut(coupons_at..) {
        let (coupons, _) = coupons.as_chunks_mut::<4>();
        coupons.sort_unstable_by_key(|coupon| u32::from_le_bytes(*coupon));
    }
    bytes
}

impl Aggregate for ApproxDistinct {
    type Input<'a> = &'a [u8];
    type Output = f64;

    fn of_nothing(&self) -> Option<Self::Output> {
        Some(0.0)
    }

    fn state_type(&self) -> StateType {
        StateType::new("hll8", 1).with("lg_k", self.lg_k)
    }

    fn lift(&self, value: &[u8], state: &mut Vec<u8>) -> Result<()> {
        let mut sketch = HllSketch::new(self.lg_k, HllType::Hll8).map_err(|error| refused(&error))?;
        sketch.update(raw_bytes::from_slice(value));
        state.extend_from_slice(&canonical_hll(sketch.serialize()));
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let Ok(mut union) = HllUnion::new(self.lg_k) else { return };
        states.iter().filter_map(|state| self.read(state)).for_each(|sketch| union.update(&sketch));
        out.extend_from_slice(&canonical_hll(union.to_sketch(HllType::Hll8).serialize()));
    }

    fn finish(&self, state: &[u8]) -> Result<f64> {
        Ok(self.read(state).ok_or_else(|| self.state_type().malformed(state))?.estimate())
    }
}
