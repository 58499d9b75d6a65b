//! Tables that merge, and the durable aggregator: what they answer, what they cost, and what they refuse.

mod aggregators;

use std::sync::Arc;

use forebay::aggregate::functions::{Count, SumInt};
use forebay::aggregate::{Aggregate, BuiltIn, Composite, StateType, Value};
use forebay::{Batch, Database, Durability, Error, Layout, MergeRule, Options, Result};
use forebay_env::fs::CrashFs;
use forebay_env::{Env, FileSystem, Rng};
use forebay_testkit::{Short, Suffix};

const DIR: &str = "/db";

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

#[track_caller]
fn assert_says<T>(outcome: Result<T>, words: &[&str]) {
    let text = outcome.err().expect("an error").to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "`{text}` does not say `{word}`"));
}

struct Other;

impl MergeRule for Other {
    fn name(&self) -> &str {
        "other/3"
    }
    fn merge(&self, _key: &[u8], newer: &[u8], _older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
    }
}

/// What a key's operands came to was written as a record that no reader takes: the key was gone, and another one had a
/// tombstone.
#[test]
fn operands_that_merge_to_too_long_a_value_keep_a_table_from_another_order() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout(Layout::wb_tree()).node_bytes(8 << 10).merge_rule(Short).open().unwrap();
    table.put(b"put", [1; 2_000]).unwrap();
    table.merge(b"operand", [1; 2_000]).unwrap();
    table.set_layout(Layout::wb_tree_ordered()).unwrap();
    for round in 0..6_u8 {
        table.merge(b"long", [round; 300]).unwrap();
        db.flush().unwrap();
    }
    let error = table.set_layout(Layout::wb_tree()).unwrap_err();
    assert!(matches!(&error, Error::TooLong(reason) if reason.contains("long")), "{error}");
    assert_eq!(table.layout().unwrap(), Layout::wb_tree_ordered());
    let lengths = [&b"put"[..], b"operand", b"long"].map(|key| table.get(key).unwrap().unwrap().len());
    assert_eq!(lengths, [2_000, 2_000, 1_800]);
}

/// Groups by page and hour could be asked for all or for one, and not for those of a page.
#[test]
fn an_aggregator_in_key_order_has_ranges() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let views =
        db.aggregator("views", Count).layout(Layout::wb_tree_ordered()).node_bytes(8 << 10).open().unwrap();
    for key in ["a 1", "b 1", "b 2", "b 2", "c 1"] {
        views.add(key.as_bytes(), ()).unwrap();
    }
    let before = db.snapshot();
    views.add(b"b 3", ()).unwrap();
    let told = |scan: Result<forebay::AggregatorScan<Count>>| -> Vec<(String, u64)> {
        let text = |entry: Result<(Vec<u8>, u64)>| {
            entry.map(|(key, count)| (String::from_utf8(key).unwrap(), count))
        };
        scan.unwrap().map(|entry| text(entry).unwrap()).collect()
    };
    let of = |entries: &[(&str, u64)]| {
        entries.iter().map(|(key, count)| (key.to_string(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(told(views.prefix(b"b ")), of(&[("b 1", 1), ("b 2", 2), ("b 3", 1)]));
    assert_eq!(told(views.at(&before).prefix(b"b ")), of(&[("b 1", 1), ("b 2", 2)]));
    assert_eq!(told(views.range(&b"b 2"[..]..=&b"c 1"[..])), of(&[("b 2", 2), ("b 3", 1), ("c 1", 1)]));
    let hashed = db.aggregator("hashed", Count).open().unwrap();
    assert_says(hashed.prefix(b"b"), &["`hashed`", "order"]);
}

/// A handle that is for reading wrote what is no state, which was merged with states from then on.
#[test]
fn a_plain_handle_of_an_aggregators_table_writes_nothing() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let hits = db.aggregator("hits", Count).layout(Layout::leveling(4)).node_bytes(8 << 10).open().unwrap();
    hits.add(b"key", ()).unwrap();
    let table = db.snapshot().ordered_table("hits").unwrap();
    let entry = Ok((b"key".to_vec(), b"x".to_vec()));
    let refused = [
        table.put(b"key", b"x"),
        table.delete(b"key"),
        table.merge(b"key", b"x"),
        table.delete_range(..),
        table.ingest([entry].into_iter()).map(drop),
    ];
    for outcome in refused {
        assert_says(outcome, &["`hits`", "count/1", "Database::aggregator"]);
    }
    hits.add(b"key", ()).unwrap();
    db.flush().unwrap();
    table.compact().unwrap();
    assert_eq!(hits.get(b"key").unwrap(), Some(2));
    assert!(table.get(b"key").unwrap().is_some());
}

/// Their lists stay as they are: nothing is lost, nothing is tried forever, and whoever asks is told which key it is.
#[test]
fn operands_that_merge_to_too_long_a_value_stay_and_are_named() {
    for layout in ["wb-tree", "wb-tree:ordered"] {
        let (env, layout) = (Env::memory(1), layout.parse::<Layout>().unwrap());
        let open = || {
            let db = Database::open(DIR, options(&env)).unwrap();
            let table = db.table("t").layout(layout).node_bytes(8 << 10).merge_rule(Short).open().unwrap();
            (db, table)
        };
        let (db, table) = open();
        for round in 0..6_u8 {
            table.merge(b"long", [round; 300]).unwrap();
            for number in 0..20_u8 {
                table.merge([number; 3], [round; 10]).unwrap();
            }
            db.flush().unwrap();
        }
        assert_says(table.compact(), &["table `t`", "key `long`", "more than the 1000 that"]);
        let long: Vec<u8> = (0..6_u8).flat_map(|round| [round; 300]).collect();
        let check = |table: &forebay::Table| {
            assert!(table.get(b"long").unwrap().as_ref() == Some(&long), "{layout}");
            for number in 0..20_u8 {
                assert_eq!(table.get([number; 3]).unwrap().map(|value| value.len()), Some(60), "{layout}");
            }
        };
        check(&table);
        let problems = db.verify(&mut |_, _| ()).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].contains("key `long`"), "{layout}: {problems:?}");
        table.merge(b"other", b"1").unwrap();
        db.flush().unwrap();
        drop(table);
        db.close().unwrap();
        let (db, table) = open();
        check(&table);
        table.put(b"long", b"short").unwrap();
        db.flush().unwrap();
        drop(table);
        db.close().unwrap();
        let (db, table) = open();
        table.compact().unwrap();
        assert_eq!(table.get(b"long").unwrap().as_deref(), Some(&b"short"[..]), "{layout}");
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new(), "{layout}");
    }
}

