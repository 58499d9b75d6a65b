//! The WB tree as [text dialogues](crate::dialogue): `dialogue/*.txt`. A head has the tree's options: `tree node 100k
//! fan-out 4 lists 8 fast 2`.
//!
//! A state has a line for each node but the root, its children below it and further in:
//!
//! - `3 25%-50%: 40k 20k*`: node 3, for the prefixes between these shares of all, with its lists, oldest first, in bytes;
//!   a bottom one (`*`), one that has this share of all keys (`40k~30%`): two of these have keys in common.
//! - Behind that `fast 2`, after so many fast splits in a row; `one key 90k`, after a split that failed at that size.
//! - `busy 3 5`: nodes that jobs work on.
//!
//! Decided is which children a write buffer comes to, what is done next, and what the tree is `then`; what a full
//! compaction would do, and a round that reclaims space. Each node is full at its own size. Records have 10 bytes.
//!
//! `load 12` instead gives an empty table so many write buffers of a node's size, and tells all that is done.

use std::fmt::Write as _;

use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Bound, Range};
use forebay_buffer_tree::wire::{put_all, put_bound, put_portion};
use forebay_buffer_tree::{Edit, JobKind, JobPlan, Node, NodeId, Outcome, Portion, Tree, Work};

use super::*;
use crate::dialogue::{self, ends, number, place};

const RECORD: u64 = 10;

/// A node as it is told.
#[derive(Default)]
struct Told {
    depth: usize,
    id: u64,
    low: Bound,
    ends: String,
    /// Their fragments are numbered from [`FIRST`] on, in the order of the text.
    lists: Vec<(u64, bool)>,
    fast_splits: u64,
    unsplittable_bytes: u64,
}

/// Beyond all that a few jobs make.
const FIRST: u64 = 1 << 20;

#[derive(Default)]
struct State {
    nodes: Vec<Told>,
    /// The share of all keys that each list has.
    coverages: Vec<f64>,
    busy: BTreeSet<NodeId>,
}

