//! Running a plan: an explicit machine that merges, collapses and writes one fragment, in steps.
//!
//! A job holds what it needs and not the tree: edits go on beside it, and [`Tree::rebase`] fits its outcome
//! to whatever the tree has become.

use forebay_base::combine::Depth;
use forebay_base::merge::{Collapse, Cursor, Extent, Merge, Progress};
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Combine, Error, Kind, Order, Range, Result};

use crate::divide::{Candidate, Halving, Tally};
use crate::{
    Expected, Fragment, FragmentStore, FragmentWriter, JobKind, JobPlan, List, Node, NodeRef, Portion, Tree,
};

/// A spill, a slow split or a merge on its way.
pub struct Job<C, W, R> {
    node: NodeRef,
    lists: usize,
    collapse: Collapse<C, R>,
    /// Records that are all puts of one shape, or all pointers of one, go by blocks.
    block: Option<Block>,
    /// Records that were written.
    produced: u64,
    /// `None` once it is done.
    work: Option<(W, Target)>,
}

/// What the fragment is for.
enum Target {
    /// The children that lay at these bounds.
    Children { range: Range, lows: Vec<Bound>, tally: Tally },
    /// A leaf, to be split if it turns out this large.
    Leaf { halving: Halving, split_bytes: u64 },
}

/// What a step came to.
#[derive(Debug)]
pub enum JobStep<F> {
    /// There is more to do.
    Worked(Progress),
    /// All is written and sealed.
    Done(Outcome<F>),
}

/// What a job made, to be rebased on the tree as it is by then.
#[derive(Clone, Debug)]
pub struct Outcome<F> {
    pub(crate) node: NodeRef,
    pub(crate) lists: usize,
    pub(crate) fragment: Option<F>,
    pub(crate) result: Written,
}

/// The counts of a finished fragment.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// What fell to each range of a child at the time of the plan, in order.
    Children(Vec<(Range, Portion)>),
    /// All of a leaf, and where it should fall in two.
    Leaf { portion: Portion, split: Option<Candidate>, unsplittable_bytes: u64 },
}

impl<F> Outcome<F> {
    /// The fragment that was written; `None` when everything collapsed away.
    pub fn fragment(&self) -> Option<&F> {
        self.fragment.as_ref()
    }

    /// The node that this is about.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }
}

impl<C: Cursor, W: FragmentWriter, R: Combine> Job<Merge<C>, W, R> {
    /// Opens what the plan needs. The tree is the one it was planned on, or a later one.
    pub fn start<S>(
        tree: &Tree<S::Fragment>,
        plan: &JobPlan,
        order: Order,
        rule: R,
        store: &S,
    ) -> Result<Self>
    where
        S: FragmentStore<Cursor = C, Writer = W>,
    {
        let captured = tree.find(&plan.node).and_then(|node| Some((node, node.lists.get(..plan.lists)?)));
        let Some((node, lists)) =
            captured.filter(|(node, _)| node.is_leaf() != (plan.kind == JobKind::Spill))
        else {
            return Err(Error::bug(format!("node {} is not as it was planned", plan.node.id.0)));
        };
        let expected = expected(node, lists);
        let expected = Expected { shape: shape_of_merged(expected.shape, &rule), ..expected };
        lists.iter().for_each(|list| store.announce(&list.fragment, &node.range, lists.len()));
        // Merges take the newest first.
        let cursors = lists.iter().rev().map(|list| store.cursor(&list.fragment, &node.range, lists.len()));
        let high = node.range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
        let uniform = order.is_uniform().then_some((node.range.low.prefix, high));
        let extent =
            Extent { bytes: expected.bytes, records: expected.records, uniform, shape: expected.shape };
        let merge = Merge::new(cursors.collect::<Result<_>>()?, extent)?;
        let halving = || Halving::new(order, expected.bytes);
        // A leaf's oldest lists have nothing older beneath them.
        let (target, depth) = match plan.kind.split_bytes(tree.options().threshold_bytes(node.id)) {
            None => (Target::children(node), Depth::Partial),
            Some(split_bytes) => (Target::Leaf { halving: halving(), split_bytes }, Depth::Bottom),
        };
        let work = Some((store.writer(&expected)?, target));
        let collapse = Collapse::new(merge, rule, depth);
        let block = collapse.block(expected.shape);
        Ok(Self { node: plan.node.clone(), lists: plan.lists, collapse, block, produced: 0, work })
    }
}

impl<C: Cursor, W: FragmentWriter, R: Combine> Job<C, W, R> {
    /// Spills the root's buffer, which `input` yields in order, the newest first among records of one key.
    /// Flushes must be rebased in the order in which their buffers were filled.
    pub fn flush<S>(
        tree: &Tree<S::Fragment>,
        input: C,
        expected: &Expected,
        rule: R,
        store: &S,
    ) -> Result<Self>
    where
        S: FragmentStore<Writer = W>,
    {
        let root = tree.root();
        let shape = shape_of_merged(expected.shape, &rule);
        let work = Some((store.writer(&Expected { shape, ..expected.clone() })?, Target::children(root)));
        Ok(Self {
            node: root.reference(),
            lists: 0,
            collapse: Collapse::new(input, rule, Depth::Partial).of_any_length(),
            block: Block::new(shape),
            produced: 0,
            work,
        })
    }