/// Counts under a type of its own, as a program's functions have.
struct Own;

impl Aggregate for Own {
    type Input<'a> = ();
    type Output = u64;

    fn state_type(&self) -> StateType {
        StateType::new("own_count", 1)
    }
    fn state_bytes(&self) -> Option<usize> {
        Some(8)
    }
    fn lift(&self, (): (), state: &mut Vec<u8>) -> Result<()> {
        Aggregate::lift(&Count, (), state)
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        Aggregate::merge(&Count, states, out);
    }
    fn finish(&self, state: &[u8]) -> Result<u64> {
        Aggregate::finish(&Count, state)
    }
}

#[test]
fn a_table_opens_with_no_other_rule_than_its_own() {
    let env = Env::memory(1);
    let open = || Database::open(DIR, options(&env)).unwrap();
    {
        let db = open();
        db.table("plain").open().unwrap();
        db.table("texts").merge_rule(Suffix).open().unwrap();
        db.aggregator("hits", Count).open().unwrap();
        // Known by now.
        db.table("texts").open().unwrap();
        assert_eq!(db.describe().tables[0].rule.as_deref(), Some("aggregation rule `count/1`"));
        assert_eq!(db.describe().tables[1].rule, None);
        db.close().unwrap();
    }
    let db = open();
    assert_says(db.table("texts").merge_rule(Other).open(), &["`texts`", "suffix/1", "other/3"]);
    assert_says(db.table("plain").merge_rule(Other).open(), &["`plain`", "no merge rule", "other/3"]);
    assert_says(db.table("hits").merge_rule(Other).open(), &["`hits`", "count/1", "other/3"]);
    assert_says(db.aggregator("hits", SumInt).open(), &["`hits`", "count/1", "sum_int/1"]);
    assert_says(db.aggregator("texts", Count).open(), &["`texts`", "suffix/1", "count/1"]);
    assert_says(db.aggregator("plain", Count).open(), &["`plain`", "no merge rule", "count/1"]);
    for _ in 0..2 {
        assert_says(db.table("hits").open(), &["`hits`", "count/1", "Database::aggregator"]);
        db.aggregator("hits", Count).open().unwrap();
    }
    assert_says(db.table("texts").open(), &["`texts`", "suffix/1", "merge_rule"]);
    db.table("texts").merge_rule(Suffix).open().unwrap();
    db.table("texts").open().unwrap();
}

