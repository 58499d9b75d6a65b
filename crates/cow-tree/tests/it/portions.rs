//! How much lies inside a range, and where to divide it, against a sorted map.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Bound, Order, Range};
use forebay_cow_tree::{NodeCache, Tree, TreeOptions};
use forebay_env::Rng;
use forebay_env::fs::{FaultyFs, MemoryFs};

use crate::common::{Batch, append, build, content, key, numbered, restarted, small, store, value};

fn any_bound(order: Order, rng: &mut Rng) -> Bound {
    let key = key(rng);
    match rng.index(3) {
        0 => Bound::at_prefix(order.prefix(&key)),
        1 => Bound { prefix: order.prefix(&key), key: key[..key.len() / 2].into() },
        _ => order.bound(&key),
    }
}

fn any_range(order: Order, rng: &mut Rng) -> Range {
    let low = if rng.chance(20) { Bound::least() } else { any_bound(order, rng) };
    Range { low, high: if rng.chance(20) { None } else { Some(any_bound(order, rng)) } }
}

fn assert_parts(tree: &Tree, order: Order, rng: &mut Rng) {
    let places: Vec<_> = content(tree).unwrap().into_keys().collect();
    let all = (tree.records(), tree.live_bytes());
    for _ in 0..40 {
        let range = any_range(order, rng);
        let inside: Vec<_> = places.iter().filter(|place| range.contains(place.0, &place.1)).collect();
        let (records, live_bytes) = tree.portion(&range).unwrap();
        assert_eq!(records, inside.len() as u64, "{range:?}");
        assert!(live_bytes <= all.1 && (records > 0 || live_bytes == 0 || places.is_empty()));
        if !range.is_empty() && records == all.0 {
            assert_eq!((records, live_bytes), all, "nothing is outside");
        }
        // A part has no more than the whole.
        let part = range.intersect(&any_range(order, rng));
        assert!(tree.portion(&part).unwrap().1 <= live_bytes, "{part:?} of {range:?}");

        let below = |at: &Bound| inside.iter().filter(|place| at.place(place.0, &place.1).is_lt()).count();
        match tree.middle(&range) {
            None => assert!(inside.len() < 2, "{} records", inside.len()),
            Some(at) => {
                assert!(range.can_split_at(&at));
                let below = below(&at);
                let quarter = (inside.len() / 4).max(1);
                assert!((quarter..=inside.len() - quarter).contains(&below), "{below} of {}", inside.len());
            }
        }
        let at = any_bound(order, rng);
        let share = tree.share_below(&range, &at);
        let wanted = if inside.is_empty() { 0.5 } else { below(&at) as f64 / inside.len() as f64 };
        assert_eq!(share, wanted, "{at:?} in {range:?}");
    }
}

#[test]
fn parts_are_what_a_map_says() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let order = [Order::Lexical, Order::Hashed { seed }, Order::Colliding { bits: 3 }][rng.index(3)];
        let node_bytes_max = [64, 200, 1000, 4096][rng.index(4)];
        let store = store(MemoryFs::new(), TreeOptions { node_bytes_max, ..TreeOptions::new(order) });
        let mut batch = || {
            let records = [0, 1, 2, 30, 1200][rng.index(5)];
            Batch::puts(order, (0..records).map(|_| (key(&mut rng), value(&mut rng))).collect::<Vec<_>>())
        };
        let mut tree = build(&store, &batch()).unwrap();
        let batches = [batch(), batch()];
        assert_parts(&tree, order, &mut rng);
        for batch in batches {
            tree = append(&tree, &batch).unwrap();
            assert_parts(&tree, order, &mut rng);
        }
    }
}

#[test]
fn parts_side_by_side_come_to_the_whole() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..3000, 100)).unwrap();
    let order = Order::Lexical;
    let cuts: Vec<_> = (0..3000).step_by(70).map(|at| order.bound(format!("{at:010}").as_bytes())).collect();
    let parts = (0..=cuts.len()).map(|part| {
        let low = part.checked_sub(1).map_or(Bound::least(), |at| cuts[at].clone());
        tree.portion(&Range { low, high: cuts.get(part).cloned() }).unwrap()
    });
    let sum = parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert_eq!(sum.0, 3000);
    // All but the root; the nodes of each way down are counted with what is behind them.
    assert!(tree.live_bytes() - sum.1 < 4096 + 3000, "{} of {}", sum.1, tree.live_bytes());
    let half = Range { low: Bound::least(), high: Some(order.bound(b"0000001500")) };
    let half = tree.portion(&half).unwrap().1 as f64 / tree.live_bytes() as f64;
    assert!((0.47..0.5).contains(&half), "{half}");
}

#[test]
fn no_more_than_the_leaves_at_the_ends_are_read() {
    let faulty = FaultyFs::new(MemoryFs::new());
    let mut store = small(faulty.clone());
    store.cache = Arc::new(NodeCache::new(16 << 20));
    // Its inner nodes are in the cache.
    let tree = build(&store, &numbered(0..3000, 10)).unwrap();
    let order = Order::Lexical;
    let range = |low: u64, high: u64| {
        let bound = |number: u64| order.bound(format!("{number:010}").as_bytes());
        Range { low: bound(low), high: Some(bound(high)) }
    };
    let reads = |look: &dyn Fn()| {
        let before = store.metrics.page_reads.get();
        look();
        store.metrics.page_reads.get() - before
    };
    assert_eq!(reads(&|| assert_eq!(tree.portion(&range(777, 2001)).unwrap().0, 1224)), 2);
    assert_eq!(reads(&|| assert_eq!(tree.portion(&range(777, 2001)).unwrap().0, 1224)), 0, "now cached");
    assert_eq!(reads(&|| assert_eq!(tree.portion(&Range::all()).unwrap().0, 3000)), 0);
    let middle = tree.middle(&Range::all()).unwrap();
    let upper = Range { low: middle.clone(), high: None };
    assert_eq!(reads(&|| assert!(tree.middle(&upper).is_some())), 0, "between leaves");
    assert_eq!(reads(&|| assert!(tree.portion(&upper).unwrap().0.abs_diff(1500) < 20)), 0);
    // Two records of one leaf.
    assert!(reads(&|| assert_eq!(tree.middle(&range(400, 402)).unwrap(), order.bound(b"0000000401"))) <= 2);
    assert_eq!(tree.middle(&range(400, 401)), None);

    let tree = Tree::named(&restarted(&store, faulty.clone()), tree.version(), &Default::default());
    faulty.rule("read *.tree all io-error").unwrap();
    assert_eq!(tree.share_below(&Range::all(), &middle), 0.5);
    assert!(tree.middle(&Range::all()).is_none() && tree.portion(&range(1, 2)).is_err());
    faulty.clear();
    let share = tree.share_below(&Range::all(), &middle);
    assert!((0.49..0.51).contains(&share) && share != 0.5, "{share}");
    let cursor =
        forebay_cow_tree::TreeCursor::new(&tree, &upper, Direction::Forward, crate::common::long_reads());
    assert_eq!(crate::common::rest(cursor.unwrap()).unwrap().len() as u64, tree.portion(&upper).unwrap().0);
}
