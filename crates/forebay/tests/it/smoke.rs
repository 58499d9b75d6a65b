//! One walk through everything, in memory.

use forebay::{Batch, Database, Durability, Layout, Options};
use forebay_env::Env;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

#[test]
fn records_survive_spills_splits_and_reopening() {
    let env = Env::memory(1);
    for ordered in [false, true] {
        let layout = if ordered { Layout::wb_tree_ordered() } else { Layout::wb_tree() };
        let dir = format!("/db-{ordered}");
        let key = |i: u32| format!("key{:05}", i * 7919 % 20_000).into_bytes();
        {
            let db = Database::open(&dir, options(&env)).unwrap();
            let table = db.table("t").layout(layout).node_bytes(32 << 10).fan_out(4).open().unwrap();
            let mut batch = Batch::new();
            for i in 0..20_000u32 {
                batch.put(&table, key(i), i.to_le_bytes());
                if batch.len() == 100 {
                    db.write(&mut batch, Durability::Os).unwrap();
                }
            }
            for i in (0..20_000).step_by(3) {
                table.delete(key(i)).unwrap();
            }
            println!("{}", db.stats());
            db.close().unwrap();
        }
        let db = Database::open(&dir, options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        for i in 0..20_000u32 {
            let expected = (i % 3 != 0).then(|| i.to_le_bytes().to_vec());
            assert_eq!(table.get(key(i)).unwrap(), expected, "{i}");
        }
        assert_eq!(table.iter().unwrap().flatten().count(), 20_000 - 6667);
        let report = db.verify(&mut |_, _| ()).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        table.compact().unwrap();
        println!("{}", db.describe());
        assert_eq!(db.stats().list_records, 20_000 - 6667);
        if ordered {
            let table = db.table("t").open_ordered().unwrap();
            let forward: Vec<_> = table.prefix(b"key001").unwrap().map(|entry| entry.unwrap()).collect();
            let mut backward: Vec<_> =
                table.prefix(b"key001").unwrap().rev().map(|entry| entry.unwrap()).collect();
            backward.reverse();
            assert!(forward.is_sorted() && forward.len() > 50, "{}", forward.len());
            assert_eq!(forward, backward);
        }
        db.checkpoint(format!("/copy-{ordered}")).unwrap();
        let copy = Database::open(format!("/copy-{ordered}"), options(&env).read_only(true)).unwrap();
        assert_eq!(copy.table("t").open().unwrap().iter().unwrap().count(), 20_000 - 6667);
    }
}
