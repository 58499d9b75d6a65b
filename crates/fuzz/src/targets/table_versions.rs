//! What the manifest keeps of a table: its options; trees and run sets, whole, and their edits. Damaged, they are
//! refused, or sound.

use forebay_base::wire::Reader;
use forebay_base::{Order, Range};
use forebay_buffer_tree::{Counted, Edit, Fragment, NodeId, Portion, Tree, TreeOptions, Work};
use forebay_env::Rng;
use forebay_layouts::run_set::{self, Part, Policy, Replace, RunSet};
use forebay_layouts::{Layout, RuleName, TableOptions};

use super::buffer_tree;
use crate::damage::damage;
use crate::draws::{self, one_of};

const LAYOUTS: [&str; 15] = [
    "wb-tree",
    "wb-tree:ordered",
    "no-merge",
    "geometric:r=3",
    "leveling:t=4",
    "tiering:t=4",
    "stacks:t=3",
    "lazy-leveling:t=3",
    "range-merge",
    "range-merge:c=2.5",
    "jungle:c=3",
    "jungle:c=2,t=4,levels=live",
    "jungle:c=2,upper=8",
    "jungle:inline=0",
    "range-merge:c=2,inline=200",
];

pub(crate) fn fuzz(rng: &mut Rng) {
    fuzz_options(rng);
    fuzz_run_sets(rng);
    let history = buffer_tree::history(rng);
    for _ in 0..100 {
        let (tree, edit) = &history[rng.index(history.len())];
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        damage(rng, &mut bytes);
        if let Some(Ok((tree, _))) = Edit::decode(&mut Reader::new(&bytes)).map(|edit| tree.apply(&edit)) {
            check_tree(&tree);
        }
        let mut bytes = buffer_tree::encoded(tree);
        damage(rng, &mut bytes);
        if let Some(tree) = Tree::decode(&mut Reader::new(&bytes)) {
            check_tree(&tree);
        }
    }
}

/// A tree that was read is sound, can be written, and can be planned with.
fn check_tree(tree: &Tree<u64>) {
    assert_eq!(tree.check(), Ok(()));
    buffer_tree::encoded(tree);
    let counted = tree.map(|&id| Ok(Counted::new(id as u32, 0.0))).expect("names are no reads");
    counted.debt_bytes();
    counted.next_full_compaction(&Default::default());
    counted.next_reclaim(&Default::default(), None, &Range::all());
    if let Some(Work::Now(edit)) = counted.next_work(&Default::default()) {
        assert_eq!(counted.apply(&edit).expect("it was made for this tree").0.check(), Ok(()));
    }
}

fn fuzz_run_sets(rng: &mut Rng) {
    let policy = one_of(
        rng,
        &[
            Policy::NoMerge,
            Policy::Leveling { ratio: 3 },
            Policy::RANGE_MERGE,
            "range-merge:c=3".parse().expect("it is one"),
        ],
    );
    let mut set = RunSet::<Counted>::new(policy, 1000);
    for id in 1..30 {
        let edit = edit(rng, id);
        let mut bytes = Vec::new();
        edit.map(Fragment::id).encode(&mut bytes);
        let again = run_set::Edit::decode(&mut Reader::new(&bytes)).expect("an edit reads back");
        assert_eq!(again, edit.map(Fragment::id));
        for _ in 0..5 {
            let mut bytes = bytes.clone();
            damage(rng, &mut bytes);
            if let Some(edit) = run_set::Edit::decode(&mut Reader::new(&bytes)) {
                let _ = set.apply(&edit.map(|&id| Counted::new(id as u32, 0.0)));
            }
        }
        set = set.apply(&edit).map_or(set, |(next, _)| next);
        let mut bytes = Vec::new();
        set.map(|fragment| Ok(fragment.id())).expect("names are no reads").encode(&mut bytes);
        assert!(RunSet::decode(&mut Reader::new(&bytes), policy, 1000).is_some());
        damage(rng, &mut bytes);
        if let Some(set) = RunSet::decode(&mut Reader::new(&bytes), policy, 1000) {
            assert_eq!(set.check(), Ok(()));
        }
    }
}

/// A write buffer becomes a run, or part of one.
fn edit(rng: &mut Rng, id: u64) -> run_set::Edit<Counted> {
    let range = draws::range(rng, Order::Lexical, 1000);
    let part = Part {
        range: range.clone(),
        fragment: Counted::new(id as u32, 0.0),
        portion: Portion { bytes: 10 + rng.below(1000), records: 1 + rng.below(100) },
        is_bottom: rng.chance(20),
    };
    run_set::Edit::Replace(Replace {
        flushed_bytes: rng.below(1000),
        is_ingest: rng.chance(20),
        below: rng.below(5),
        range: one_of(rng, &[&Range::all(), &range]).clone(),
        taken: Vec::new(),
        into: NodeId(1 + rng.below(id)),
        level: 0,
        parts: vec![part],
        goes_on: rng.chance(20),
    })
}

fn fuzz_options(rng: &mut Rng) {
    let layout: Layout = one_of(rng, &LAYOUTS).parse().expect("it is one of them");
    let mut options = TableOptions::new(layout, 1 << 20);
    let second = std::time::Duration::from_secs(1);
    options.codec = draws::codec(rng);
    options.max_space_amplification = rng.chance(50).then_some(2.5);
    options.reclaim_interval = rng.chance(50).then_some(second * 60).filter(|_| !layout.keeps_in_memory());
    options.time_to_live = rng.chance(50).then_some(second);
    let rules = [
        RuleName::None,
        RuleName::Operands("sum".into()),
        RuleName::States("max".into()),
        RuleName::DeletableStates("max".into()),
    ];
    let rule = &rules[rng.index(4)];
    let bytes = options.encode(rule);
    assert_eq!(TableOptions::decode(&bytes, options.tree), Some((options, rule.clone())));
    for _ in 0..30 {
        let mut bytes = bytes.clone();
        damage(rng, &mut bytes);
        if let Some((read, rule)) = TableOptions::decode(&bytes, TreeOptions::default()) {
            let again = read.encode(&rule);
            assert!(
                TableOptions::decode(&again, TreeOptions::default()).is_some(),
                "what is read can be written"
            );
            read.validate().expect("what is read is valid");
        }
    }
}
