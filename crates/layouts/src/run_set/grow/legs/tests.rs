//! Legs over files that are names alone: who gets which, and what becomes of those that are let go of.

use forebay_base::record::Shape;
use forebay_base::{Bound, Order};
use forebay_buffer_tree::{NodeId, Portion};

use super::*;

/// A file by its name alone.
#[derive(Clone, Copy)]
struct Named(u64);

impl Fragment for Named {
    fn id(&self) -> u64 {
        self.0
    }

    fn middle(&self, _: &Range) -> Option<Bound> {
        None
    }

    fn share_below(&self, _: &Range, _: &Bound) -> f64 {
        0.5
    }

    fn repeats<'a>(_: impl Iterator<Item = &'a Self>, _: u64, _: u64) -> f64 {
        1.0
    }

    fn shape(&self) -> Shape {
        Shape::Variable
    }
}

fn range(low: &str, high: &str) -> Range {
    let bound = |key: &str| Order::Lexical.bound(key.as_bytes());
    Range { low: bound(low), high: Some(bound(high)) }
}

/// Legs of a range from `a` to `z` over parts of these files.
fn legs(parts: &[(&str, &str, u64)]) -> Arc<Legs<Named, &'static str>> {
    let part = |&(low, high, file): &(&str, &str, u64)| {
        let portion = Portion { bytes: 1, records: 1 };
        Arc::new(Part { range: range(low, high), fragment: Named(file), portion, is_bottom: true })
    };
    let parts = parts.iter().map(part).collect();
    let run = Run { id: NodeId(1), level: 1, is_resident: false, below: 0, parts };
    Legs::new(&run, &range("a", "z"))
}

/// The number of the next leg, which nobody is at afterwards.
fn next(legs: &Arc<Legs<Named, &'static str>>) -> Option<usize> {
    legs.take().map(|in_hand| in_hand.leg().number)
}

#[test]
fn legs_cover_the_range_and_come_back_in_order() {
    let legs = legs(&[("b", "d", 1), ("d", "f", 2), ("p", "q", 3)]);
    let mut taken = Vec::new();
    while let Some(in_hand) = legs.take() {
        taken.push(in_hand);
    }
    let ranges: Vec<_> = taken.iter().map(|in_hand| in_hand.leg().range.clone()).collect();
    let wanted = [("a", "b"), ("b", "d"), ("d", "f"), ("f", "p"), ("p", "q"), ("q", "z")];
    assert_eq!(ranges, wanted.map(|(low, high)| range(low, high)));
    assert_eq!(taken[1].leg().target.as_ref().map(|part| part.fragment.0), Some(1));
    assert!(taken[3].leg().target.is_none());
    for (in_hand, done) in taken.into_iter().rev().zip(["6", "5", "4", "3", "2", "1"]) {
        assert!(legs.finish().is_none() && legs.are_in_hand());
        in_hand.done(done);
    }
    assert_eq!(legs.finish().unwrap().collect::<Vec<_>>(), ["1", "2", "3", "4", "5", "6"]);
}

/// Two parts of one file, which a range delete left, are done one after the other.
#[test]
fn a_file_is_in_one_hand() {
    let legs = legs(&[("a", "f", 7), ("f", "h", 8), ("h", "z", 7)]);
    let first = legs.take().unwrap();
    let second = legs.take().unwrap();
    assert_eq!((first.leg().number, second.leg().number), (0, 1));
    assert!(legs.take().is_none() && legs.wait());
    second.done("second");
    assert!(legs.take().is_none() && legs.wait());
    first.done("first");
    assert!(!legs.wait() && next(&legs) == Some(2));
}

#[test]
fn what_is_let_go_of_waits_again() {
    let legs = legs(&[("a", "f", 1), ("f", "z", 2)]);
    let first = legs.take().unwrap();
    assert_eq!(next(&legs), Some(1));
    drop(first);
    assert!(!legs.are_in_hand() && legs.finish().is_none());
    assert_eq!(next(&legs), Some(0));
}

/// Whoever is at a leg then can be waited for; what comes of it is dropped.
#[test]
fn nothing_is_begun_once_all_is_over() {
    let legs = legs(&[("a", "f", 1), ("f", "p", 2), ("p", "z", 3)]);
    legs.take().unwrap().done("done");
    let in_hand = legs.take().unwrap();
    legs.abandon();
    assert!(legs.are_over() && legs.take().is_none() && legs.wait());
    in_hand.done("late");
    assert!(!legs.are_in_hand() && !legs.wait());
    assert!(legs.finish().is_none(), "a leg was never done");
}
