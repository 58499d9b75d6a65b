//! A state that becomes too long is its group's error, and nobody else's.

use forebay_aggregate::functions::Distinct;
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, SortAggregator};
use forebay_base::hash::mix;
use forebay_base::{Order, Result};
use forebay_env::Env;
use forebay_env::fs::MemoryFs;

use crate::place::Place;

const STATE_BYTES_MAX: usize = 10_000;
/// Keys that get too many texts.
const GIANTS: [u64; 3] = [3, 40, 700];
const KEYS: u64 = 900;

/// Adds eight different texts to each key, and thousands to three of them, in rounds; looks at all after each.
fn only_their_own_groups_fail(mut texts: impl Aggregator<Distinct>) -> Result<()> {
    let (mut giant_texts, finish) =
        (0, |state: Option<Vec<u8>>| state.and_then(|state| Distinct.finish(&state).ok()));
    for round in 0..8u64 {
        for key in 0..KEYS {
            texts.add(&key.to_le_bytes(), &mix(round).to_le_bytes())?;
            let giant = GIANTS[key as usize % 3];
            texts.add(&giant.to_le_bytes(), &mix(1000 + giant_texts).to_le_bytes())?;
            giant_texts += 1;
        }
        texts.finalize()?;
        for key in 0..KEYS {
            let state = texts.get(&key.to_le_bytes());
            // A giant has 300 texts more after each round, of nine bytes each.
            if GIANTS.contains(&key) && round > 2 {
                let error = state.expect_err("it is too long").to_string();
                assert!(error.contains("of key"), "{error}");
            } else if !GIANTS.contains(&key) {
                assert_eq!(finish(state?), Some(round + 1), "key {key}");
            }
        }
        let mut shown = 0;
        let all = texts.for_each(&mut |key, _| {
            let is_giant = GIANTS.iter().any(|giant| giant.to_le_bytes() == key);
            shown += u64::from(!is_giant);
            assert!(!is_giant || round < 3, "a giant is shown");
            Ok(())
        });
        assert_eq!(shown, KEYS - 3, "all others are shown");
        assert_eq!(all.is_err(), round > 2, "round {round}");
    }
    Ok(())
}

fn options(threads: usize) -> AggregatorOptions {
    let options = AggregatorOptions::default().threads(threads).jobs(Env::memory(threads as u64).jobs);
    options.state_bytes_max(STATE_BYTES_MAX)
}

#[test]
fn in_memory() -> Result<()> {
    for threads in [1, 3] {
        only_their_own_groups_fail(CompressedAggregator::new(Distinct, options(threads))?)?;
    }
    Ok(())
}

#[test]
fn in_files() -> Result<()> {
    let sort = SortAggregator::new(Distinct, Order::Lexical, MemoryFs::new(), "/sorted", 1 << 20)?;
    only_their_own_groups_fail(sort.state_bytes_max(STATE_BYTES_MAX))?;
    let options = options(2).memory_limit(1600 << 10).spill_to(Place::default());
    let texts = CompressedAggregator::new(Distinct, options)?;
    for number in 0..60_000u64 {
        texts.add(&mix(number % 20_000).to_be_bytes(), &mix(number).to_le_bytes().repeat(3))?;
        texts.add(b"giant", &mix(number).to_le_bytes())?;
    }
    assert!(texts.is_spilled());
    assert!(texts.get(b"giant").is_err());
    let mut shown = 0;
    let all = texts.for_each(&mut |key, _| {
        shown += 1;
        assert_ne!(key, b"giant");
        Ok(())
    });
    assert_eq!((shown, texts.keys()?), (20_000, 20_000));
    assert!(all.is_err_and(|error| error.to_string().contains("giant")));
    Ok(())
}

#[test]
fn two_giants_of_like_hashes_make_no_directory() -> Result<()> {
    let limit = 64 << 20;
    let options = AggregatorOptions::default().threads(1).memory_limit(limit).colliding(0);
    let texts = CompressedAggregator::new(Distinct, options)?;
    // A leaf is looked at whenever it was merged.
    for number in 0..6000u64 {
        for key in [b"one", b"two"] {
            let text: Vec<u8> = (0..8).flat_map(|part| mix(8 * number + part).to_le_bytes()).collect();
            texts.add(key, &text)?;
        }
        if number >= 5970 {
            texts.finalize()?;
        }
    }
    assert!(texts.memory_bytes() < 24 << 20, "{} bytes", texts.memory_bytes());
    assert_eq!(texts.keys()?, 2);
    Ok(())
}
