//! Code of users that a table asks: it panics, or asks something of the database. Whoever wanted its answer is told;
//! nobody else notices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use forebay::aggregate::{Aggregate, StateType};
use forebay::{Batch, Database, Durability, Error, Keep, Layout, MergeRule, Options, Result, Table};
use forebay_env::Env;
use forebay_env::sync::Mutex;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

/// Appends, and panics at one key while it is told to.
#[derive(Clone, Default)]
struct Fussy(Arc<AtomicBool>);

impl Fussy {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl MergeRule for Fussy {
    fn name(&self) -> &str {
        "fussy/1"
    }
    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        assert!(key != b"bad" || !self.0.load(Ordering::SeqCst), "no such key");
        out.extend_from_slice(older);
        out.extend_from_slice(newer);
    }
}

#[track_caller]
fn assert_panicked<T>(outcome: Result<T>) {
    let error = outcome.err().expect("an error");
    assert!(matches!(error, Error::Panicked(_)), "{error}");
    let said = error.to_string();
    let parts = ["merge rule `fussy/1` of table `t`", "bad", "no such key"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

/// Others' records were not found any more, and no error said so.
#[test]
fn a_rule_that_panics_at_one_key_leaves_the_others_as_they_are() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").merge_rule(Fussy::new()).open().unwrap();
    for value in [b"1", b"2", b"3"] {
        for key in [&b"bad"[..], b"good", b"other"] {
            table.merge(key, value).unwrap();
        }
        assert_eq!(table.get(b"good").unwrap().unwrap().last(), value.last());
    }
    for _ in 0..2 {
        assert_panicked(table.get(b"bad"));
        assert_eq!(table.get(b"good").unwrap().as_deref(), Some(&b"123"[..]));
        assert_panicked(table.multi_get(&[&b"good"[..], b"bad"]));
        assert_eq!(table.multi_get(&[b"good", b"none"]).unwrap(), [Some(b"123".to_vec()), None]);
        let all: Vec<_> = table.iter().unwrap().collect();
        assert!(all.iter().any(|entry| matches!(entry, Err(Error::Panicked(_)))));
    }
    let snapshot = db.snapshot();
    table.merge(b"other", b"4").unwrap();
    assert_eq!(snapshot.get(&table, b"other").unwrap().as_deref(), Some(&b"123"[..]));
}

/// The buffer cannot be flushed: whoever waits for that is told, and once the rule is mended all is there.
#[test]
fn a_rule_that_panics_in_the_background_stops_no_reader_and_is_named() {
    let env = Env::memory(2);
    let db = Database::open("/db", options(&env)).unwrap();
    let rule = Fussy::new();
    let table = db.table("t").merge_rule(rule.clone()).open().unwrap();
    let plain = db.table("plain").open().unwrap();
    (0..2).for_each(|_| table.merge(b"bad", b"1").unwrap());
    (0..2).for_each(|_| table.merge(b"good", b"1").unwrap());
    plain.put(b"k", b"v").unwrap();
    assert_panicked(db.flush());
    assert_eq!(table.get(b"good").unwrap().as_deref(), Some(&b"11"[..]));
    assert_eq!(plain.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    rule.0.store(false, Ordering::SeqCst);
    env.jobs.advance(std::time::Duration::from_secs(1));
    env.jobs.step_some(1000);
    db.flush().unwrap();
    assert_eq!(table.get(b"bad").unwrap().as_deref(), Some(&b"11"[..]));
}

/// What the guide says: a buffer in which two operands of the key meet is not flushed, so that once all are full each
/// write fails with the rule's error, also a delete of the key. Nothing that was written is lost, and all goes on when
/// the rule is mended, or its table dropped.
#[test]
fn operands_of_one_key_whose_rule_panics_stop_writes_once_buffers_are_full() {
    for is_mended in [true, false] {
        let env = Env::memory(20);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").merge_rule(Fussy::new()).open().unwrap();
        let plain = db.table("plain").open().unwrap();
        (0..2).for_each(|_| table.merge(b"bad", b"1").unwrap());
        let refused = (0..1000_u32).find(|number| {
            let outcome = plain.put(number.to_be_bytes(), [7; 200]);
            outcome.is_err() && {
                assert_panicked(outcome);
                true
            }
        });
        let refused = refused.expect("buffers become full");
        assert_panicked(table.delete(b"bad"));
        assert_panicked(table.compact());
        assert_panicked(plain.put(b"k", [7; 8 << 10]));
        assert_eq!(plain.get(0_u32.to_be_bytes()).unwrap(), Some(vec![7; 200]));
        assert_panicked(table.get(b"bad"));
        let (db, table, plain) = match is_mended {
            false => {
                db.drop_table("t").unwrap();
                (db, None, plain)
            }
            true => {
                drop((table, plain));
                db.close().unwrap();
                let db = Database::open("/db", options(&env)).unwrap();
                let table = db.table("t").merge_rule(Fussy::default()).open().unwrap();
                let plain = db.table("plain").open().unwrap();
                (db, Some(table), plain)
            }
        };
        (refused..refused + 1000).for_each(|number| plain.put(number.to_be_bytes(), [7; 200]).unwrap());
        db.flush().unwrap();
        assert_eq!(plain.iter().unwrap().count() as u32, refused + 1000);
        if let Some(table) = table {
            assert_eq!(table.get(b"bad").unwrap().as_deref(), Some(&b"11"[..]));
        }
    }
}

/// A merge that asks a filter that panics is set aside; other tables' merges go on, and the database stays open.
#[test]
fn a_filter_that_panics_is_named_by_compact_and_stops_no_other_table() {
    let env = Env::memory(3);
    let db = Database::open("/db", options(&env)).unwrap();
    let filter = |key: &[u8], _: &[u8]| {
        assert!(key != b"bad", "no such key");
        Keep::Keep
    };
    let layout = Layout::leveling(4);
    let table = db.table("t").layout(layout).compaction_filter(filter).open().unwrap();
    let other = db.table("other").layout(layout).open().unwrap();
    for value in [b"1", b"2"] {
        table.put(b"bad", value).unwrap();
        other.put(b"bad", value).unwrap();
        db.flush().unwrap();
    }
    let error = table.compact().unwrap_err();
    assert!(error.to_string().contains("the compaction filter of table `t` panicked"), "{error}");
    other.compact().unwrap();
    table.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    assert_eq!(table.get(b"bad").unwrap().as_deref(), Some(&b"2"[..]));
    db.close().unwrap();
}

/// Adds bytes; panics where the sum would be 13.
struct Superstitious;

impl Aggregate for Superstitious {
    type Input<'a> = u8;
    type Output = u8;

    fn state_type(&self) -> StateType {
        StateType::new("superstitious", 1)
    }
    fn state_bytes(&self) -> Option<usize> {
        Some(1)
    }
    fn lift(&self, value: u8, state: &mut Vec<u8>) -> Result<()> {
        state.push(value);
        Ok(())
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        let sum = states.iter().map(|state| state[0]).sum();
        assert_ne!(sum, 13);
        out.push(sum);
    }
    fn finish(&self, state: &[u8]) -> Result<u8> {
        Ok(state[0])
    }
}

/// A lookup that panicked midway counted some values twice from then on.
#[test]
fn a_function_that_panics_counts_nothing_twice() {
    let env = Env::memory(4);
    let db = Database::open("/db", options(&env)).unwrap();
    let sums = db.aggregator("sums", Superstitious).open().unwrap();
    sums.add(b"a", 1).unwrap();
    assert_eq!(sums.get(b"a").unwrap(), Some(1));
    for (key, value) in [(b"a", 2), (b"b", 6), (b"b", 7), (b"a", 4)] {
        sums.add(key, value).unwrap();
    }
    for _ in 0..3 {
        assert!(matches!(sums.get(b"b"), Err(Error::Panicked(_))));
        assert_eq!(sums.get(b"a").unwrap(), Some(7));
    }
    sums.add(b"b", 1).unwrap();
    sums.add(b"a", 1).unwrap();
    assert_eq!(sums.get(b"a").unwrap(), Some(8));
}

/// What an older buffer's records were merged to on the way took the newer one's panic with it: half an answer.
#[test]
fn a_lookup_that_panics_is_told_whatever_it_meets_then() {
    let env = Env::memory(9);
    let db = Database::open("/db", options(&env)).unwrap();
    let sums = db.aggregator("sums", Superstitious).open().unwrap();
    let table = db.table("t").merge_rule(Fussy::new()).open().unwrap();
    let filler = db.table("filler").open().unwrap();
    for round in 0..2u8 {
        for value in [6, 7] {
            table.merge(b"bad", [value]).unwrap();
            sums.add([round], value).unwrap();
        }
        if round == 0 {
            (0..38u8).for_each(|key| filler.put([key], [0; 100]).unwrap());
        }
    }
    for _ in 0..3 {
        assert_panicked(table.get(b"bad"));
        assert_panicked(table.multi_get(&[b"bad"]));
        let sum = sums.get([1]);
        assert!(matches!(sum, Err(Error::Panicked(_))), "{sum:?}");
    }
}

/// Writes to its own table while it merges.
struct Writes(Arc<OnceLock<Table>>);

impl MergeRule for Writes {
    fn name(&self) -> &str {
        "writes/1"
    }
    fn merge(&self, _: &[u8], newer: &[u8], _: &[u8], out: &mut Vec<u8>) {
        if let Some(table) = self.0.get() {
            let write = table.put(b"from the rule", b"1").unwrap_err();
            let read = table.get(b"k").unwrap_err();
            out.extend_from_slice(format!("{write}; {read}").as_bytes());
        }
        out.extend_from_slice(newer);
    }
}

/// It waited for a lock that its own thread held.
#[test]
fn a_rule_that_asks_something_of_its_database_gets_an_error() {
    let env = Env::memory(5);
    let db = Database::open("/db", options(&env)).unwrap();
    let own = Arc::new(OnceLock::new());
    let table = db.table("t").merge_rule(Writes(Arc::clone(&own))).open().unwrap();
    own.set(table.clone()).unwrap();
    table.merge(b"k", b"1").unwrap();
    table.merge(b"k", b"2").unwrap();
    let said = String::from_utf8(table.get(b"k").unwrap().unwrap()).unwrap();
    assert_eq!(said.matches("must not call a database").count(), 2, "{said}");
    db.flush().unwrap();
    own.get().into_iter().for_each(|table| assert!(table.get(b"from the rule").unwrap().is_none()));
}

/// What a function asks of its database.
type Question = fn(&Database) -> Result<()>;

/// Adds bytes, and asks something while it merges in place.
#[derive(Default)]
struct Asks {
    database: OnceLock<Weak<Database>>,
    question: Mutex<Option<Question>>,
    answer: Mutex<Option<Error>>,
}

/// Adds bytes, in place by a function of its own.
struct Adding<F>(&'static str, F);

impl<F: Fn(&mut u8, u8) + Send + Sync + 'static> Aggregate for Adding<F> {
    type Input<'a> = u8;
    type Output = u8;

    fn state_type(&self) -> StateType {
        StateType::new(self.0, 1)
    }
    fn state_bytes(&self) -> Option<usize> {
        Some(1)
    }
    fn lift(&self, value: u8, state: &mut Vec<u8>) -> Result<()> {
        state.push(value);
        Ok(())
    }
    fn merge(&self, states: &[&[u8]], out: &mut Vec<u8>) {
        out.push(states.iter().map(|state| state[0]).sum());
    }
    fn merge_in_place(&self, state: &mut [u8], other: &[u8]) {
        (self.1)(&mut state[0], other[0]);
    }
    fn finish(&self, state: &[u8]) -> Result<u8> {
        Ok(state[0])
    }
}

impl Asks {
    fn add(&self, state: &mut u8, other: u8) {
        let database = self.database.get().and_then(Weak::upgrade);
        let question = self.question.lock().take();
        if let (Some(database), Some(question)) = (database, question) {
            let answer = question(&database).err();
            *self.answer.lock() = answer;
        }
        *state += other;
    }
}

/// A function is asked under locks that others wait for, and that `stats` waited for itself.
#[test]
fn a_function_that_asks_anything_of_its_database_gets_an_error() {
    let questions: [(&str, Question); 14] = [
        // The first four have no error to give: the function is left as by a panic.
        ("stats", |db| Ok(db.stats()).map(|_| ())),
        ("savepoints", |db| Ok(db.savepoints()).map(|_| ())),
        ("last_sequence", |db| Ok(db.last_sequence()).map(|_| ())),
        ("durable_sequence", |db| Ok(db.durable_sequence()).map(|_| ())),
        ("verify", |db| db.verify(&mut |_, _| ()).map(drop)),
        ("changes", |db| db.changes(0).map(drop)),
        ("drop_table", |db| db.drop_table("other")),
        ("table", |db| db.table("new").open().map(drop)),
        ("savepoint", |db| db.savepoint("new").map(drop)),
        ("drop_savepoint", |db| db.drop_savepoint("kept")),
        ("open_savepoint", |db| db.open_savepoint("kept").map(drop)),
        ("rollback", |db| db.rollback("kept")),
        ("flush", |db| db.flush()),
        ("wait_until_idle", |db| db.wait_until_idle()),
    ];
    for (number, (name, question)) in questions.into_iter().enumerate() {
        let (env, has_error) = (Env::memory(7), number >= 4);
        let db = Arc::new(Database::open("/db", options(&env)).unwrap());
        let asks = Arc::new(Asks::default());
        let asking = Arc::clone(&asks);
        let adding = Adding("asking", move |state: &mut u8, other: u8| asking.add(state, other));
        let sums = db.aggregator("sums", adding).open().unwrap();
        db.table("other").open().unwrap();
        db.savepoint("kept").unwrap();
        sums.add(b"k", 1).unwrap();
        assert_eq!(sums.get(b"k").unwrap(), Some(1));
        sums.add(b"k", 2).unwrap();
        asks.database.set(Arc::downgrade(&db)).unwrap();
        *asks.question.lock() = Some(question);
        let got = sums.get(b"k");
        assert!(asks.question.lock().is_none(), "{name}");
        // Whoever looked the key up is told, too, unless it could be done in another way.
        let told = asks.answer.lock().take().or(got.as_ref().err().cloned());
        match told {
            Some(told) => {
                assert!(told.to_string().contains("must not call a database"), "{name}: {told}");
            }
            None => assert!(!has_error && got.as_ref().ok() == Some(&Some(3)), "{name}: {got:?}"),
        }
        assert_eq!(db.tables().len(), 2, "{name}");
        assert_eq!(db.savepoints().len(), 1, "{name}");
    }
}

/// Panics half way where the sum would be 13.
fn add_half_way(state: &mut u8, other: u8) {
    let sum = *state + other;
    *state = 0;
    assert_ne!(sum, 13);
    *state = sum;
}

/// The batch held what the function had left of the key's earlier values, and was committed.
#[test]
fn a_batch_in_which_a_function_panicked_is_not_committed() {
    let env = Env::memory(8);
    let db = Database::open("/db", options(&env)).unwrap();
    let sums = db.aggregator("sums", Adding("half_way", add_half_way)).open().unwrap();
    let mut batch = Batch::new();
    // Longer batches merge as they are filled.
    (0..20).for_each(|key| batch.add(&sums, [key], 1));
    batch.add(&sums, b"k", 6);
    assert!(catch_unwind(AssertUnwindSafe(|| batch.add(&sums, b"k", 7))).is_err());
    batch.add(&sums, b"k", 1);
    let error = db.write(&mut batch, Durability::Os).unwrap_err();
    assert!(matches!(error, Error::Panicked(_)), "{error}");
    batch.clear();
    batch.add(&sums, b"k", 6);
    batch.add(&sums, b"k", 1);
    db.write(&mut batch, Durability::Os).unwrap();
    assert_eq!(sums.get(b"k").unwrap(), Some(7));
}

/// After the database was opened again nobody could bring the rule of a table that only savepoints have.
#[test]
fn a_dropped_table_is_read_of_a_savepoint_with_the_rule_that_comes_along() {
    let env = Env::memory(6);
    let db = Database::open("/db", options(&env)).unwrap();
    let rule = Fussy::default();
    let table = db.table("t").merge_rule(rule.clone()).open().unwrap();
    let sums = db.aggregator("sums", Superstitious).open().unwrap();
    for value in [b"1", b"2"] {
        table.merge(b"k", value).unwrap();
        sums.add(b"k", 3).unwrap();
        db.flush().unwrap();
    }
    db.savepoint("kept").unwrap();
    drop((table, sums));
    db.drop_table("t").unwrap();
    db.drop_table("sums").unwrap();
    db.close().unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let kept = db.open_savepoint("kept").unwrap();
    let table = kept.table("t").unwrap();
    assert!(kept.get(&table, b"k").is_err());
    assert!(kept.table_merging("t", forebay_testkit::Suffix).is_err(), "that is another rule");
    let table = kept.table_merging("t", rule).unwrap();
    assert_eq!(kept.get(&table, b"k").unwrap().as_deref(), Some(&b"12"[..]));
    assert_eq!(kept.aggregator("sums", Superstitious).unwrap().get(b"k").unwrap(), Some(6));
}
