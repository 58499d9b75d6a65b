//! Aggregators: what they cost, and that they are what a map is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay::aggregate::functions::{Collect, Count, SumInt};
use forebay::aggregate::{self, Aggregate, StateType};
use forebay::{Aggregator, Batch, Database, Durability, Layout, Options, Result};
use forebay_env::{Env, Rng};

use super::{DIR, options};

/// Counts, and counts merges.
struct Counted(Arc<AtomicU64>);

impl Aggregate for Counted {
    type Input<'a> = ();
    type Output = u64;

    fn state_type(&self) -> StateType {
        Count.state_type()
    }
    fn state_bytes(&self) -> Option<usize> {
        Some(8)
    }
    fn lift(&self, (): (), state: &mut Vec<u8>) -> Result<()> {
        Aggregate::lift(&Count, (), state)
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        self.0.fetch_add(states.len() as u64, Ordering::Relaxed);
        Aggregate::merge(&Count, states, out);
    }
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        self.0.fetch_add(2, Ordering::Relaxed);
        Aggregate::merge_in_place(&Count, state, other);
    }
    fn finish(&self, state: &[u8]) -> Result<u64> {
        Aggregate::finish(&Count, state)
    }
}

/// However often a key was added to, a get folds a few records beside those that came since the last one.
#[test]
fn a_get_of_a_hot_counter_folds_a_few_records() {
    let env = Env::memory(1);
    let options = Options::default().memory_limit(16 << 20).write_buffer(2 << 20).env(env.clone());
    let db = Database::open(DIR, options).unwrap();
    let merges = Arc::new(AtomicU64::new(0));
    let hits = db.aggregator("hits", Counted(Arc::clone(&merges))).open().unwrap();
    let (keys, between) = (10u64, 1000u64);
    for round in 1..=300u64 {
        let mut batch = Batch::new();
        (0..between).for_each(|number| batch.add(&hits, (number % keys).to_le_bytes(), ()));
        db.commit(batch, Durability::Memory).unwrap();
        merges.store(0, Ordering::Relaxed);
        assert_eq!(hits.get((round % keys).to_le_bytes()).unwrap(), Some(round * between / keys));
        let merged = merges.load(Ordering::Relaxed);
        // All that came since, of all keys, once; and each key's runs and lists.
        assert!(merged <= between + 40 * keys, "{merged} records merged by one get, round {round}");
        env.jobs.step_some(3);
    }
    merges.store(0, Ordering::Relaxed);
    let key = 3u64.to_le_bytes();
    (0..100).for_each(|_| assert!(hits.get(key).unwrap().is_some()));
    assert!(merges.load(Ordering::Relaxed) <= 100 * 100, "{merges:?} records merged by a hundred gets");
}

fn random_run(layout: Layout, seed: u64) {
    let env = Env::memory(seed);
    let db = Database::open(DIR, options(&env)).unwrap();
    let open =
        || db.aggregator("sums", SumInt).layout(layout).node_bytes(6 << 10).lists_max(6).open().unwrap();
    let sums: Aggregator<SumInt> = open();
    let mut rng = Rng::new(seed);
    let mut model: BTreeMap<Vec<u8>, i128> = BTreeMap::new();
    let mut snapshots = Vec::new();
    let key_of = |rng: &mut Rng| {
        let number = rng.below(300);
        number.to_be_bytes()[8 - rng.range(2..9) as usize..].to_vec()
    };
    for step in 0..1500 {
        match rng.below(100) {
            0..50 => {
                let (key, value) = (key_of(&mut rng), rng.next_u64() as i64);
                sums.add(&key, value).unwrap();
                *model.entry(key).or_default() += i128::from(value);
            }
            50..70 => {
                let values: Vec<_> =
                    (0..rng.below(60)).map(|_| (key_of(&mut rng), rng.below(9) as i64)).collect();
                sums.add_batch(values.iter().map(|(key, value)| (&key[..], *value))).unwrap();
                values
                    .into_iter()
                    .for_each(|(key, value)| *model.entry(key).or_default() += i128::from(value));
            }
            70..80 => {
                let key = key_of(&mut rng);
                assert_eq!(sums.get(&key).unwrap(), model.get(&key).copied(), "step {step}");
            }
            80..85 => {
                let keys: Vec<_> = (0..9).map(|_| key_of(&mut rng)).collect();
                let wanted: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
                assert_eq!(sums.multi_get(&keys).unwrap(), wanted);
            }
            85..88 => snapshots.push((db.snapshot(), model.clone())),
            88 => drop((!snapshots.is_empty()).then(|| snapshots.remove(0))),
            89..91 => {
                for (snapshot, seen) in &snapshots {
                    let entries: BTreeMap<_, _> =
                        sums.at(snapshot).iter().unwrap().map(Result::unwrap).collect();
                    assert_eq!(&entries, seen, "step {step}");
                    let key = key_of(&mut rng);
                    assert_eq!(sums.at(snapshot).get(&key).unwrap(), seen.get(&key).copied());
                }
            }
            91 => sums.finalize().unwrap(),
            92 => db.flush().unwrap(),
            _ => env.jobs.step_some(rng.index(20)),
        }
    }
    let entries: BTreeMap<_, _> = sums.iter().unwrap().map(Result::unwrap).collect();
    assert_eq!(entries, model);
}

