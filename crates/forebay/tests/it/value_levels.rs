//! Levels of tables that keep long values apart: what is overwritten goes down and is gone.

use std::time::Duration;

use forebay::{Batch, Database, Durability, Options};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, Rng};

const LONG: usize = 1000;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let mut value = vec![0; LONG];
    rng.fill(&mut value);
    value
}

fn rest(env: &Env, db: &Database) {
    for _ in 0..6 {
        env.jobs.advance(Duration::from_secs(2));
        env.jobs.step_some(4000);
        db.wait_until_idle().unwrap();
    }
}

/// What all files take.
fn disk_bytes(fs: &MemoryFs) -> u64 {
    let files = fs.snapshot_files().into_iter();
    let of_tables = files.filter(|(path, _)| {
        path.extension().is_some_and(|end| end == "list" || end == "tree" || end == "values")
    });
    of_tables.map(|(_, bytes)| bytes.len() as u64).sum()
}

/// The last level's own values stayed: pointers are short, so the level above might have more of them than the last one
/// had records, and never went down.
#[test]
fn space_follows_what_lives_once_all_was_put_anew() {
    const KEYS: u64 = 2000;
    for layout in ["leveling", "jungle", "geometric:r=3"] {
        let fs = MemoryFs::new();
        let (env, mut rng) = (Env { fs: fs.clone(), ..Env::memory(1) }, Rng::new(1));
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(layout.parse().unwrap()).node_bytes(64 << 10).values_apart(100);
        let table = table.open_ordered().unwrap();
        let sorted: Vec<_> = (0..KEYS).map(|key| (key.to_be_bytes().to_vec(), value(&mut rng))).collect();
        table.ingest(sorted.into_iter().map(Ok)).unwrap();
        let live_bytes = KEYS * (8 + LONG as u64);
        for round in 0..3 {
            for from in (0..KEYS).step_by(10) {
                let mut batch = Batch::new();
                (from..from + 10).for_each(|key| batch.put(&table, key.to_be_bytes(), &value(&mut rng)));
                db.commit(batch, Durability::Os).unwrap();
            }
            rest(&env, &db);
            let bytes = disk_bytes(&fs);
            assert!(bytes < live_bytes * 9 / 4, "{layout}, {round}: {bytes} for {live_bytes}");
        }
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, [""; 0]);
    }
}
