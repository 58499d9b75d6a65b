//! The model of what a batch writes, against what batches write.

use forebay_base::Order;
use forebay_cow_tree::{Shape, TreeOptions};
use forebay_env::Rng;
use forebay_env::fs::MemoryFs;
use forebay_store::Cause;

use crate::common::{Batch, append, build, store};

/// A tree that is built, and batches appended to it.
struct Load {
    records: usize,
    batch: usize,
    value_bytes: usize,
    /// How many of a hundred keys of a batch are new.
    new_percent: usize,
}

fn key(rng: &mut Rng) -> Vec<u8> {
    rng.next_u64().to_be_bytes().to_vec()
}

fn puts(mut keys: Vec<Vec<u8>>, value_bytes: usize) -> (usize, Batch) {
    keys.sort();
    keys.dedup();
    (keys.len(), Batch::puts(Order::Lexical, keys.into_iter().map(|key| (key, vec![1; value_bytes]))))
}

/// What the model tells for all batches over what was written, and of leaves at the end over what there are.
fn told_over_real(load: &Load) -> (f64, f64) {
    let Load { records, batch, value_bytes, new_percent } = *load;
    let options = TreeOptions { filter_bits_per_key: 0, ..TreeOptions::new(Order::Lexical) };
    let store = store(MemoryFs::new(), options);
    let mut rng = Rng::new((records ^ batch) as u64);
    let keys: Vec<_> = (0..records).map(|_| key(&mut rng)).collect();
    let mut tree = build(&store, &puts(keys.clone(), value_bytes).1).unwrap();
    // Of keys of eight bytes about one goes to what a leaf's keys begin with, less where they differ in the first.
    let apart = value_bytes > options.inline_value_bytes_max;
    let mut shape = Shape {
        records: 0.0,
        leaves: 0.0,
        full_leaves: 0.0,
        record_bytes: 1.0 + 7.5 + if apart { 10.0 } else { 1.0 + value_bytes as f64 },
        child_bytes: 17.0,
        value_bytes: if apart { value_bytes as f64 } else { 0.0 },
        node_bytes: options.node_bytes_max as f64,
    };
    let told = shape.append(records as f64, records as f64);
    let built = told.bytes / tree.total_bytes() as f64;
    assert!((0.95..1.05).contains(&built), "{built:.3} of what building writes");
    shape = told.tree;
    let mut told_bytes = 0.0;
    for _ in 0..8 {
        let new = batch * new_percent / 100;
        let chosen = (0..batch)
            .map(|number| if number < new { key(&mut rng) } else { keys[rng.index(keys.len())].clone() });
        let (batch, puts) = puts(chosen.collect(), value_bytes);
        let before = tree.records();
        tree = append(&tree, &puts).unwrap();
        let told = shape.append(batch as f64, (tree.records() - before) as f64);
        told_bytes += told.bytes;
        shape = told.tree;
    }
    let real_bytes = store.metrics.list_bytes_written[Cause::Spill as usize].get() as f64;
    (told_bytes / real_bytes, shape.leaves / tree.verify().unwrap().leaves as f64)
}

#[test]
fn the_model_is_near_what_batches_write() {
    for (records, batch, value_bytes, new_percent) in [
        // From a leaf in five to every leaf many times; values in place and apart; overwritten, new, and both.
        (100_000, 100, 8, 0),
        (100_000, 100, 8, 50),
        (100_000, 1_000, 8, 0),
        (100_000, 1_000, 8, 100),
        (100_000, 10_000, 8, 50),
        (100_000, 50_000, 8, 0),
        (50_000, 500, 300, 100),
        (50_000, 5_000, 300, 50),
        (20_000, 20_000, 8, 100),
    ] {
        let load = Load { records, batch, value_bytes, new_percent };
        let (bytes, leaves) = told_over_real(&load);
        let context = format!("{records} records, {batch} a batch, {value_bytes} B, {new_percent} % new");
        assert!((0.9..1.1).contains(&bytes), "{context}: {bytes:.3} of the bytes");
        assert!((0.9..1.1).contains(&leaves), "{context}: {leaves:.3} of the leaves");
    }
}
