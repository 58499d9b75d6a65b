//! Compactions that write anew what is merged already.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use forebay::{Codec, Database, Layout, Options, Rewrite, Table};
use forebay_env::{Access, Env, Rng};
use forebay_testkit::ordered_layouts;

const KEYS: u32 = 2000;

fn open(env: &Env, layout: Layout, codec: Codec) -> (Database, Table) {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    let db = Database::open("/db", options).unwrap();
    let builder = db.table("t").layout(layout).codec(codec).node_bytes(8 << 10).fan_out(4);
    let table = builder.open().unwrap();
    (db, table)
}

/// Lists and trees, once what nobody needs is removed.
fn files(env: &Env) -> BTreeSet<String> {
    for _ in 0..20 {
        env.jobs.advance(Duration::from_millis(200));
        env.jobs.step_some(2000);
    }
    let names = env.fs.list(Path::new("/db")).unwrap().into_iter();
    names.filter(|name| name.ends_with(".list") || name.ends_with(".tree")).collect()
}

fn value(n: u32, round: u32) -> Vec<u8> {
    format!("{n} of round {round}").repeat(3).into_bytes()
}

fn fill(table: &Table, rng: &mut Rng, model: &mut BTreeMap<[u8; 4], Vec<u8>>, round: u32) {
    for n in (0..KEYS).filter(|_| round == 0 || rng.chance(20)) {
        table.put(n.to_be_bytes(), value(n, round)).unwrap();
        model.insert(n.to_be_bytes(), value(n, round));
    }
}

fn check(table: &Table, model: &BTreeMap<[u8; 4], Vec<u8>>) {
    for (key, value) in model {
        assert_eq!(table.get(key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(table.count().unwrap(), model.len() as u64);
}

/// Of what was there nothing is left in files, whatever the layout, but what a snapshot holds; and all records are
/// there. What is merged already, a compaction leaves.
#[test]
fn all_files_are_others() {
    let (mut kept, layouts) = (0, ordered_layouts());
    for (seed, layout) in layouts.iter().copied().chain([Layout::wb_tree()]).enumerate() {
        let env = Env::memory(seed as u64);
        let (db, table) = open(&env, layout, Codec::None);
        let (mut rng, mut model) = (Rng::new(seed as u64), BTreeMap::new());
        for round in 0..3 {
            fill(&table, &mut rng, &mut model, round);
            db.flush().unwrap();
        }
        table.compact().unwrap();
        let before = files(&env);
        table.rewrite(Rewrite::OlderKeys).unwrap();
        kept += usize::from(!before.is_empty() && files(&env) == before);
        let (snapshot, first) = (db.snapshot(), model.clone());
        db.table("t").codec(Codec::Lz4).alter().unwrap();
        fill(&table, &mut rng, &mut model, 3);
        table.rewrite(Rewrite::All).unwrap();
        let held = files(&env);
        assert!(held.is_superset(&before), "{layout}: a snapshot holds {before:?} of {held:?}");
        for (key, value) in &first {
            assert_eq!(snapshot.get(&table, key).unwrap().as_ref(), Some(value), "{layout}");
        }
        drop(snapshot);
        let after = files(&env);
        assert!(after.is_disjoint(&before), "{layout}: {before:?}, {after:?}: {}", db.describe());
        check(&table, &model);
        drop(table);
        db.close().unwrap();
        let (db, table) = open(&env, layout, Codec::Lz4);
        check(&table, &model);
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
    }
    assert!(kept > layouts.len() / 2, "what is by the newest key is left alone: {kept}");
}

/// A damaged list that has something to be merged with ended it, and all others stayed as they were.
#[test]
fn damage_to_one_list_keeps_no_other_from_it() {
    let env = Env::memory(200);
    let (db, table) = open(&env, Layout::wb_tree_ordered(), Codec::None);
    let (mut rng, mut model) = (Rng::new(200), BTreeMap::new());
    fill(&table, &mut rng, &mut model, 0);
    table.compact().unwrap();
    let damaged = files(&env).pop_first().unwrap();
    drop(table);
    db.close().unwrap();
    let file = env.fs.open(&Path::new("/db").join(&damaged), Access::Buffered).unwrap();
    let mut byte = [0];
    file.read_at(40, &mut byte).unwrap();
    file.write_at(40, &[!byte[0]]).unwrap();
    drop(file);
    let (_db, table) = open(&env, Layout::wb_tree_ordered(), Codec::None);
    let before = files(&env);
    assert!(before.len() > 3 && before.contains(&damaged), "{before:?}");
    let lost = model.keys().find(|key| table.get(key).is_err()).unwrap();
    table.put(lost, "again").unwrap();
    assert!(table.rewrite(Rewrite::All).unwrap_err().is_corruption());
    let left: Vec<String> = files(&env).intersection(&before).cloned().collect();
    assert_eq!(left, [damaged]);
    for (key, value) in model.iter().filter(|(key, _)| *key != lost) {
        match table.get(key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value)),
            Err(error) => assert!(error.is_corruption(), "{error}"),
        }
    }
}

/// It ends while others write, and beside other compactions of the table.
#[test]
fn it_ends_while_the_table_grows() {
    for (seed, layout) in ordered_layouts().into_iter().enumerate() {
        let env = Env::memory(100 + seed as u64);
        let (db, table) = open(&env, layout, Codec::None);
        let (mut rng, mut model) = (Rng::new(seed as u64), BTreeMap::new());
        for round in 0..4 {
            fill(&table, &mut rng, &mut model, round);
            table.rewrite(if round == 2 { Rewrite::OlderKeys } else { Rewrite::All }).unwrap();
        }
        check(&table, &model);
        drop(table);
        db.close().unwrap();
    }
}