#[test]
fn an_aggregator_equals_a_map() {
    for seed in 0..6 {
        random_run(Layout::wb_tree(), seed);
        random_run(Layout::wb_tree_ordered(), seed);
    }
}

#[test]
fn a_snapshot_keeps_what_was_counted_before_it() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let hits = db.aggregator("hits", Count).open().unwrap();
    let mut seen = Vec::new();
    for number in 0..200u64 {
        hits.add(b"key", ()).unwrap();
        // Whether anybody looked in between or not.
        if number % 3 == 0 {
            assert_eq!(hits.get(b"key").unwrap(), Some(number + 1));
        }
        seen.push((db.snapshot(), number + 1));
        if number % 50 == 49 {
            env.jobs.step_some(20);
        }
    }
    for (snapshot, count) in seen.iter().rev().chain(&seen) {
        assert_eq!(hits.at(snapshot).get(b"key").unwrap(), Some(*count));
    }
}

#[test]
fn finalizing_leaves_one_record_a_key_and_more_may_be_added() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let hits = db.aggregator("hits", Count).open().unwrap();
    for round in 1..=3u64 {
        (0..2000u32).for_each(|number| hits.add((number % 100).to_be_bytes(), ()).unwrap());
        hits.finalize().unwrap();
        assert_eq!(db.stats().list_records, 100);
        let entries: Vec<_> = hits.iter().unwrap().map(Result::unwrap).collect();
        assert_eq!(entries.len(), 100);
        assert!(entries.iter().all(|(_, count)| *count == 20 * round));
    }
}

/// Used by whoever knows only the seam between aggregators.
fn count_words(mut aggregator: impl aggregate::Aggregator<Count>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    for word in ["ebb", "flood", "ebb", "tide"] {
        aggregator.add(word.as_bytes(), ())?;
    }
    aggregator.add_state(b"tide", &7u64.to_le_bytes())?;
    assert!(aggregator.add_state(b"tide", b"short").is_err());
    aggregator.finalize()?;
    assert!(aggregator.memory_bytes() > 0);
    let mut seen = Vec::new();
    aggregator.for_each(&mut |key, state| {
        seen.push((key.to_vec(), state.to_vec()));
        Ok(())
    })?;
    seen.sort();
    Ok(seen)
}

#[test]
fn it_is_an_aggregator_like_any_other() {
    let env = Env::memory(1);
    let db = Database::open(Path::new(DIR), options(&env)).unwrap();
    let durable = count_words(db.aggregator("words", Count).open().unwrap()).unwrap();
    assert_eq!(durable, count_words(forebay_aggregate::HashAggregator::new(Count, 1 << 20)).unwrap());
}

/// States that all had one length so far may merge to longer ones.
#[test]
fn states_may_grow() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let lists = db.aggregator("lists", Collect::list(1000).unwrap()).lists_max(2).open().unwrap();
    for round in 0..6u8 {
        for key in 0..200u32 {
            lists.add(key.to_be_bytes(), &[round, key as u8][..]).unwrap();
        }
        db.flush().unwrap();
        env.jobs.step_some(200);
    }
    lists.finalize().unwrap();
    for key in 0..200u32 {
        let state = lists.get_state(key.to_be_bytes()).unwrap().unwrap();
        let mut wanted = Vec::new();
        let mut states: Vec<Vec<u8>> = Vec::new();
        for round in 0..6u8 {
            let mut one = Vec::new();
            lists.function().lift(&[round, key as u8][..], &mut one).unwrap();
            states.push(one);
        }
        let states: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
        lists.function().merge(&states, &mut wanted);
        assert_eq!(state, wanted);
    }
}

