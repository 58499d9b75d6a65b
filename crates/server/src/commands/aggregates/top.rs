//! [`Top`]: the keys of the groups with the greatest answers of one function, of all that are shown to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay::aggregate::Value;
use forebay_aggregate::ordered::Number;

use crate::commands::Refusal;

/// What may be kept of them, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// A value in order: numbers by size, then texts by their bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Number(Number),
    Text(Vec<u8>),
}

/// A group, of which the greatest come last; of equal ones that of the lesser key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    rank: Rank,
    key: Reverse<Vec<u8>>,
}

impl Placed {
    fn bytes(&self) -> usize {
        let text = if let Rank::Text(text) = &self.rank { text.len() } else { 0 };
        text + self.key.0.len()
    }
}

/// See the module.
pub(super) struct Top {
    place: usize,
    count: usize,
    /// The least of the greatest first.
    best: BinaryHeap<Reverse<Placed>>,
    /// Of their keys, and of answers that are texts.
    bytes: usize,
}

impl Top {
    /// None yet, of so many, by the answer at this place.
    pub(super) fn new(place: usize, count: usize) -> Self {
        Self { place, count, best: BinaryHeap::new(), bytes: 0 }
    }

    /// Shows it a group. Answers that are nothing, or not a number, have no place. Returns whether it is kept.
    pub(super) fn add(&mut self, key: Vec<u8>, answers: &[Value<'_>]) -> Result<bool, Refusal> {
        let rank = match &answers[self.place] {
            Value::Null => return Ok(false),
            Value::F64(number) if number.is_nan() => return Ok(false),
            Value::Bool(truth) => Rank::Number(Number::from(i64::from(*truth))),
            Value::List(_) | Value::Pairs(_) | Value::Cut => {
                return Err("ERR answers of this function have no order".into());
            }
            answer => match answer.as_number() {
                Some(number) => Rank::Number(number),
                None => Rank::Text(answer.to_text().into_owned()),
            },
        };
        let placed = Placed { rank, key: Reverse(key) };
        self.bytes += placed.bytes();
        if self.best.len() >= self.count {
            let left = match self.best.peek_mut() {
                Some(mut least) if placed > least.0 => std::mem::replace(&mut least.0, placed),
                _ => {
                    self.bytes -= placed.bytes();
                    return Ok(false);
                }
            };
            self.bytes -= left.bytes();
        } else {
            self.best.push(Reverse(placed));
        }
        debug_assert!(self.best.len() <= self.count, "no more are kept than are asked for");
        match self.bytes {
            ..=BYTES_MAX => Ok(true),
            _ => Err("ERR keys and answers of so many groups are too long; ask for fewer".into()),
        }
    }

    /// The keys, that of the greatest first.
    pub(super) fn finish(self) -> Vec<Vec<u8>> {
        self.best.into_sorted_vec().into_iter().map(|Reverse(placed)| placed.key.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_come_first_and_of_equal_ones_the_lesser_key() {
        let mut top = Top::new(0, 3);
        let values = [Value::I64(5), Value::Null, Value::I64(9), Value::F64(f64::NAN), Value::I64(5)];
        for (at, value) in values.into_iter().enumerate() {
            assert!(top.add(vec![at as u8], &[value]).is_ok());
        }
        assert!(top.add(vec![9], &[Value::bytes(&b"text"[..])]).is_ok_and(|kept| kept));
        assert!(top.add(vec![10], &[Value::List(Vec::new())]).is_err());
        let keys: Vec<u8> = top.finish().into_iter().map(|key| key[0]).collect();
        assert_eq!(keys, [9, 2, 0]);
    }

    #[test]
    fn what_is_kept_has_a_bound_and_what_is_displaced_does_not_count() {
        let text = || Value::bytes(vec![b'x'; BYTES_MAX / 4]);
        let mut top = Top::new(0, 2);
        for key in (0..20).rev() {
            assert!(top.add(vec![key], &[text()]).is_ok_and(|kept| kept));
        }
        assert_eq!(top.finish(), [[0], [1]]);
        let mut top = Top::new(0, 20);
        assert!((0..4).any(|key| top.add(vec![key], &[text()]).is_err()));
    }
}