#[test]
fn a_table_without_a_rule_refuses_operands() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let plain = db.table("plain").open().unwrap();
    assert_says(plain.merge(b"k", b"v"), &["`plain`", "no merge rule"]);
    let mut batch = Batch::new();
    batch.put(&plain, b"other", b"v");
    batch.merge(&plain, b"k", b"v");
    assert_says(db.commit(batch, Durability::Os), &["no merge rule"]);
    assert_eq!((plain.get(b"k").unwrap(), plain.get(b"other").unwrap()), (None, None));
}

/// What the log holds of a table whose rule nobody has brought stays there: writers who would have to wait for it are
/// told which table to open, and nothing is lost.
#[test]
fn tables_whose_rule_is_not_known_yet_wait_for_it() {
    let env = Env::memory(1);
    let fill = |add: &mut dyn FnMut(u32) -> Result<()>| (0..).find_map(|number| add(number).err()).unwrap();
    {
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits = db.aggregator("hits", Own).open().unwrap();
        let texts = db.table("texts").merge_rule(Suffix).open().unwrap();
        db.table("plain").open().unwrap().put(b"before", b"value").unwrap();
        (0..400u32).for_each(|number| hits.add((number % 7).to_le_bytes(), ()).unwrap());
        db.flush().unwrap();
        hits.add(b"last", ()).unwrap();
        texts.merge(b"text", b"one ").unwrap();
        texts.merge(b"text", b"two").unwrap();
        drop((hits, texts));
        db.close().unwrap();
    }
    let db = Database::open(DIR, options(&env)).unwrap();
    let plain = db.table("plain").open().unwrap();
    // Gets and scans of other tables go on, and so do writes as long as there is room.
    assert_eq!(plain.get(b"before").unwrap().as_deref(), Some(&b"value"[..]));
    let error = fill(&mut |number| plain.put(number.to_le_bytes(), [7; 50]));
    assert_says(Err::<(), _>(error), &["`hits`", "own_count/1", "Database::aggregator"]);
    assert_says(db.flush(), &["`hits`", "own_count/1"]);
    env.jobs.step_some(100);
    let hits = db.aggregator("hits", Own).open().unwrap();
    assert_says(db.flush(), &["`texts`", "suffix/1", "merge_rule"]);
    assert_eq!(hits.get(b"last").unwrap(), Some(1));
    let texts = db.table("texts").merge_rule(Suffix).open().unwrap();
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(texts.get(b"text").unwrap().as_deref(), Some(&b"one two"[..]));
    let counts: Vec<u64> = (0..7u32).map(|key| hits.get(key.to_le_bytes()).unwrap().unwrap()).collect();
    assert_eq!(counts, [58, 57, 57, 57, 57, 57, 57]);
    assert!(plain.iter().unwrap().count() > 10);
}

/// Where the log has no more of such a table than ranges that were deleted, the flush went on without its rule, and told
/// writers of a fault of Forebay.
#[test]
fn ranges_of_a_table_whose_rule_is_not_known_wait_for_it() {
    let env = Env::memory(1);
    let texts_of = |db: &Database| {
        db.table("texts")
            .layout(Layout::wb_tree_ordered())
            .node_bytes(8 << 10)
            .merge_rule(Suffix)
            .open_ordered()
            .unwrap()
    };
    {
        let db = Database::open(DIR, options(&env)).unwrap();
        let texts = texts_of(&db);
        [b"a", b"b", b"c"].iter().for_each(|key| texts.merge(key, b"one").unwrap());
        db.flush().unwrap();
        texts.delete_range("a".."c").unwrap();
        drop(texts);
        db.close().unwrap();
    }
    let db = Database::open(DIR, options(&env)).unwrap();
    assert_says(db.flush(), &["`texts`", "suffix/1", "merge_rule"]);
    let texts = texts_of(&db);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let keys: Vec<_> = texts.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [b"c"]);
}

#[test]
fn bringing_entries_in_asks_for_the_rule_first() {
    let env = Env::memory(1);
    {
        let db = Database::open(DIR, options(&env)).unwrap();
        db.table("texts")
            .layout(Layout::leveling(4))
            .node_bytes(8 << 10)
            .merge_rule(Suffix)
            .open_ordered()
            .unwrap();
        db.close().unwrap();
    }
    let db = Database::open(DIR, options(&env)).unwrap();
    let texts = db.snapshot().ordered_table("texts").unwrap();
    let entries = [Ok((b"key".to_vec(), b"value".to_vec()))];
    assert_says(texts.ingest(entries.into_iter()), &["`texts`", "suffix/1", "merge_rule"]);
}

