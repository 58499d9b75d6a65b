//! The thesis's buffer tree: several levels, every packing, threads, equal hashes, and what it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_aggregate::functions::{Collect, Count};
use forebay_aggregate::{Aggregate, Aggregator, BufferTreeAggregator, Packing, Stage, Stages, TreeShape};
use forebay_base::Result;
use forebay_base::codec::Codec;
use forebay_base::hash::mix;
use forebay_env::Env;
use forebay_env::sync::Arc;

const LZ4: Packing = Packing::Columns(Codec::Lz4);

fn shape() -> TreeShape {
    TreeShape::default().buffer_bytes(16 << 10).fan_out(8).roots(2)
}

/// Adds one to each of so many words, again and again, and compares with a map, twice. Returns the tree.
fn count(shape: TreeShape, adds: u64, words: u64) -> Result<BufferTreeAggregator<Count>> {
    let mut counts = BufferTreeAggregator::new(Count, shape)?;
    let mut map: BTreeMap<String, u64> = BTreeMap::new();
    for half in 0..2 {
        for add in half * adds / 2..(half + 1) * adds / 2 {
            let word = format!("word {}", mix(mix(add) % words) >> (add % 3 * 16));
            counts.add(word.as_bytes(), ())?;
            *map.entry(word).or_default() += 1;
        }
        assert!(counts.get(b"").is_err(), "it is not finalised");
        counts.finalize()?;
        assert_eq!(counts.keys(), map.len() as u64);
        let mut seen = 0;
        counts.for_each(&mut |key, state| {
            seen += 1;
            let expected = std::str::from_utf8(key).ok().and_then(|key| map.get(key)).copied();
            assert_eq!(Some(Count.finish(state)?), expected, "{key:?}");
            Ok(())
        })?;
        assert_eq!(seen, map.len());
        for (key, times) in map.iter().step_by(997) {
            assert_eq!(counts.get(key.as_bytes())?, Some(times.to_le_bytes().to_vec()));
        }
        assert_eq!(counts.get(b"no such word")?, None);
    }
    Ok(counts)
}

#[test]
fn words_are_counted_in_trees_of_several_levels() -> Result<()> {
    for (seed, threads) in [(1, 1), (2, 3), (3, 4)] {
        let shape = shape().threads(threads).jobs(Env::memory(seed).jobs);
        let counts = count(shape, 100_000, 20_000)?;
        assert!(counts.height() >= 3, "{} levels for seed {seed}", counts.height());
    }
    // Threads of the system's, and a tree that is deeper still.
    let counts =
        count(shape().fan_out(4).roots(3).trees(2).threads(3).packing(Packing::Off), 100_000, 20_000)?;
    assert!(counts.height() >= 4, "{} levels", counts.height());
    // What fits two leaves stays there, however often it comes.
    assert_eq!(count(shape(), 50_000, 50)?.height(), 1);
    Ok(())
}

#[test]
fn equal_hashes_stay_apart() -> Result<()> {
    for bits in [0, 1, 6] {
        let shape = shape().hash_bits(bits).jobs(Env::memory(bits.into()).jobs);
        let counts = count(shape, 20_000, 3_000)?;
        assert!(counts.height() <= 1 + bits as usize, "{bits} bits tell no more leaves apart");
    }
    Ok(())
}

#[test]
fn columns_take_less_memory_than_rows_and_those_than_none() -> Result<()> {
    let memory = |packing| {
        let counts = count(shape().packing(packing).threads(1), 60_000, 20_000)?;
        Ok(counts.memory_bytes())
    };
    let (plain, rows, columns) = (memory(Packing::Off)?, memory(Packing::Rows(Codec::Lz4))?, memory(LZ4)?);
    assert!(columns < rows && rows < plain, "{columns}, {rows}, {plain} bytes");
    Ok(())
}

#[test]
fn a_state_that_is_longer_than_a_buffer_is_kept() -> Result<()> {
    let list = Collect::list(100_000)?;
    let mut lists = BufferTreeAggregator::new(list, shape().threads(1))?;
    for add in 0..3_000u64 {
        lists.add(&(add % 3).to_le_bytes(), &vec![add as u8; (add % 50) as usize])?;
        if add % 1_000 == 0 {
            lists.add(b"long", &[7; 20_000])?;
        }
    }
    lists.finalize()?;
    assert_eq!(lists.keys(), 4);
    assert!(lists.get(b"long")?.is_some_and(|state| state.len() > 60_000));
    Ok(())
}

#[test]
fn stages_are_counted_by_a_clock_of_ones_own() -> Result<()> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TICKS: AtomicU64 = AtomicU64::new(0);
    let stages = Arc::new(Stages::new(|| Duration::from_secs(TICKS.fetch_add(1, Ordering::Relaxed))));
    count(shape().threads(1).stages(Arc::clone(&stages)), 40_000, 20_000)?;
    for (stage, is_counted) in Stage::ALL.into_iter().zip([true, true, true, true, false]) {
        assert_eq!(stages.of(stage) > Duration::ZERO, is_counted, "{stages:?}");
    }
    Ok(())
}

#[test]
fn shapes_that_are_none_are_refused() {
    let bad = [
        shape().roots(0),
        shape().trees(0),
        shape().threads(0),
        shape().fan_out(3),
        shape().buffer_bytes(99),
    ];
    for shape in bad {
        assert!(BufferTreeAggregator::new(Count, shape).is_err());
    }
}
