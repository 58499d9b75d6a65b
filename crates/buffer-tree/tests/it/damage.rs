//! Edits and trees whose bytes are damaged, though their checksums are not, and edits that do not fit.

use forebay_base::record::Kind;
use forebay_base::wire::Reader;
use forebay_base::{Bound, LastWriterWins, Order};
use forebay_buffer_tree::{Division, Edit, NodeId, NodeRef, Portion, Split, Tree, TreeOptions};

use crate::harness::Harness;
use crate::random::for_seeds;

/// Every edit of a small life, with the tree before it.
fn history() -> Vec<(Tree<u64>, Edit<u64>)> {
    let options =
        TreeOptions { node_bytes: 300, fan_out: 3, fast_per_slow: 1, lists_max: 3, repeats_max: 2.0 };
    let mut harness = Harness::new(Order::Colliding { bits: 2 }, LastWriterWins, options);
    for key in 0..400u32 {
        harness.write(Kind::Put, format!("{}", key * 37 % 200).into_bytes(), vec![0; 5]);
        if key % 20 == 19 {
            harness.seal();
            harness.finish();
        }
    }
    harness.compact();
    let tally = &harness.tally;
    assert!(
        tally.growths > 0 && tally.inner_splits > 0 && tally.fast_splits > 0 && tally.merges > 0,
        "{tally:?}"
    );
    std::mem::take(&mut harness.history)
}

#[test]
fn damaged_edits_are_refused_or_leave_a_sound_tree() {
    let (mut unread, mut refused, mut applied) = (0, 0, 0);
    let history = history();
    for_seeds(0..4, |random, _| {
        for (tree, edit) in &history {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            for cut in 0..bytes.len() {
                assert_eq!(Edit::decode(&mut Reader::new(&bytes[..cut])), None);
            }
            for _ in 0..20 {
                let mut damaged = bytes.clone();
                let at = random.below(bytes.len() as u64) as usize;
                damaged[at] = random.below(256) as u8;
                match Edit::decode(&mut Reader::new(&damaged)).map(|edit| tree.apply(&edit)) {
                    None => unread += 1,
                    Some(Err(_)) => refused += 1,
                    Some(Ok((tree, _))) => {
                        tree.check().unwrap();
                        applied += 1;
                    }
                }
            }
        }
    });
    println!("{unread} not read, {refused} refused, {applied} applied");
    assert!(unread > 0 && refused > 0);
}

#[test]
fn damaged_trees_are_refused_or_sound() {
    let history = history();
    let mut bytes = Vec::new();
    history[history.len() - 1].0.encode(&mut bytes);
    for cut in 0..bytes.len() {
        assert!(Tree::decode(&mut Reader::new(&bytes[..cut])).is_none());
    }
    let (mut refused, mut sound) = (0, 0);
    for_seeds(0..4, |random, _| {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 + random.below(255) as u8;
            match Tree::decode(&mut Reader::new(&damaged)) {
                None => refused += 1,
                Some(tree) => {
                    tree.check().unwrap();
                    let mut again = Vec::new();
                    tree.encode(&mut again);
                    assert_ne!(again, bytes, "the damage at {at} is not in what was read");
                    sound += 1;
                }
            }
        }
    });
    // Counts may be any; bounds, ids and shapes may not.
    assert!(refused > bytes.len() && sound > 100, "{refused} refused, {sound} sound");
}

#[test]
fn edits_that_do_not_fit_are_errors() {
    let tree: Tree<u64> = Tree::new(TreeOptions::default());
    let node = |id, prefix| NodeRef { id: NodeId(id), low: Bound::at_prefix(prefix) };
    let portion = Portion { bytes: 10, records: 1 };
    let spill = |node, lists, fragment, child| Edit::Spill {
        node,
        lists,
        fragment,
        children: vec![(NodeId(child), portion)],
    };
    let (tree, changes) = tree.apply(&spill(node(0, 0), 0, Some(5), 1)).unwrap();
    assert_eq!(changes, [(5, 1)]);
    let split = |right, prefix, below| {
        let lists = vec![Division { below: Some(Portion { bytes: below, records: 1 }), above: None }];
        Edit::FastSplit {
            node: node(1, 0),
            split: Split { right: NodeId(right), at: Bound::at_prefix(prefix), lists },
        }
    };
    assert!(tree.apply(&split(2, 9, 10)).is_ok());
    let rewrite = |at, lists| Edit::Rewrite {
        node: at,
        lists,
        fragment: None,
        portion,
        split: None,
        unsplittable_bytes: 0,
    };
    for wrong in [
        spill(node(0, 0), 1, Some(5), 1),
        spill(node(0, 0), 0, None, 1),
        spill(node(0, 0), 0, Some(5), 7),
        spill(node(1, 0), 1, Some(5), 1),
        spill(node(7, 0), 0, Some(5), 1),
        spill(node(0, 3), 0, Some(5), 1),
        split(1, 9, 10),
        split(u64::MAX, 9, 10),
        split(2, 0, 10),
        split(2, 9, 9),
        split(2, 9, u64::MAX),
        rewrite(node(1, 0), 2),
        rewrite(node(0, 0), 0),
        Edit::SplitInner { node: node(0, 0), right: NodeId(2), at: Bound::at_prefix(3) },
        Edit::Grow { nodes: vec![node(2, 0)] },
        Edit::Grow { nodes: Vec::new() },
    ] {
        assert!(tree.apply(&wrong).is_err(), "{wrong:?}");
    }
}
