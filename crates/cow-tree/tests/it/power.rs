//! Power losses and faults at every operation: a version that was returned is there, whole.

use std::path::Path;
use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::{LastWriterWins, Order, Result};
use forebay_cow_tree::{Tree, TreeOptions, TreeStore, TreeWriter, Version, last_root};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs, TracedFs};
use forebay_env::{FileSystem, Rng};
use forebay_store::Cause;

use crate::common::{Batch, Model, append, build, content, numbered, push_all, restarted, store};

/// Long enough that values and nodes of one batch go out in several writes.
fn batch(round: u64) -> Batch {
    let mut rng = Rng::new(round);
    let record = |rng: &mut Rng| {
        let mut value = vec![0; [10, 50_000][rng.index(2)]];
        rng.fill(&mut value);
        (format!("{:03}", rng.below(300)).into_bytes(), value)
    };
    Batch::puts(Order::Lexical, (0..60).map(|_| record(&mut rng)).collect::<Vec<_>>())
}

fn options() -> TreeOptions {
    // Of filters long enough to have chains.
    TreeOptions { node_bytes_max: 512, filter_bits_per_key: 200, ..TreeOptions::new(Order::Lexical) }
}

/// What somebody was told is durable, and what is perhaps.
#[derive(Default)]
struct Told {
    version: Option<Version>,
    model: Model,
    /// What the append under way would make of it.
    next: Model,
}

/// Builds a tree and appends to it, until something fails.
fn load(store: &TreeStore, told: &mut Told) -> Result<()> {
    // The directory itself.
    store.fs.sync_dir(Path::new("/"))?;
    let mut tree: Option<Tree> = None;
    for round in 0..4 {
        let batch = batch(round);
        batch.apply(&mut told.next, &LastWriterWins, Depth::Bottom);
        let next = match &tree {
            None => build(store, &batch).and_then(|tree| store.fs.sync_dir(&store.dir).map(|()| tree))?,
            Some(tree) => append(tree, &batch)?,
        };
        told.model.clone_from(&told.next);
        told.version = Some(next.version());
        tree = Some(next);
    }
    Ok(())
}

/// Asserts that the version is there and that one can go on from it.
fn assert_goes_on(fs: Arc<dyn FileSystem>, told: &Told, context: &str) {
    let store = store(fs, options());
    let Some(version) = told.version else { return };
    let last = last_root(&store, version.file_id, u64::MAX).unwrap().expect(context);
    let found = content(&Tree::open(&store, last).unwrap()).unwrap();
    if last == version {
        assert_eq!(found, told.model, "{context}");
    } else {
        assert_eq!(found, told.next, "{context}: one that was finished, though nobody was told");
    }
    let tree = Tree::open(&store, version).unwrap();
    tree.verify().unwrap();
    assert_eq!(content(&tree).unwrap(), told.model, "{context}");
    // What the crash left behind the version must not matter, however short the next append is.
    let batch = Batch::puts(Order::Lexical, [(b"after".to_vec(), b"all".to_vec())]);
    let mut model = told.model.clone();
    batch.apply(&mut model, &LastWriterWins, Depth::Bottom);
    let next = append(&tree, &batch).unwrap();
    assert_eq!(content(&next).unwrap(), model, "{context}");
    assert_eq!(last_root(&store, version.file_id, u64::MAX).unwrap(), Some(next.version()), "{context}");
}

#[test]
fn the_power_may_go_at_any_operation() {
    let quiet = CrashFs::new(0);
    let mut told = Told::default();
    load(&store(quiet.clone(), options()), &mut told).unwrap();
    let operations = quiet.operations();
    assert!(operations > 12, "several writes a batch: {operations}");
    for crash_at in 2..=operations {
        for seed in 0..12 {
            let fs = CrashFs::new(seed * 1000 + crash_at);
            let store = store(fs.clone(), options());
            fs.crash_at(crash_at);
            let mut told = Told::default();
            assert!(load(&store, &mut told).is_err());
            let context = format!("operation {crash_at}, seed {seed}");
            assert_goes_on(fs.power_cycle(), &told, &context);
        }
    }
}