/// What is added to a key counts up to its last delete: in a batch in its order, and wherever states and deletes meet.
#[test]
fn groups_can_be_deleted_of_aggregators_that_were_made_so() {
    let env = Env::memory(3);
    let open = |layout: Layout| {
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits =
            db.aggregator(&format!("hits {layout}"), Count).layout(layout).deletes(true).open().unwrap();
        (db, hits)
    };
    for layout in [Layout::wb_tree(), Layout::wb_tree_ordered(), "leveling".parse().unwrap()] {
        let (db, hits) = open(layout);
        let mut batch = Batch::new();
        // So many that states of a key are one record.
        (0..40).for_each(|_| batch.add(&hits, "a", ()));
        batch.delete_group(&hits, "a");
        (0..3).for_each(|_| batch.add(&hits, "a", ()));
        batch.add(&hits, "b", ());
        db.write(&mut batch, Durability::Os).unwrap();
        assert_eq!((hits.get("a").unwrap(), hits.get("b").unwrap()), (Some(3), Some(1)), "{layout}");
        db.flush().unwrap();
        hits.add("a", ()).unwrap();
        hits.delete("b").unwrap();
        assert_eq!((hits.get("a").unwrap(), hits.get("b").unwrap()), (Some(4), None), "{layout}");
        // Two deletes are no states that merge, though they are of one length.
        (0..2).for_each(|_| hits.delete("a").unwrap());
        assert_eq!(hits.get("a").unwrap(), None, "{layout}");
        hits.add("a", ()).unwrap();
        db.flush().unwrap();
        assert_eq!(hits.get("a").unwrap(), Some(1), "{layout}");
        drop(hits);
        db.close().unwrap();

        // Who opens it need not say so again.
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits = db.aggregator(&format!("hits {layout}"), Count).existing(true).open().unwrap();
        assert_eq!(
            hits.iter().unwrap().collect::<Result<Vec<_>>>().unwrap(),
            [(b"a".to_vec(), 1)],
            "{layout}"
        );
        hits.finalize().unwrap();
        assert_eq!(hits.get("a").unwrap(), Some(1), "{layout}");
        let refused = hits.delete_prefix("a").and_then(|()| hits.delete_range("a"..)).err();
        assert_eq!(refused.is_none(), layout.is_ordered(), "{layout}: {refused:?}");
        assert_eq!(hits.get("a").unwrap(), refused.map(|_| 1), "{layout}");
        drop(hits);
        db.close().unwrap();
    }
}

#[test]
fn groups_of_other_aggregators_cannot_be_deleted() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let hits = db.aggregator("hits", Count).open().unwrap();
    hits.add("a", ()).unwrap();
    let mut batch = Batch::new();
    batch.delete_group(&hits, "a");
    for refused in [
        hits.delete("a").unwrap_err(),
        hits.delete_range("a"..).unwrap_err(),
        hits.delete_prefix("a").unwrap_err(),
        db.write(&mut batch, Durability::Os).map(drop).unwrap_err(),
        db.aggregator("hits", Count).deletes(true).open().map(drop).unwrap_err(),
    ] {
        let text = refused.to_string();
        assert!(text.contains("`hits`") && text.contains("deletes"), "{text}");
    }
    assert_eq!(hits.get("a").unwrap(), Some(1));
}

/// A cursor of states goes as one of a table does, over what is buffered and what lists have.
#[test]
fn a_cursor_walks_states_either_way() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let hits = db.aggregator("hits", Count).layout(Layout::wb_tree_ordered()).open().unwrap();
    for round in 1..=3 {
        (0..round).for_each(|key| hits.add([b'a' + key], ()).unwrap());
        db.flush().unwrap();
    }
    hits.add("c", ()).unwrap();
    let snapshot = db.snapshot();
    hits.add("d", ()).unwrap();
    let count = |state: &[u8]| Aggregate::finish(&Count, state).unwrap();
    let mut cursor = hits.cursor().unwrap();
    cursor.seek("b").unwrap();
    let mut met = Vec::new();
    while let Some((key, state)) = cursor.entry() {
        met.push((key.to_vec(), count(state)));
        cursor.next().unwrap();
    }
    assert_eq!(met, [(b"b".to_vec(), 2), (b"c".to_vec(), 2), (b"d".to_vec(), 1)]);
    let mut cursor = hits.at(&snapshot).cursor().unwrap();
    cursor.seek_to_last().unwrap();
    assert_eq!(cursor.entry().map(|(key, state)| (key.to_vec(), count(state))), Some((b"c".to_vec(), 2)));
    cursor.prev().unwrap();
    cursor.prev().unwrap();
    assert_eq!(cursor.entry().map(|(key, state)| (key.to_vec(), count(state))), Some((b"a".to_vec(), 3)));
    let hashed = db.aggregator("hashed", Count).open().unwrap();
    assert!(hashed.cursor().is_err(), "there is no order to walk in");
}
