//! Sums of decimal numbers, exact.
//!
//! **Invariant:** a state is a whole number of units of 10^-38, of 320 bits, so that no order of 2^64 values makes a
//! sum overflow.

use forebay_base::{Error, Result};

use super::decimal_columns::{Integers, Texts};
use crate::columns::{Accumulator, Folded, Kind};
use crate::number::Number;
use crate::{Aggregate, Plain, StateType, Value};

/// Digits behind the point that a sum keeps.
const SCALE: u32 = 38;
const LIMBS: usize = 5;
/// What a limb is divided by to get decimal digits, and how many those are: two make a scale.
const CHUNK: u128 = 10_u128.pow(19);
const CHUNK_DIGITS: usize = 19;

const _: () = assert!(CHUNK == 10_u128.pow(CHUNK_DIGITS as u32) && CHUNK < 1 << 64);
// 10^76 has 253 bits, and 2^64 values of it 317.
const _: () = assert!(LIMBS * 64 >= 318 && SCALE == 38);

/// The sum of decimal numbers, each of at most 128 bits before the point and 38 digits behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumDecimal;

/// A whole number, its lowest 64 bits first, in two's complement.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Wide([u64; LIMBS]);

impl Wide {
    pub(super) const BYTES: usize = LIMBS * u64::BYTES;

    /// Some units; nothing of a number that is no such sum.
    pub(super) fn of(number: Number) -> Option<Self> {
        let (is_negative, digits, power) = number.units(SCALE)?;
        Some(Self::product(digits, 10_u128.pow(power)).signed(is_negative))
    }

    /// The units of an integer.
    pub(super) fn whole(value: i128) -> Self {
        Self::decimal(value, 0)
    }

    /// The units of a number with so many digits behind the point, which is given without it.
    pub(super) fn decimal(value: i128, digits: u32) -> Self {
        Self::product(value.unsigned_abs(), 10_u128.pow(SCALE - digits)).signed(value < 0)
    }

    #[cfg(test)]
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        self.write(&mut bytes);
        bytes
    }

    fn signed(self, is_negative: bool) -> Self {
        if is_negative { self.negated() } else { self }
    }

    fn product(one: u128, other: u128) -> Self {
        let mut limbs = [0; LIMBS];
        let halves = |number: u128| [number as u64, (number >> 64) as u64];
        for (place, one) in halves(one).into_iter().enumerate() {
            let mut carry = 0_u128;
            for (more, other) in halves(other).into_iter().enumerate() {
                let sum = u128::from(one) * u128::from(other) + u128::from(limbs[place + more]) + carry;
                limbs[place + more] = sum as u64;
                carry = sum >> 64;
            }
            debug_assert!(carry <= u128::from(u64::MAX));
            limbs[place + 2] = carry as u64;
        }
        Self(limbs)
    }

    #[inline]
    pub(super) fn plus(self, other: Self) -> Self {
        let (mut limbs, mut carry) = ([0; LIMBS], false);
        for (limb, (one, other)) in limbs.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (sum, over) = one.overflowing_add(other);
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, over || more);
        }
        Self(limbs)
    }

    fn negated(self) -> Self {
        let mut one = [0; LIMBS];
        one[0] = 1;
        Self(self.0.map(|limb| !limb)).plus(Self(one))
    }

    /// Divides it, and gives the rest.
    fn divide(&mut self, by: u128) -> u128 {
        self.0.iter_mut().rev().fold(0, |rest, limb| {
            let whole = rest << 64 | u128::from(*limb);
            *limb = (whole / by) as u64;
            whole % by
        })
    }

    /// The sign, and the units without it.
    fn size(self) -> (bool, Self) {
        let is_negative = self.0[LIMBS - 1] >> 63 == 1;
        (is_negative, if is_negative { self.negated() } else { self })
    }

    /// The integer, where it is one of 127 bits and a sign.
    fn as_whole(self) -> Option<i128> {
        let (is_negative, mut size) = self.size();
        if size.divide(CHUNK) != 0 || size.divide(CHUNK) != 0 {
            return None;
        }
        let [low, high, 0, 0, 0] = size.0 else { return None };
        let size = i128::try_from(u128::from(high) << 64 | u128::from(low)).ok()?;
        Some(if is_negative { -size } else { size })
    }

    /// As a decimal number with a point.
    fn text(self) -> String {
        let (is_negative, mut size) = self.size();
        let mut digits = String::new();
        while size.0 != [0; LIMBS] {
            digits = format!("{:0CHUNK_DIGITS$}{digits}", size.divide(CHUNK));
        }
        let digits = format!("{digits:0>0$}", SCALE as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - SCALE as usize);
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        format!(
            "{}{}{}{fraction}",
            if is_negative { "-" } else { "" },
            if whole.is_empty() { "0" } else { whole },
            if fraction.is_empty() { "" } else { "." },
        )
    }

    fn read(state: &[u8]) -> Option<Self> {
        let mut limbs = [0; LIMBS];
        for (limb, bytes) in limbs.iter_mut().zip(state.chunks(u64::BYTES)) {
            *limb = u64::read(bytes)?.0;
        }
        (state.len() == Self::BYTES).then_some(Self(limbs))
    }

    pub(super) fn write(self, state: &mut [u8]) {
        state.chunks_exact_mut(u64::BYTES).zip(self.0).for_each(|(bytes, limb)| limb.write(bytes));
    }
}

