//! Subcompactions over files that are names alone: who gets which, and what becomes of those that are let go of.

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

    fn shape(&self) -> Shape {
        Shape::Variable
    }
}

fn range(low: &str, high: &str) -> Range {
    let bound = |key: &str| Order::Lexical.bound(key.as_bytes());
    Range { low: bound(low), high: Some(bound(high)) }
}

/// Subcompactions of a range from `a` to `z` over parts of these files.
fn subcompactions(parts: &[(&str, &str, u64)]) -> Arc<SubcompactionQueue<Named, &'static str>> {
    let part = |&(low, high, file): &(&str, &str, u64)| {
        let portion = Portion { bytes: 1, records: 1 };
        Arc::new(Part { range: range(low, high), fragment: Named(file), portion, is_bottom: true })
    };
    let parts = parts.iter().map(part).collect();
    let run = Run { id: NodeId(1), level: 1, is_resident: false, below: 0, parts };
    SubcompactionQueue::new(&run, &range("a", "z"))
}

/// The number of the next subcompaction, which nobody is at afterwards.
fn next(subcompactions: &Arc<SubcompactionQueue<Named, &'static str>>) -> Option<usize> {
    subcompactions.take().map(|claimed| claimed.subcompaction().number)
}

#[test]
fn subcompactions_cover_the_range_and_come_back_in_order() {
    let subcompactions = subcompactions(&[("b", "d", 1), ("d", "f", 2), ("p", "q", 3)]);
    let mut taken = Vec::new();
    while let Some(claimed) = subcompactions.take() {
        taken.push(claimed);
    }
    let ranges: Vec<_> = taken.iter().map(|claimed| claimed.subcompaction().range.clone()).collect();
    let wanted = [("a", "b"), ("b", "d"), ("d", "f"), ("f", "p"), ("p", "q"), ("q", "z")];
    assert_eq!(ranges, wanted.map(|(low, high)| range(low, high)));
    assert_eq!(taken[1].subcompaction().target.as_ref().map(|part| part.fragment.0), Some(1));
    assert!(taken[3].subcompaction().target.is_none());
    for (claimed, done) in taken.into_iter().rev().zip(["6", "5", "4", "3", "2", "1"]) {
        assert!(subcompactions.finish().is_none() && subcompactions.are_claimed());
        claimed.done(done);
    }
    assert_eq!(subcompactions.finish().unwrap().collect::<Vec<_>>(), ["1", "2", "3", "4", "5", "6"]);
}

/// Two parts of one file, which a range delete left, are done one after the other.
#[test]
fn a_file_is_claimed_once() {
    let subcompactions = subcompactions(&[("a", "f", 7), ("f", "h", 8), ("h", "z", 7)]);
    let first = subcompactions.take().unwrap();
    let second = subcompactions.take().unwrap();
    assert_eq!((first.subcompaction().number, second.subcompaction().number), (0, 1));
    assert!(subcompactions.take().is_none() && subcompactions.wait());
    second.done("second");
    assert!(subcompactions.take().is_none() && subcompactions.wait());
    first.done("first");
    assert!(!subcompactions.wait() && next(&subcompactions) == Some(2));
}

#[test]
fn what_is_let_go_of_waits_again() {
    let subcompactions = subcompactions(&[("a", "f", 1), ("f", "z", 2)]);
    let first = subcompactions.take().unwrap();
    assert_eq!(next(&subcompactions), Some(1));
    drop(first);
    assert!(!subcompactions.are_claimed() && subcompactions.finish().is_none());
    assert_eq!(next(&subcompactions), Some(0));
}

/// Whoever is at a subcompaction then can be waited for; what comes of it is dropped.
#[test]
fn nothing_is_begun_once_all_is_over() {
    let subcompactions = subcompactions(&[("a", "f", 1), ("f", "p", 2), ("p", "z", 3)]);
    subcompactions.take().unwrap().done("done");
    let claimed = subcompactions.take().unwrap();
    subcompactions.abandon();
    assert!(subcompactions.are_over() && subcompactions.take().is_none() && subcompactions.wait());
    claimed.done("late");
    assert!(!subcompactions.are_claimed() && !subcompactions.wait());
    assert!(subcompactions.finish().is_none(), "a subcompaction was never done");
}