    /// The node that this is about.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }

    /// Works through about this many bytes of input. After an error the job can only be dropped.
    pub fn step(&mut self, bytes_max: usize) -> Result<JobStep<W::Fragment>> {
        if self.collapse.is_finished() {
            return self.finish();
        }
        let Some((writer, target)) = &mut self.work else { return Err(Error::bug("the job is done")) };
        let bytes_max = bytes_max.max(1);
        let progress = match &mut self.block {
            Some(block) => self.collapse.run_blocks(bytes_max, block, |block| {
                target.count(block, writer.bytes());
                writer.push_block(block)
            }),
            None => self.collapse.run(bytes_max, |prefix, record| {
                target.count_one(prefix, record.key, writer.bytes());
                writer.push(prefix, record)
            }),
        };
        let progress = progress?;
        self.produced += progress.produced;
        Ok(JobStep::Worked(progress))
    }

    fn finish(&mut self) -> Result<JobStep<W::Fragment>> {
        let Some((writer, target)) = self.work.take() else { return Err(Error::bug("the job is done")) };
        let result = target.finish(writer.bytes());
        let (counted, produced) = (result.records(), self.produced);
        debug_assert_eq!(counted, produced, "each record that is written is counted once");
        if counted != produced {
            return Err(Error::bug(format!("of {produced} records that a job wrote {counted} were counted")));
        }
        let (node, lists) = (self.node.clone(), self.lists);
        Ok(JobStep::Done(Outcome { node, lists, fragment: writer.finish()?, result }))
    }
}

impl Target {
    fn children<F>(node: &Node<F>) -> Self {
        let lows: Vec<Bound> =
            node.children().iter().skip(1).map(|child| child.range().low.clone()).collect();
        Self::Children { range: node.range().clone(), tally: Tally::new(lows.clone()), lows }
    }

    /// Counts a record that is about to be written behind this many bytes.
    #[inline]
    fn count_one(&mut self, prefix: u64, key: &[u8], bytes: u64) {
        match self {
            Self::Children { tally, .. } => tally.count(prefix, key, bytes),
            Self::Leaf { halving, .. } => halving.count(key, bytes),
        }
    }

    /// Counts the records of a block.
    fn count(&mut self, block: &Block, bytes: u64) {
        match self {
            Self::Children { tally, .. } => tally.count_block(block, bytes),
            Self::Leaf { halving, .. } => {
                (0..block.len())
                    .for_each(|index| halving.count(block.key(index), bytes + block.offset(index) as u64));
            }
        }
    }

    fn finish(self, bytes: u64) -> Written {
        match self {
            Self::Children { range, lows, tally } => {
                let highs = lows.iter().cloned().map(Some).chain([range.high]);
                let ranges = [range.low].into_iter().chain(lows.iter().cloned()).zip(highs);
                let ranges = ranges.map(|(low, high)| Range { low, high });
                debug_assert!(lows.is_sorted(), "children lie in order");
                Written::Children(ranges.zip(tally.finish(bytes)).collect())
            }
            Self::Leaf { halving, split_bytes } => {
                let (portion, half) = halving.finish(bytes);
                Written::leaf(portion, half, split_bytes)
            }
        }
    }
}

impl Written {
    /// How many records were written.
    fn records(&self) -> u64 {
        match self {
            Self::Children(pieces) => pieces.iter().map(|(_, portion)| portion.records).sum(),
            Self::Leaf { portion, .. } => portion.records,
        }
    }

    /// A leaf, to be split at `half` if it is this large.
    pub(crate) fn leaf(portion: Portion, half: Option<Candidate>, split_bytes: u64) -> Self {
        debug_assert!(half.as_ref().is_none_or(|half| half.below.records <= portion.records));
        let full = portion.bytes >= split_bytes;
        let unsplittable_bytes = if full && half.is_none() { portion.bytes } else { 0 };
        Self::Leaf { portion, split: half.filter(|_| full), unsplittable_bytes }
    }
}

/// The shape of what becomes of records of this shape: states may grow as they merge, and are puts where none are
/// deleted.
pub fn shape_of_merged(shape: Shape, rule: &impl Combine) -> Shape {
    debug_assert!(
        !(shape.kind() == Some(Kind::Pointer) && rule.merges_puts()),
        "a state stands with its key"
    );
    match shape {
        Shape::Fixed { .. } if !rule.merges_puts() || rule.keeps_length() => shape,
        Shape::Fixed { .. } => Shape::Puts,
        _ if rule.merges_puts() && !rule.deletes_states() => Shape::Puts,
        _ => shape,
    }
}

fn expected<F: Fragment>(node: &Node<F>, lists: &[List<F>]) -> Expected {
    let empty = Expected { range: node.range().clone(), ..Expected::default() };
    lists.iter().fold(empty, |sum, list| Expected {
        range: sum.range,
        bytes: sum.bytes.saturating_add(list.bytes),
        records: sum.records.saturating_add(list.records),
        shape: Shape::join(sum.shape, list.fragment.shape()),
    })
}