#[test]
fn dropping_a_table_that_is_waited_for_ends_the_wait() {
    let env = Env::memory(1);
    {
        let db = Database::open(DIR, options(&env)).unwrap();
        db.aggregator("hits", Own).open().unwrap().add(b"key", ()).unwrap();
        db.close().unwrap();
    }
    let db = Database::open(DIR, options(&env)).unwrap();
    let plain = db.table("plain").open().unwrap();
    plain.put(b"key", b"value").unwrap();
    assert_says(db.flush(), &["`hits`"]);
    db.drop_table("hits").unwrap();
    db.flush().unwrap();
    assert_eq!(plain.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A program that forgets to open an aggregator of the crate's own functions goes on all the same.
#[test]
fn built_in_functions_come_with_the_database() {
    let env = Env::memory(1);
    let spread = || Composite::parse("count,avg:v,list:v", &["v"]).unwrap();
    {
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits = db.aggregator("hits", Count).open().unwrap();
        let spreads = db.aggregator("spreads", spread()).open().unwrap();
        db.table("plain").open().unwrap();
        for number in 0..400u32 {
            hits.add((number % 7).to_le_bytes(), ()).unwrap();
            spreads.add(b"all", &[Value::from(i64::from(number % 3))]).unwrap();
        }
        db.close().unwrap();
    }
    let db = Database::open(DIR, options(&env)).unwrap();
    let plain = db.table("plain").open().unwrap();
    (0..2000u32).for_each(|number| plain.put(number.to_le_bytes(), [7; 50]).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    db.snapshot().table("hits").unwrap().compact().unwrap();
    let type_of = |table: &str| db.snapshot().state_type(table).unwrap().unwrap();
    assert_eq!((&type_of("hits")[..], db.snapshot().state_type("plain").unwrap()), ("count/1", None));
    let found = BuiltIn::of(&type_of("spreads")).unwrap();
    let state = db.snapshot().table("spreads").unwrap().get(b"all").unwrap().unwrap();
    assert_eq!(found.finish(&state).unwrap(), spread().finish(&state).unwrap());
    let hits = db.aggregator("hits", Count).open().unwrap();
    assert_eq!(hits.iter().unwrap().map(|entry| entry.unwrap().1).sum::<u64>(), 400);
}

/// Offset and counts are one: whatever a crash leaves, each record up to the offset was counted once.
#[test]
fn metadata_after_a_crash_are_those_of_what_was_counted() {
    for seed in 0..40 {
        let fs = CrashFs::new(seed);
        let mut rng = Rng::new(seed);
        let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, seed);
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits = db.aggregator("hits", Count).open().unwrap();
        assert_eq!(hits.metadata().unwrap(), None);
        let durabilities = [Durability::Memory, Durability::Os, Durability::Disk];
        fs.crash_at(fs.operations() + 1 + rng.below(300));
        let (mut read, mut kept) = (0u64, 0);
        loop {
            let mut batch = Batch::new();
            for _ in 0..1 + rng.below(30) {
                batch.add(&hits, (read % 10).to_le_bytes(), ());
                read += 1;
            }
            let durability = durabilities[rng.index(3)];
            if hits.commit(batch, durability, read.to_le_bytes()).is_err() {
                break;
            }
            if durability == Durability::Disk {
                kept = read;
            }
            env.jobs.step_some(rng.index(10));
        }
        let left = fs.power_cycle();
        env.jobs.abandon();
        drop((hits, db));
        let env = Env::simulated(left as Arc<dyn FileSystem>, seed);
        let db = Database::open(DIR, options(&env)).unwrap();
        let hits = db.aggregator("hits", Count).open().unwrap();
        let offset =
            hits.metadata().unwrap().map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        assert!(offset >= kept, "disk {seed}: {offset} of {kept}");
        let counted: u64 = hits.iter().unwrap().map(|entry| entry.unwrap().1).sum();
        assert_eq!(counted, offset, "disk {seed}");
        assert_eq!(db.tables().len(), 1, "metadata are in no table that users see");
        assert_eq!(db.stats().tables.len(), 1);
    }
}
