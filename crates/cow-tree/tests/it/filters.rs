//! Filters: none denies a key, they err as seldom as they should, and their parts on disk make them what they were.

use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::hash::mix;
use forebay_base::{Combine, Error, Kind, Order};
use forebay_cow_tree::{NodeCache, Tree, TreeOptions, TreeStore};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, FileSystem, Rng};
use forebay_store::list::Allowance;

use crate::common::{
    Batch, Concatenate, append, append_by, build, build_by, content, find, find_in, numbered, restarted,
    small, store,
};

fn options(order: Order) -> TreeOptions {
    TreeOptions { node_bytes_max: 1000, ..TreeOptions::new(order) }
}

/// The key of a number; those of numbers that were not put are nowhere.
fn key(number: u64) -> Vec<u8> {
    mix(number).to_be_bytes().to_vec()
}

fn puts(order: Order, numbers: impl Iterator<Item = u64>) -> Batch {
    Batch::puts(order, numbers.map(|number| (key(number), number.to_le_bytes().to_vec())))
}

/// Asserts that no key is denied, and tells how often others are not.
fn false_share(order: Order, tree: &Tree, store: &TreeStore, keys: u64) -> f64 {
    for number in 0..keys {
        assert!(find_in(order, tree, &key(number)).unwrap().is_some(), "{number} of {keys}");
    }
    let metrics = &store.metrics;
    let nodes = || metrics.page_reads.get() + metrics.cache_hits.get();
    let (asked, erred, read) = (metrics.filter_probes.get(), metrics.filter_false.get(), nodes());
    let absent = 10_000;
    for number in 0..absent {
        assert!(find_in(order, tree, &key(1 << 40 | number)).unwrap().is_none());
    }
    assert_eq!(metrics.filter_probes.get() - asked, absent);
    let erred = metrics.filter_false.get() - erred;
    assert_eq!(nodes() - read, erred * tree.height() as u64, "what is denied costs nothing");
    erred as f64 / absent as f64
}

#[test]
fn filters_err_as_seldom_as_promised_until_a_tree_has_grown_by_half() {
    for order in [Order::Lexical, Order::Hashed { seed: 5 }] {
        let fs = MemoryFs::new();
        let store = store(fs.clone(), options(order));
        let mut tree = build(&store, &puts(order, 0..20_000)).unwrap();
        let (mut parts, mut wholes) = (0, 0);
        for keys in (20_000..30_000).step_by(1000) {
            let share = false_share(order, &tree, &store, keys);
            assert!(share < if keys == 20_000 { 0.004 } else { 0.015 }, "{share} at {keys}");
            assert!(share > 0.0, "{keys}");
            // As others find it, who have but the version.
            let found = restarted(&store, fs.clone());
            let again = Tree::open(&found, tree.version()).unwrap();
            assert_eq!(false_share(order, &again, &found, keys), share, "{keys}");
            let census = tree.verify().unwrap();
            assert!(census.filter_bytes <= 2 * (20_000 * 15 / 8 + 40), "{census:?}");
            parts = parts.max(census.filter_parts);
            wholes += u64::from(census.filter_parts == 1);
            tree = append(&tree, &puts(order, keys..keys + 1000)).unwrap();
        }
        assert!(parts > 5 && wholes > 1, "{parts} parts, {wholes} times whole");
        let share = false_share(order, &tree, &store, 30_000);
        assert!((0.005..0.015).contains(&share), "{share}");
        let tree = append(&tree, &puts(order, 30_000..60_000)).unwrap();
        assert!(false_share(order, &tree, &store, 60_000) < 0.2, "more keys than it is made for");
    }
}

