//! [`Top`]: the groups with the greatest answers of one function, of all that are shown to it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use forebay::aggregate::Value;
use forebay_aggregate::ordered::Number;

/// A value in order: numbers by size, then texts by their bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Number(Number),
    Text(Vec<u8>),
}

/// A group, of which the greatest come last; of equal ones that of the lesser key.
struct Placed {
    rank: Rank,
    key: Reverse<Vec<u8>>,
    answers: Vec<Value<'static>>,
}

impl Placed {
    fn place(&self) -> (&Rank, &Reverse<Vec<u8>>) {
        (&self.rank, &self.key)
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Placed {}

/// See the module.
pub(super) struct Top {
    place: usize,
    count: usize,
    /// The least of the greatest first.
    best: BinaryHeap<Reverse<Placed>>,
}

/// An answer that has no order.
pub(super) struct Unordered;

impl Top {
    /// None yet, of so many, by the answer at this place.
    pub(super) fn new(place: usize, count: usize) -> Self {
        Self { place, count, best: BinaryHeap::new() }
    }

    /// Shows it a group. Answers that are nothing, or not a number, have no place. Returns whether it is kept.
    pub(super) fn add(&mut self, key: Vec<u8>, answers: Vec<Value<'static>>) -> Result<bool, Unordered> {
        let rank = match &answers[self.place] {
            Value::Null => return Ok(false),
            Value::F64(number) if number.is_nan() => return Ok(false),
            Value::Bool(truth) => Rank::Number(Number::from(i64::from(*truth))),
            Value::List(_) | Value::Pairs(_) | Value::Cut => return Err(Unordered),
            answer => match answer.as_number() {
                Some(number) => Rank::Number(number),
                None => Rank::Text(answer.to_text().into_owned()),
            },
        };
        let placed = Placed { rank, key: Reverse(key), answers };
        if self.best.len() >= self.count {
            match self.best.peek_mut() {
                Some(mut least) if placed > least.0 => *least = Reverse(placed),
                _ => return Ok(false),
            }
        } else {
            self.best.push(Reverse(placed));
        }
        debug_assert!(self.best.len() <= self.count, "no more are kept than are asked for");
        Ok(true)
    }

    /// The greatest first: keys and answers.
    pub(super) fn finish(self) -> Vec<(Vec<u8>, Vec<Value<'static>>)> {
        let best = self.best.into_sorted_vec();
        best.into_iter().map(|Reverse(placed)| (placed.key.0, placed.answers)).collect()
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
            assert!(top.add(vec![at as u8], vec![value]).is_ok());
        }
        assert!(top.add(vec![9], vec![Value::bytes(&b"text"[..])]).is_ok_and(|kept| kept));
        assert!(top.add(vec![10], vec![Value::List(Vec::new())]).is_err());
        let keys: Vec<u8> = top.finish().into_iter().map(|(key, _)| key[0]).collect();
        assert_eq!(keys, [9, 2, 0]);
    }
}
