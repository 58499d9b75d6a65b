//! Policies as [text dialogues](crate::dialogue): `dialogue/*.txt` has one file a policy.
//!
//! A state has these lines:
//!
//! - `ID at L1 a-f:100 m-:50*`: a run, newest first, of its level and parts: bytes from key to key, one that is merged
//!   with everything older (`*`), one in a tree file of so many bytes (`a-f:100/400`). `ID in memory a-f:100` is
//!   resident, of log segment ID.
//! - `under way 3 2 1 to 4 at L1`: a merge of which slices are still to be done.
//! - `busy 3`: a run that a job works on; `busy range m-`: a key range that is being evicted.
//! - `memory 200`: what tables may keep there, in place of a file's length. A write buffer brings half of that.
//!
//! `load 12` instead gives an empty table so many write buffers of 10,000 records, and tells all that is done.

use std::fmt::Write as _;

use forebay_base::record::Shape;
use forebay_base::{Bound, Order, Range};
use forebay_buffer_tree::{Fragment, NodeId, Portion};

use super::super::plan::{Act, Next, Slice};
use super::super::policy::Policy;
use super::super::set::{Edit, Part, Run, RunSet, Underway};
use super::*;
use crate::dialogue::{self, number, shown};

/// A file of a dialogue: records lie in it as evenly as prefixes do.
#[derive(Clone, Copy)]
struct File {
    id: u64,
    tree_bytes: Option<u64>,
}

impl Fragment for File {
    fn id(&self) -> u64 {
        self.id
    }

    fn middle(&self, _: &Range) -> Option<Bound> {
        None
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let end = range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
        let (low, at) = (range.low.prefix as f64, at.prefix as f64);
        ((at - low) / (end as f64 - low)).clamp(0.0, 1.0)
    }

    fn shape(&self) -> Shape {
        Shape::Variable
    }

    fn grown_bytes(&self) -> Option<u64> {
        self.tree_bytes
    }
}

/// A state that a block describes.
struct State {
    set: RunSet<File>,
    busy: BTreeSet<NodeId>,
    memory_bytes: u64,
}

impl State {
    fn parse(policy: Policy, file_bytes: u64, lines: &[&str]) -> Self {
        let mut set = RunSet::new(policy, file_bytes);
        set.unit_bytes = file_bytes / 2;
        let mut state = Self { set, busy: BTreeSet::new(), memory_bytes: file_bytes };
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            match &words[..] {
                ["memory", bytes] => state.memory_bytes = number(bytes),
                ["busy", "range", range] => {
                    let range = keys(range);
                    state.busy.insert(key_ranges::node_of(&range));
                }
                ["busy", runs @ ..] => state.busy.extend(runs.iter().map(|run| NodeId(number(run)))),
                ["under", "way", inputs @ .., "to", into, "at", level] => state.set.underway.push(Underway {
                    inputs: inputs.iter().map(|run| NodeId(number(run))).collect(),
                    into: NodeId(number(into)),
                    level: number(&level[1..]) as u32,
                }),
                [id, "in", "memory", parts @ ..] => state.run(id, 0, true, parts),
                [id, "at", level, parts @ ..] => state.run(id, number(&level[1..]) as u32, false, parts),
                _ => panic!("`{line}` is no line of a state"),
            }
        }
        state.set.next_id = 1 + state.set.runs.iter().map(|run| run.id.0).max().unwrap_or(0);
        state.set.check().unwrap();
        state
    }

    fn run(&mut self, id: &str, level: u32, is_resident: bool, parts: &[&str]) {
        let id = number(id);
        let part = |(at, text): (usize, &&str)| Arc::new(part(100 * id + at as u64, text));
        let parts = parts.iter().enumerate().map(part).collect();
        let below = if is_resident { id + 1 } else { 0 };
        self.set.runs.push(Arc::new(Run { id: NodeId(id), level, is_resident, below, parts }));
    }

    /// What is decided here, a line each.
    fn decisions(&self) -> String {
        let Self { set, busy, memory_bytes } = self;
        let room = ResidentRoom { bytes: *memory_bytes, buffer_bytes: memory_bytes / 2, buffers_max: 8 };
        let room = ResidentBudget::of(room);
        let mut said = String::new();
        let flush = set.flush(50, set.unit_bytes, busy, room);
        writeln!(said, "flush:   {}", slice(set, &flush)).unwrap();
        let next = set.next_work(busy, room).map_or_else(|| "nothing".into(), |next| step(set, &next));
        writeln!(said, "next:    {next}").unwrap();
        let compact =
            set.next_full_compaction(busy).map_or_else(|| "nothing".into(), |next| slice(set, &next));
        writeln!(said, "compact: {compact}").unwrap();
        writeln!(said, "debt:    {}", set.policy.debt_bytes(set, room)).unwrap();
        said
    }
}