impl State {
    fn parse(lines: &[&str]) -> Self {
        let mut state = Self::default();
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            match &words[..] {
                ["busy", nodes @ ..] => state.busy.extend(nodes.iter().map(|node| NodeId(number(node)))),
                [id, range, rest @ ..] => state.node(line, id, range, rest),
                _ => panic!("`{line}` is no line of a state"),
            }
        }
        state
    }

    fn node(&mut self, line: &str, id: &str, range: &str, mut rest: &[&str]) {
        let range = range.strip_suffix(':').unwrap_or_else(|| panic!("`{line}` is no node"));
        let depth = (line.len() - line.trim_start().len()) / 2;
        let low = bound(range.split_once('-').unwrap().0);
        let mut node = Told { depth, id: number(id), low, ends: range.into(), ..Told::default() };
        while let [word, more @ ..] = rest {
            rest = match (*word, more) {
                ("fast", [splits, more @ ..]) => {
                    node.fast_splits = number(splits);
                    more
                }
                ("one", ["key", bytes, more @ ..]) => {
                    node.unsplittable_bytes = number(bytes);
                    more
                }
                _ => {
                    let (word, is_bottom) =
                        word.strip_suffix('*').map_or((*word, false), |word| (word, true));
                    let (bytes, share) = word.split_once('~').unwrap_or((word, "0%"));
                    node.lists.push((number(bytes), is_bottom));
                    self.coverages.push(number(share.trim_end_matches('%')) as f64 / 100.0);
                    more
                }
            };
        }
        self.nodes.push(node);
    }

    /// The tree, read from the bytes that a manifest would have of it.
    fn tree(&self, options: &TreeOptions) -> Tree<Counted> {
        let (mut bytes, mut fragment) = (Vec::new(), FIRST);
        options.encode(&mut bytes);
        put_varint(&mut bytes, 1 + self.nodes.iter().map(|node| node.id).max().unwrap_or(0));
        let children: Vec<usize> = (0..self.nodes.len()).filter(|&at| self.nodes[at].depth == 0).collect();
        put_node(&mut bytes, &Told::default(), children.iter().map(|&at| &self.nodes[at]), &mut fragment);
        for at in 0..self.nodes.len() {
            let below = &self.nodes[at + 1..];
            let below = &below
                [..below.iter().position(|node| node.depth <= self.nodes[at].depth).unwrap_or(below.len())];
            let children = below.iter().filter(|node| node.depth == self.nodes[at].depth + 1);
            put_node(&mut bytes, &self.nodes[at], children, &mut fragment);
        }
        let tree = Tree::decode(&mut Reader::new(&bytes))
            .expect("nodes of a level lie side by side, all leaves as deep");
        let mut told = self.nodes.iter();
        tree.for_each_node(&mut |depth, node| {
            assert!(
                depth == 0 || told.next().is_some_and(|told| told.ends == ends(node.range())),
                "{node:?}"
            );
        });
        tree.map(|&id| Ok(Counted::new(id as u32, self.coverages[(id - FIRST) as usize]))).unwrap()
    }

    /// What is decided here.
    fn decisions(&self, options: &TreeOptions) -> String {
        let tree = self.tree(options);
        let mut said = String::new();
        let buffer = Portion { bytes: options.node_bytes, records: options.node_bytes / RECORD };
        let flushed = Outcome::counted_flush(&tree, Counted::new(0, 0.0), buffer);
        let Edit::Spill { children, .. } = tree.rebase(flushed).unwrap() else {
            panic!("a flush is a spill")
        };
        let limit = |node: &Node<Counted>| format!("{} at {}", node.id().0, size(node.limit_bytes(options)));
        let mut limits = Vec::new();
        tree.for_each_node(&mut |depth, node| limits.extend((depth > 0).then(|| limit(node))));
        writeln!(said, "full:    {}", limits.join(", ")).unwrap();
        writeln!(said, "flush:   to {}", names(children.iter().map(|(child, _)| child.0))).unwrap();
        let next = tree.next_work(&self.busy);
        let shown = next.as_ref().map_or_else(|| "nothing".into(), |work| step(&tree, work));
        writeln!(said, "next:    {shown}").unwrap();
        let compact = tree.next_full_compaction(&self.busy).map(|plan| job(&tree, &plan));
        let reclaim = tree.next_reclaim(&self.busy, None, &Range::all()).map(|(plan, _)| job(&tree, &plan));
        writeln!(said, "compact: {}", compact.unwrap_or_else(|| "nothing".into())).unwrap();
        writeln!(said, "reclaim: {}", reclaim.unwrap_or_else(|| "nothing".into())).unwrap();
        writeln!(said, "debt:    {}", size(tree.debt_bytes())).unwrap();
        if let Some(work) = next {
            let mut simulated = SimulatedTree::of(tree, model(), Keys::Unique);
            simulated.work(work).unwrap();
            simulated.check().unwrap();
            writeln!(said, "then:").unwrap();
            simulated.tree.for_each_node(&mut |depth, node| said += &drawn(depth, node));
        }
        said
    }
}

fn put_node<'a>(
    out: &mut Vec<u8>,
    node: &Told,
    children: impl Iterator<Item = &'a Told>,
    fragment: &mut u64,
) {
    put_varint(out, node.id);
    put_varint(out, node.fast_splits);
    put_varint(out, node.unsplittable_bytes);
    let first = *fragment;
    *fragment += node.lists.len() as u64;
    let lists: Vec<_> = (first..).zip(&node.lists).collect();
    put_all(out, &lists, |out, (fragment, (bytes, is_bottom))| {
        put_varint(out, *fragment);
        put_portion(out, &Portion { bytes: *bytes, records: bytes / RECORD });
        out.push((*is_bottom).into());
    });
    let lows: Vec<&Bound> = children.map(|child| &child.low).collect();
    put_varint(out, lows.len() as u64);
    lows.iter().skip(1).for_each(|low| put_bound(out, low));
}

fn bound(share: &str) -> Bound {
    let Some(share) = share.strip_suffix('%') else { return Bound::least() };
    Bound::at_prefix((u128::from(number(share)) * (1 << 64) / 100) as u64)
}