#[test]
fn a_stretch_of_all_hashes_has_a_filter_as_good() {
    let order = Order::Hashed { seed: 5 };
    let store = store(MemoryFs::new(), options(order));
    let is_inside = |number: &u64| order.prefix(&key(*number)) >> 56 == 7;
    let mut numbers = (0..).filter(is_inside);
    let inside = numbers.by_ref().take(3000);
    let tree = build(&store, &puts(order, inside)).unwrap();
    let erred = numbers.take(3000).filter(|number| {
        let before = store.metrics.filter_false.get();
        assert!(find_in(order, &tree, &key(*number)).unwrap().is_none());
        store.metrics.filter_false.get() > before
    });
    assert!(erred.count() < 20);
}

#[test]
fn versions_join_the_filter_in_any_order_and_from_any_branch() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let fs = MemoryFs::new();
        let first = store(fs.clone(), options(Order::Lexical));
        let mut versions =
            vec![(build(&first, &puts(Order::Lexical, 0..1000)).unwrap(), (0..1000).collect())];
        let mut next = 1000;
        for _ in 0..25 {
            let back = if rng.chance(70) { 1 } else { 1 + rng.index(versions.len()) };
            let (tree, numbers): &(Tree, Vec<u64>) = &versions[versions.len() - back];
            let count = [0, 1, 20, 100][rng.index(4)];
            // Some that are there already are put again.
            let fresh = (next..next + count).chain(numbers.iter().copied().take(30));
            let tree = append(tree, &puts(Order::Lexical, fresh)).unwrap();
            let numbers = numbers.iter().copied().chain(next..next + count).collect();
            versions.push((tree, numbers));
            next += count;
            if rng.chance(20) {
                // So that what comes next may or may not be in memory.
                let store = restarted(&first, fs.clone());
                versions
                    .iter_mut()
                    .for_each(|(tree, _)| *tree = Tree::named(&store, tree.version(), &Default::default()));
                let (tree, _) = &versions[rng.index(versions.len())];
                find(tree, b"nothing").unwrap();
            }
        }
        rng.shuffle(&mut versions);
        let store = restarted(&first, fs.clone());
        for (tree, numbers) in &versions {
            for tree in [tree.clone(), Tree::named(&store, tree.version(), &Default::default())] {
                for number in numbers {
                    assert!(find(&tree, &key(*number)).unwrap().is_some(), "seed {seed}, {number}");
                }
                assert_eq!(tree.verify().unwrap().records, numbers.len() as u64);
            }
        }
    }
}

#[test]
fn parts_are_few_and_what_adds_no_key_adds_none() {
    let order = Order::Lexical;
    let store = store(MemoryFs::new(), options(order));
    let mut tree = build(&store, &puts(order, 0..10_000)).unwrap();
    let whole = tree.verify().unwrap().filter_bytes;
    assert_eq!(whole, 1 + (15_000u64 * 10).div_ceil(256) * 32);
    let again = append(&tree, &puts(order, 0..50)).unwrap();
    assert_eq!((again.verify().unwrap().filter_bytes, again.verify().unwrap().filter_parts), (whole, 1));
    for appended in 1..40 {
        tree = append(&tree, &puts(order, 10_000 + appended..10_001 + appended)).unwrap();
        let census = tree.verify().unwrap();
        assert_eq!(census.filter_parts, 1 + appended % 16);
        assert!(census.filter_bytes < whole + 16 * 20);
    }
    // Not many appends, but many keys.
    let census = append(&tree, &puts(order, 20_000..24_000)).unwrap().verify().unwrap();
    assert_eq!((census.filter_bytes, census.filter_parts), (whole, 1));
    let census = append(&tree, &puts(order, 20_000..22_000)).unwrap().verify().unwrap();
    assert!(census.filter_parts > 1 && census.filter_bytes > whole + 2000 * 6);
}