impl SumDecimal {
    /// What adds up the values of a lane of this kind.
    pub(crate) fn accumulator(kind: Kind, lane: usize) -> Box<dyn Accumulator> {
        match kind {
            Kind::I64 => Folded::over(Integers::<true>, lane),
            _ => Box::new(Texts::new(lane)),
        }
    }
}

impl Aggregate for SumDecimal {
    type Input<'a> = Number;
    /// An integer, or a decimal number.
    type Output = Value<'static>;

    fn state_type(&self) -> StateType {
        StateType::new("sum_decimal", 1)
    }

    fn state_bytes(&self) -> Option<usize> {
        Some(Wide::BYTES)
    }

    fn lift(&self, value: Number, state: &mut Vec<u8>) -> Result<()> {
        let sum = Wide::of(value).ok_or_else(|| {
            Error::invalid(format!(
                "an exact sum takes numbers of at most 38 digits before the point and 38 after it, not {value}; fsum \
                 adds such numbers, rounded"
            ))
        })?;
        let start = state.len();
        state.resize(start + Wide::BYTES, 0);
        sum.write(&mut state[start..]);
        Ok(())
    }

    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        if let Some(sum) = states.iter().filter_map(|state| Wide::read(state)).reduce(Wide::plus) {
            let start = out.len();
            out.resize(start + Wide::BYTES, 0);
            sum.write(&mut out[start..]);
        }
    }

    #[inline]
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        if let (Some(one), Some(other)) = (Wide::read(state), Wide::read(other)) {
            one.plus(other).write(state);
        }
    }

    fn finish(&self, state: &[u8]) -> Result<Value<'static>> {
        let sum = Wide::read(state).ok_or_else(|| self.state_type().malformed(state))?;
        if let Some(whole) = sum.as_whole() {
            return Ok(Value::I128(whole));
        }
        let text = sum.text();
        Ok(text.parse::<i128>().map_or_else(|_| Value::Decimal(text.into()), Value::I128))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[&str]) -> String {
        let mut state = Vec::new();
        SumDecimal.lift(Number::from(0_i64), &mut state).expect("a number");
        for value in values {
            let mut more = Vec::new();
            SumDecimal.lift(Number::parse_exact(value).expect(value), &mut more).expect(value);
            SumDecimal.merge_in_place(&mut state, &more);
        }
        String::from_utf8(SumDecimal.finish(&state).expect("a state").to_text().into_owned()).expect("text")
    }

    #[test]
    fn nothing_is_rounded() {
        let largest = i128::MAX.to_string();
        for (values, expected) in [
            (&["9007199254740993.00", "1.00"][..], "9007199254740994"),
            (&["90071992547409931.00"], "90071992547409931"),
            (&["4503599627370497.5"], "4503599627370497.5"),
            (&["1e-38", "-1"], "-0.99999999999999999999999999999999999999"),
            (&["0.1", "0.2", "-0.3"], "0"),
            (&["18446744073709551615", "18446744073709551615"], "36893488147419103230"),
            (&[&largest, &largest, "0.5"], "340282366920938463463374607431768211454.5"),
            (
                &["-170141183460469231731687303715884105728", "1e38"],
                "-70141183460469231731687303715884105728",
            ),
        ] {
            assert_eq!(sum(values), expected, "{values:?}");
        }
        for refused in ["inf", "nan", "1e-39", "1e39", "1.5e-38"] {
            let number = Number::parse_exact(refused).expect(refused);
            assert!(SumDecimal.lift(number, &mut Vec::new()).is_err(), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn integers_are_summed_as_integers(values in proptest::collection::vec(any::<i64>(), 0..9), cents in 0_usize..39) {
            let texts: Vec<String> = values.iter().map(|value| format!("{value}e-{cents}")).collect();
            let sum = sum(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let total: i128 = values.iter().copied().map(i128::from).sum();
            prop_assert_eq!(Number::parse_exact(&sum), Number::parse_exact(&format!("{total}e-{cents}")));
        }
    }
}
