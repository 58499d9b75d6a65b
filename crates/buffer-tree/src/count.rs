//! A tree of counts: fragments that hold no records, and what jobs would make of them. They drive the very
//! planning, settling and applying of the engine over trees of any size.
//!
//! **Model:** keys are spread evenly over all prefixes, so a fragment's share of a range is the range's share
//! of the prefixes; and a fragment holds each of the keys that there are with one and the same chance.
//!
//! **Invariant:** an outcome says no more than a job of the same plan would say: what falls to each child, or
//! all of a leaf and where it falls in two.

use std::sync::Arc;

use forebay_base::record::Shape;
use forebay_base::{Bound, Error, Range, Result};

use crate::divide::{Candidate, divide};
use crate::job::Written;
use crate::{Division, Fragment, JobPlan, List, Node, Outcome, Portion, Tree};

/// A fragment of which only counts are known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counted {
    id: u32,
    coverage: f32,
    /// The logarithm of the share of keys that it does not hold.
    absence_ln: f32,
}

impl Counted {
    /// A fragment that holds this share of all keys in its range; 0.0 where no key is ever written twice.
    pub fn new(id: u32, coverage: f64) -> Self {
        Self { id, coverage: coverage as f32, absence_ln: (-coverage).ln_1p() as f32 }
    }

    /// Its name.
    pub fn number(&self) -> u32 {
        self.id
    }

    /// The share of all keys in its range that it holds.
    pub fn coverage(&self) -> f64 {
        self.coverage.into()
    }

    /// The share of all keys that these hold together, and the sum of their own.
    pub fn union<'a>(fragments: impl Iterator<Item = &'a Self>) -> (f64, f64) {
        let mut absence_ln = 0.0;
        let mut sum = 0.0;
        // Fragments of one tree repeat keys all or none of them.
        for fragment in fragments.take_while(|fragment| fragment.coverage > 0.0) {
            absence_ln += f64::from(fragment.absence_ln);
            sum += fragment.coverage();
        }
        debug_assert!(absence_ln <= 0.0 && sum >= 0.0);
        (-absence_ln.exp_m1(), sum)
    }
}

impl Fragment for Counted {
    fn id(&self) -> u64 {
        u64::from(self.id)
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        let at = Bound::at_prefix(range.low.prefix + (width(range) / 2) as u64);
        range.can_split_at(&at).then_some(at)
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        (at.prefix - range.low.prefix) as f64 / width(range) as f64
    }

    fn repeats<'a>(lists: impl Iterator<Item = &'a List<Self>>, _low: u64, _high: u64) -> f64 {
        let (union, sum) = Self::union(lists.map(|list| &list.fragment));
        if sum == 0.0 { 1.0 } else { sum / union }
    }

    fn shape(&self) -> Shape {
        Shape::Unknown
    }
}

fn width(range: &Range) -> u128 {
    range.high.as_ref().map_or(1 << 64, |high| u128::from(high.prefix)) - u128::from(range.low.prefix)
}

impl<F: Fragment> Outcome<F> {
    /// What a spill of the root's buffer makes: this fragment of this much.
    pub fn counted_flush(tree: &Tree<F>, fragment: F, whole: Portion) -> Self {
        let root = tree.root();
        let result = Written::Children(deal_out(&fragment, whole, root));
        Self { node: root.reference(), lists: 0, fragment: Some(fragment), result }
    }

    /// What the planned job makes: this fragment of this much. The tree is the one it was planned on.
    pub fn counted(tree: &Tree<F>, plan: &JobPlan, fragment: F, whole: Portion) -> Result<Self> {
        let Some(node) = tree.find(&plan.node) else {
            return Err(Error::bug(format!("node {} is not as it was planned", plan.node.id.0)));
        };
        let result = match plan.kind.split_bytes(tree.options().threshold_bytes(node.id)) {
            None => Written::Children(deal_out(&fragment, whole, node)),
            Some(split_bytes) => {
                let half = fragment.middle(&node.range).and_then(|at| {
                    let below = divide(&fragment, &node.range, whole, &at).below?;
                    Some(Candidate { at, below })
                });
                Written::leaf(whole, half, split_bytes)
            }
        };
        Ok(Self { node: plan.node.clone(), lists: plan.lists, fragment: Some(fragment), result })
    }
}

/// What falls to each child, in order.
fn deal_out<F: Fragment>(fragment: &F, whole: Portion, node: &Node<F>) -> Vec<(Range, Portion)> {
    fetch(&node.children);
    let (mut range, mut rest) = (node.range.clone(), whole);
    let mut pieces = Vec::with_capacity(node.children.len());
    for child in node.children.iter() {
        let division = match &child.range.high {
            Some(high) if range.can_split_at(high) => divide(fragment, &range, rest, high),
            _ => Division { below: Some(rest), above: None },
        };
        pieces.push((child.range.clone(), division.below.unwrap_or_default()));
        rest = division.above.unwrap_or_default();
        range.low = child.range.high.clone().unwrap_or_default();
    }
    debug_assert_eq!(pieces.iter().map(|(_, portion)| portion.records).sum::<u64>(), whole.records);
    pieces
}

/// Looks at all children at once. They lie anywhere in memory, and of a large tree in none of the machine's
/// caches: dealt to one after the other, each would be waited for. Side by side they come in two thirds of
/// the time.
fn fetch<F>(children: &[Arc<Node<F>>]) {
    let first = |child: &Node<F>| child.id.0 ^ child.range.low.prefix ^ child.unsplittable_bytes;
    let last = |child: &Node<F>| child.lists.last().map_or(0, |list| list.bytes);
    std::hint::black_box(children.iter().fold(0, |sum, child| sum ^ first(child)));
    std::hint::black_box(children.iter().fold(0, |sum, child| sum ^ last(child)));
}