#[test]
fn without_bits_there_is_no_filter() {
    let fs = MemoryFs::new();
    let off = TreeOptions { filter_bits_per_key: 0, ..options(Order::Lexical) };
    let with = store(fs.clone(), options(Order::Lexical));
    let without = TreeStore { options: off, ..with.clone() };
    let tree = append(&build(&without, &numbered(0..1000, 10)).unwrap(), &numbered(1000..1100, 10)).unwrap();
    assert_eq!((tree.verify().unwrap().filter_bytes, tree.filter_keys()), (0, 0));
    assert!(find(&tree, b"nothing").unwrap().is_none() && find(&tree, b"0000001050").unwrap().is_some());
    assert_eq!(with.metrics.filter_probes.get(), 0);
    // Nobody knows the keys of a version without one.
    let grown = append(&Tree::open(&with, tree.version()).unwrap(), &numbered(1100..1200, 10)).unwrap();
    assert_eq!(grown.verify().unwrap().filter_bytes, 0);
    let tree = build(&with, &numbered(0..1000, 10)).unwrap();
    let ignored = Tree::open(&restarted(&without, fs), tree.version()).unwrap();
    assert!(find(&ignored, b"nothing").unwrap().is_none() && ignored.verify().unwrap().filter_bytes > 0);
    assert_eq!(with.metrics.filter_probes.get(), 0);
}

#[test]
fn memory_is_counted_given_back_and_kept_to() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), options(Order::Lexical));
    let held = || store.metrics.filter_memory_bytes.get();
    let order = Order::Lexical;
    let tree = build(&store, &puts(order, 0..20_000)).unwrap();
    let whole = tree.verify().unwrap().filter_bytes - 1;
    // Of memory there are whole pages.
    let pages = |bytes: u64| bytes.next_multiple_of(4096);
    assert_eq!((held(), tree.filter_keys()), (pages(whole), (whole * 8).div_ceil(10)));
    let newer = append(&tree, &puts(order, 20_000..21_000)).unwrap();
    find(&newer, b"nothing").unwrap();
    assert_eq!(held(), pages(whole), "they share it");
    newer.thin_filter(Allowance::bits(10.0));
    assert_eq!(held(), pages(whole));
    newer.thin_filter(Allowance::bits(6.0));
    assert!((pages(whole / 2)..=pages(whole / 2 + 32)).contains(&held()), "{}", held());
    let share = false_share(order, &tree, &store, 20_000);
    assert!((0.01..0.1).contains(&share), "{share}");
    // What is added and written later is whole all the same.
    let newest = append(&newer, &puts(order, 21_000..30_000)).unwrap();
    assert_eq!(newest.verify().unwrap().filter_parts, 1);
    false_share(order, &newest, &store, 30_000);
    drop((tree, newer));
    assert!(held() > 0);
    let version = newest.version();
    drop(newest);
    assert_eq!(held(), 0);

    let other = restarted(&store, fs);
    let tree = Tree::named(&other, version, &Default::default());
    assert_eq!((tree.filter_keys(), held()), (0, 0));
    tree.thin_filter(Allowance::bits(1.0));
    assert!(find_in(order, &tree, &key(7)).unwrap().is_some());
    assert_eq!(held(), pages(whole));
    drop(tree);
    other.filter_level.set(Some(3.5 + 1.5 * ((whole * 8).div_ceil(10) as f64).log2()), u64::MAX);
    let tree = Tree::named(&other, version, &Default::default());
    false_share(order, &tree, &other, 30_000);
    assert!((pages(whole / 4)..=pages(whole / 4 + 32)).contains(&held()), "{}", held());
    drop(tree);
    assert_eq!(held(), 0);
}

#[test]
fn a_filter_that_cannot_be_read_now_is_read_later() {
    let faulty = FaultyFs::new(MemoryFs::new());
    let store = store(faulty.clone(), options(Order::Lexical));
    let tree = build(&store, &puts(Order::Lexical, 0..2000)).unwrap();
    let tree = append(&tree, &puts(Order::Lexical, 2000..2100)).unwrap();
    let store = restarted(&store, faulty.clone());
    // Root, added hashes, and the whole blocks before them.
    for number in 1..=3 {
        let tree = Tree::named(&store, tree.version(), &Default::default());
        faulty.rule(&format!("read *.tree #{number} io-error")).unwrap();
        assert!(!find(&tree, &key(7)).unwrap_err().is_corruption());
        assert_eq!(tree.filter_keys(), 0);
        faulty.clear();
        assert!(find(&tree, &key(7)).unwrap().is_some());
        assert!(tree.filter_keys() > 0);
    }
    assert_eq!(faulty.fired(), 3);
}