#[test]
fn the_power_may_go_while_a_tail_is_cut_off() {
    for crash_at in 1..8 {
        for seed in 0..30 {
            let fs = CrashFs::new(seed);
            let mut told = Told::default();
            let first = store(fs.clone(), options());
            load(&first, &mut told).unwrap();
            let version = told.version.unwrap();
            // Whole roots that the manifest never hears of, far behind a short append. What the last one was appended
            // with will be intact where what it reaches further is not.
            let mut lost = Tree::open(&first, version).unwrap();
            let mut known = vec![told.model.clone()];
            for round in [8, 9] {
                batch(round).apply(&mut told.next, &LastWriterWins, Depth::Bottom);
                known.push(told.next.clone());
                lost = append(&lost, &batch(round)).unwrap();
            }
            let fs = fs.power_cycle();
            let second = store(fs.clone(), options());
            fs.crash_at(fs.operations() + crash_at);
            let tree = Tree::open(&second, version).unwrap();
            let short = Batch::puts(Order::Lexical, [(b"short".to_vec(), b"one".to_vec())]);
            let mut next = told.model.clone();
            short.apply(&mut next, &LastWriterWins, Depth::Bottom);
            known.push(next);
            let done = append(&tree, &short);
            let context = format!("operation {crash_at}, seed {seed}");
            let fs = fs.power_cycle();
            let third = store(fs.clone(), options());
            let last = last_root(&third, version.file_id, u64::MAX).unwrap().expect(&context);
            let found = content(&Tree::open(&third, last).unwrap()).unwrap();
            assert!(known.contains(&found), "{context}: a root over parts of another append");
            if let Ok(done) = &done {
                assert_eq!(last, done.version(), "{context}");
            }
        }
    }
}

#[test]
fn a_fault_at_any_operation_leaves_the_version_before() {
    for kind in ["write", "sync", "set_len", "read", "open", "create"] {
        for fault in ["no-space", "io-error", "short"] {
            if fault == "short" && kind != "write" {
                continue;
            }
            for number in 1..40 {
                let faulty = FaultyFs::new(MemoryFs::new());
                let store = store(faulty.clone(), options());
                faulty.rule(&format!("{kind} *.tree #{number} {fault}")).unwrap();
                let mut told = Told::default();
                let loaded = load(&store, &mut told);
                assert_eq!(loaded.is_err(), faulty.fired() > 0, "every fault is told of");
                faulty.clear();
                let context = format!("{kind} {number} {fault}");
                let Some(version) = told.version else { continue };
                // The same process goes on: what is open stays usable.
                let tree = Tree::open(&store, version).unwrap();
                assert_eq!(content(&tree).unwrap(), told.model, "{context}");
                let next = append(&tree, &batch(7)).unwrap();
                batch(7).apply(&mut told.model, &LastWriterWins, Depth::Bottom);
                assert_eq!(content(&next).unwrap(), told.model, "{context}");
                assert_eq!(last_root(&store, 7, u64::MAX).unwrap(), Some(next.version()), "{context}");
            }
        }
    }
}

#[test]
fn a_version_is_returned_only_behind_a_sync() {
    let fs = CrashFs::new(3);
    let mut told = Told::default();
    load(&store(fs.clone(), options()), &mut told).unwrap();
    // Nothing that was told is pending: whatever a crash now draws, it is there.
    for _ in 0..50 {
        assert_goes_on(fs.power_cycle(), &told, "after the load");
    }
}

#[test]
fn each_version_is_behind_its_sync_and_a_cut_before_the_next_write() {
    let fs = TracedFs::new(MemoryFs::new());
    let store = store(fs.clone(), options());
    fs.start_log(&store.dir);
    let short = |key: &str| Batch::puts(Order::Lexical, [(key.as_bytes().to_vec(), b"value".to_vec())]);
    let log = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| line.replace('*', "00000007.tree")).collect();
        assert_eq!(fs.take_log(), lines);
    };
    let tree = build(&store, &short("one")).unwrap();
    log(&["create *", "write * 0+8192", "sync *"]);
    let two = append(&tree, &short("two")).unwrap();
    log(&["write * 8192+8192", "sync *"]);
    // What a writer that is given up has written is cut off at once, and once more durably.
    let mut writer = TreeWriter::append(&two, LastWriterWins, Depth::Bottom, Cause::Spill).unwrap();
    push_all(&mut writer, numbered(0..15_000, 100), &LastWriterWins).unwrap();
    drop(writer);
    log(&["write * 16384+1048576", "set_len * 16384"]);
    append(&two, &short("three")).unwrap();
    log(&["set_len * 16384", "sync *", "write * 16384+8192", "sync *"]);
    let tree = Tree::open(&restarted(&store, fs.clone()), tree.version()).unwrap();
    append(&tree, &short("three")).unwrap();
    log(&["set_len * 8192", "sync *", "write * 8192+8192", "sync *"]);
}