fn model() -> ListModel {
    ListModel { record_bytes: RECORD, ..lists(u64::MAX) }
}

fn size(bytes: u64) -> String {
    if bytes == 0 { "0".into() } else { format!("{}k", bytes.div_ceil(1000)) }
}

fn names(ids: impl Iterator<Item = u64>) -> String {
    ids.map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
}

/// A node as a state has it.
fn drawn(depth: usize, node: &Node<Counted>) -> String {
    let Some(depth) = depth.checked_sub(1) else { return String::new() };
    let mut line = format!("{}{} {}:", "  ".repeat(depth), node.id().0, ends(node.range()));
    for list in node.lists() {
        line += &format!(" {}", size(list.bytes));
        if list.fragment.coverage() > 0.0 {
            line += &format!("~{:.0}%", 100.0 * list.fragment.coverage());
        }
        line += if list.is_bottom { "*" } else { "" };
    }
    if node.fast_splits() > 0 {
        line += &format!(" fast {}", node.fast_splits());
    }
    if node.unsplittable_bytes() > 0 {
        line += &format!(" one key {}", size(node.unsplittable_bytes()));
    }
    line + "\n"
}

fn step(tree: &Tree<Counted>, work: &Work<Counted>) -> String {
    match work {
        Work::Job(plan) => job(tree, plan),
        Work::Now(Edit::FastSplit { node, split }) => {
            format!(
                "fast split of leaf {} at {}, into {0} and {}",
                node.id.0,
                place(&split.at),
                split.right.0
            )
        }
        Work::Now(Edit::SplitInner { node, right, at }) => {
            format!("split of inner node {} at {}, into {0} and {}", node.id.0, place(at), right.0)
        }
        Work::Now(Edit::Grow { nodes }) => {
            format!("a new level below the root: {}", names(nodes.iter().map(|node| node.id.0)))
        }
        Work::Now(edit) => panic!("nobody plans {edit:?}"),
    }
}

fn job(tree: &Tree<Counted>, plan: &JobPlan) -> String {
    let (id, lists) = (plan.node.id.0, plan.lists);
    match plan.kind {
        JobKind::Spill => {
            let children = tree.find(&plan.node).unwrap().children();
            format!("spill of {lists} from {id} to {}", names(children.iter().map(|child| child.id().0)))
        }
        JobKind::SlowSplit => format!("slow split of leaf {id}, {lists} lists to one"),
        JobKind::Merge => format!("merge of leaf {id}, {lists} lists to one"),
    }
}

/// All that a load has done, write buffer by write buffer.
fn load(options: TreeOptions, units: u64) -> String {
    let mut tree = SimulatedTree::new(options, model(), Keys::Unique).unwrap();
    let mut said = String::new();
    for unit in 1..=units {
        let mut each = |tree: &Tree<Counted>, work: &Work<Counted>| {
            writeln!(said, "     {}", step(tree, work)).unwrap();
        };
        tree.flush_in(options.node_bytes / RECORD, &mut each).unwrap();
        let levels = tree.levels();
        let levels = levels.iter().map(|level| format!("{} nodes with {}", level.nodes, size(level.bytes)));
        writeln!(said, "{unit:>3}: {}", levels.collect::<Vec<_>>().join(", ")).unwrap();
    }
    said
}

fn told(head: &[&str], lines: &[&str]) -> String {
    let ["tree", "node", node_bytes, "fan-out", fan_out, "lists", lists_max, "fast", fast] = head else {
        panic!("a head is `tree node BYTES fan-out N lists N fast N`")
    };
    let options = TreeOptions {
        node_bytes: number(node_bytes),
        fan_out: number(fan_out) as usize,
        lists_max: number(lists_max) as usize,
        fast_per_slow: number(fast) as u32,
        ..TreeOptions::default()
    };
    match lines {
        [line] if line.starts_with("load ") => load(options, number(&line[5..])),
        _ => State::parse(lines).decisions(&options),
    }
}

#[test]
fn the_tree_decides_as_the_dialogues_say() {
    dialogue::check("wb_tree/tests/dialogue", &["leaves", "inner-nodes", "busy"], told);
}
