//! Groups that go on in sorted runs: read at any moment, without names, and none lost where writing fails.

use std::path::Path;

use forebay_aggregate::functions::{Count, Distinct};
use forebay_aggregate::{Aggregator, AggregatorOptions, CompressedAggregator, RunFiles};
use forebay_base::Result;
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Env, Rng};

use crate::aggregators::{Map, add_through_failures, add_to_map, contents, counted};

const DIR: &str = "/runs";

/// So little memory that runs are merged as they become too many.
#[test]
fn runs_are_read_amid_adds_and_at_the_end() -> Result<()> {
    for (threads, keys) in [(1, 90_000), (2, 1 << 40)] {
        let (env, mut rng, mut model) = (Env::memory(7), Rng::new(keys), Map::new());
        let limit = 1600 << 10;
        let options =
            AggregatorOptions::default().memory_limit(limit).threads(threads).jobs(env.jobs.clone());
        let runs = RunFiles::new(env.fs.clone(), DIR);
        let counts = CompressedAggregator::new(Count, options.spill_to(runs))?;
        for add in 0..400_000u64 {
            let key = rng.below(keys).to_le_bytes();
            counts.add(&key, ())?;
            add_to_map(&Count, &mut model, &key, &1u64.to_le_bytes());
            assert!(counts.memory_bytes() <= limit, "{} bytes", counts.memory_bytes());
            if add % 60_000 == 59_999 {
                assert_eq!(counts.get(&key)?.as_ref(), model.get(&key[..]));
                assert_eq!(counts.get(b"none")?, None);
            }
            if add == 250_000 {
                assert_eq!(counts.keys()?, model.len() as u64);
            }
        }
        assert!(counts.is_spilled());
        assert!(env.fs.list(Path::new(DIR))?.is_empty(), "no file has a name");
        assert_eq!(contents(&counts), model);
    }
    Ok(())
}

#[test]
fn a_failed_spill_loses_nothing() -> Result<()> {
    let fs = FaultyFs::new(MemoryFs::new());
    let options = AggregatorOptions::default().memory_limit(3 << 20).jobs(Env::memory(6).jobs);
    let mut counts = CompressedAggregator::new(Count, options.spill_to(RunFiles::new(fs.clone(), DIR)))?;
    let added = add_through_failures(&mut counts, 0..700_000, |add| {
        if add % 150_000 == 0 {
            fs.rule("write run-* #2 no-space")?;
        }
        Ok(add * 0x9e37_79b9 % 600_000)
    })?;
    fs.rule("write run-* #1 io-error")?;
    assert!(counts.keys().is_err());
    fs.rule("read run-* #3 io-error")?;
    assert!(counts.keys().is_err());
    assert_eq!(counted(&counts)?, added);
    Ok(())
}

/// States of any length, which merge to longer ones.
#[test]
fn states_that_grow_are_merged_over_runs() -> Result<()> {
    let (env, mut rng, mut model) = (Env::memory(8), Rng::new(8), Map::new());
    let options = AggregatorOptions::default().memory_limit(1600 << 10).threads(1).jobs(env.jobs.clone());
    let texts = CompressedAggregator::new(Distinct, options.spill_to(RunFiles::new(env.fs.clone(), DIR)))?;
    for _ in 0..60_000 {
        let (key, text) = (rng.below(9_000).to_le_bytes(), format!("text {}", rng.below(1 << 30)));
        texts.add(&key, text.as_bytes())?;
        let mut state = Vec::new();
        forebay_aggregate::Aggregate::lift(&Distinct, text.as_bytes(), &mut state)?;
        add_to_map(&Distinct, &mut model, &key, &state);
    }
    assert!(texts.is_spilled());
    assert_eq!(contents(&texts), model);
    Ok(())
}