#[test]
fn a_damaged_part_is_told_of_and_never_believed() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), options(Order::Lexical));
    let mut tree = build(&store, &puts(Order::Lexical, 0..700)).unwrap();
    for keys in (700..1000).step_by(100) {
        tree = append(&tree, &puts(Order::Lexical, keys..keys + 50)).unwrap();
    }
    let absent = (1 << 40..).map(key).find(|key| {
        let before = store.metrics.filter_false.get();
        find(&tree, key).unwrap().is_none() && store.metrics.filter_false.get() == before
    });
    let absent = absent.unwrap();
    let census = tree.verify().unwrap();
    assert_eq!(census.filter_parts, 4);
    let file = fs.open(tree.path(), Access::Buffered).unwrap();
    let mut told = 0;
    for at in 0..tree.total_bytes() {
        let mut byte = [0];
        file.read_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 0x10]).unwrap();
        let other = TreeStore { cache: Arc::new(NodeCache::new(0)), ..restarted(&store, fs.clone()) };
        let damaged = Tree::named(&other, tree.version(), &Default::default());
        match find(&damaged, &absent) {
            Ok(found) => assert_eq!(found, None),
            Err(Error::Corruption { offset, .. }) => {
                assert!((at.saturating_sub(4096)..=at).contains(&offset), "{offset} for {at}");
                told += 1;
                assert!(find(&damaged, &key(7)).unwrap_err().is_corruption(), "it is remembered");
                let refused = Tree::named(&other, tree.version(), &Default::default()).verify().unwrap_err();
                assert!(refused.to_string().contains(&format!("offset {offset}")), "{refused}");
                // Who walks all of it does not need the filter.
                let is_root = offset == tree.version().root_at;
                assert_eq!(
                    content(&Tree::named(&other, tree.version(), &Default::default())).is_err(),
                    is_root
                );
            }
            Err(error) => panic!("{error}"),
        }
        file.write_at(at, &byte).unwrap();
    }
    assert_eq!(told, 4096 + census.filter_bytes, "root and filter are all that it takes");
}

/// Operands are no values: a filter that parses what it is shown panicked at them.
#[test]
fn a_compaction_filter_is_not_shown_what_is_folded_into_something_older() {
    #[derive(Clone)]
    struct Numbers;
    impl Combine for Numbers {
        fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
            Concatenate.fold(key, newer, older, out);
        }
        fn is_choosy(&self) -> bool {
            true
        }
        fn keeps(&self, _key: &[u8], value: &[u8]) -> bool {
            assert!(value.starts_with(b"value"), "{value:?} is an operand");
            !value.ends_with(b"gone")
        }
    }
    let store = small(MemoryFs::new());
    let put = |key: &str| (Kind::Put, key.into(), b"value".to_vec());
    let merge = |key: &str, operand: &[u8]| (Kind::Merge, key.into(), operand.to_vec());
    let batch = Batch::new(Order::Lexical, vec![put("a"), put("b")]);
    let tree = build_by(&store, batch, Numbers, Depth::Bottom).unwrap();
    let batch = Batch::new(Order::Lexical, vec![merge("a", b"+1"), merge("b", b"+gone")]);
    let tree = append_by(&tree, batch, Numbers, Depth::Bottom).unwrap();
    let left: Vec<_> =
        content(&tree).unwrap().into_iter().map(|((_, key), (_, value))| (key, value)).collect();
    assert_eq!(left, [(b"a".to_vec(), b"value+1".to_vec())]);
}