fn bound(key: &str) -> Option<Bound> {
    (!key.is_empty()).then(|| Order::Lexical.bound(key.as_bytes()))
}

fn keys(text: &str) -> Range {
    let (low, high) = text.split_once('-').unwrap();
    Range { low: bound(low).unwrap_or_else(Bound::least), high: bound(high) }
}

fn part(id: u64, text: &str) -> Part<File> {
    let (text, is_bottom) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
    let (range, bytes) = text.split_once(':').unwrap();
    let (bytes, tree) = bytes.split_once('/').map_or((bytes, None), |(bytes, tree)| (bytes, Some(tree)));
    let bytes = number(bytes);
    Part {
        range: keys(range),
        fragment: File { id, tree_bytes: tree.map(number) },
        portion: Portion { bytes, records: bytes / 10 },
        is_bottom,
    }
}

fn step<F: Fragment>(set: &RunSet<F>, next: &Next<F>) -> String {
    match next {
        Next::Edit(Edit::Relabel { run, level }) => format!("{} goes to L{level} as it is", run.0),
        Next::Edit(_) => "an edit".into(),
        Next::Merge(merge) => slice(set, merge),
    }
}

/// A slice in words: what comes together, where it goes, and what is special about it.
fn slice<F: Fragment>(set: &RunSet<F>, slice: &Slice) -> String {
    let sources = slice.taken.iter().map(|(run, _)| run.0.to_string());
    let buffer = slice.act.buffer().map(|_| "the write buffer".to_string());
    let sources: Vec<String> = buffer.into_iter().chain(sources).collect();
    let range = slice.taken.first().map_or(&slice.range, |(_, range)| range);
    let mut said = sources.join(" ") + &shown(range);
    match &slice.act {
        Act::KeepInMemory { ranges, .. } => {
            said += " stays in memory";
            ranges.iter().for_each(|range| said += &shown(range));
            return said;
        }
        Act::Append { into, .. } | Act::Evict { into: Some(into), tree: Some(_), .. } => {
            write!(said, " appended to {}", into.0).unwrap();
        }
        Act::Rewrite { .. } => said += " rewritten",
        act => match act.target() {
            Some(into) => write!(said, " merged to {}", into.0).unwrap(),
            None => said += " to a run",
        },
    }
    write!(said, " at L{}", slice.level).unwrap();
    if slice.act.target().is_some_and(|into| set.run(into).is_none()) {
        said += " (new)";
    }
    let is_evicted = matches!(slice.act, Act::Evict { .. });
    for (is_so, what) in
        [(is_evicted, "evicted"), (slice.act.goes_on(), "goes on"), (slice.is_bottom, "bottom")]
    {
        if is_so {
            write!(said, ", {what}").unwrap();
        }
    }
    said
}

/// All that a load has done, write buffer by write buffer.
fn load(policy: Policy, units: u64) -> String {
    let mut runs = simulated(policy, Keys::Unique);
    let mut said = String::new();
    for unit in 1..=units {
        let mut steps = String::new();
        let mut each = |set: &RunSet<CountedFile>, next: &Next<CountedFile>| {
            writeln!(steps, "     {}", step(set, next)).unwrap();
        };
        runs.flush_in(UNIT, Range::all(), &mut each).unwrap();
        let run = |run: &Arc<Run<CountedFile>>| {
            let place = if run.is_resident { "m".into() } else { format!("L{}", run.level) };
            format!("{place}:{}k", run.portion().records.div_ceil(1000))
        };
        let stack: Vec<String> = runs.set.runs().iter().map(run).collect();
        writeln!(said, "{steps}{unit:>3}: {}", stack.join(" ")).unwrap();
    }
    said
}

/// The decisions in a state of a file whose head is `policy NAME file BYTES`.
fn told(head: &[&str], lines: &[&str]) -> String {
    let ["policy", policy, "file", file_bytes] = head else { panic!("a head is `policy NAME file BYTES`") };
    let policy = policy.parse().unwrap();
    match lines {
        [line] if line.starts_with("load ") => load(policy, number(&line[5..])),
        _ => State::parse(policy, number(file_bytes), lines).decisions(),
    }
}

#[test]
fn policies_decide_as_the_dialogues_say() {
    let names = [
        "no-merge",
        "immediate",
        "geometric-r",
        "geometric-p",
        "leveling",
        "tiering",
        "stacks",
        "lazy-leveling",
        "range-merge",
        "range-merge-trees",
        "jungle",
    ];
    dialogue::check("run_set/tests/dialogue", &names, told);
}
