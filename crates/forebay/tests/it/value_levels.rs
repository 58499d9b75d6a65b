//! Levels of tables that keep long values apart: what is overwritten goes down and is gone, and trees of pointers are
//! appended to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Options, OrderedTable};
use forebay_env::fs::{CrashFs, MemoryFs, TracedFs};
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
                (from..from + 10).for_each(|key| batch.put(&table, key.to_be_bytes(), value(&mut rng)));
                db.commit(batch, Durability::Os).unwrap();
            }
            rest(&env, &db);
            let bytes = disk_bytes(&fs);
            assert!(bytes < live_bytes * 9 / 4, "{layout}, {round}: {bytes} for {live_bytes}");
        }
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, [""; 0]);
    }
}

/// A table whose trees are long for its batches: T is so large that all is one level.
struct Growing {
    fs: Arc<CrashFs>,
    traced: Arc<TracedFs>,
    env: Env,
    db: Database,
    table: OrderedTable,
    /// Trees of which some version is durable.
    trees: BTreeSet<String>,
    appends: u64,
    /// Those of them that came with values which they moved.
    moving: u64,
}

impl Growing {
    const KEYS: u64 = 5_000;

    fn open(fs: Arc<CrashFs>, seed: u64) -> Self {
        let traced = TracedFs::new(fs.clone());
        traced.start_log(Path::new("/db"));
        let env = Env::simulated(traced.clone(), seed);
        let db = Database::open("/db", options(&env).write_buffer(8 << 10)).unwrap();
        let table = db.table("t").layout("jungle:c=1000,t=1000".parse().unwrap()).node_bytes(4 << 10);
        let table = table.values_apart(100).open_ordered().unwrap();
        Self { fs, traced, env, db, table, trees: BTreeSet::new(), appends: 0, moving: 0 }
    }

    /// The same after power was off.
    fn power_cycle(self, seed: u64) -> Self {
        let left = self.fs.power_cycle();
        self.env.jobs.abandon();
        let Self { trees, appends, moving, .. } = self;
        Self { trees, appends, moving, ..Self::open(left, seed) }
    }

    fn put(&mut self, keys: impl Iterator<Item = u64>, model: &mut BTreeMap<u64, Vec<u8>>, rng: &mut Rng) {
        for key in keys {
            let value = value(rng);
            self.table.put(key.to_be_bytes(), &value).unwrap();
            model.insert(key, value);
        }
        self.db.sync().unwrap();
        self.look();
    }

    /// A tree that is synced once more was appended to. Values that the append has moved are synced right before.
    fn look(&mut self) {
        let log = self.traced.take_log();
        let synced = log.iter().filter_map(|line| line.strip_prefix("sync ")).collect::<Vec<_>>();
        for (at, name) in synced.iter().enumerate().filter(|(_, name)| name.ends_with(".tree")) {
            if !self.trees.insert(name.to_string()) {
                self.appends += 1;
                self.moving += u64::from(at > 0 && synced[at - 1].ends_with(".values"));
            }
        }
    }

    fn check(&self, model: &BTreeMap<u64, Vec<u8>>) {
        let walked = self.table.iter().unwrap().map(|entry| entry.unwrap());
        let wanted = model.iter().map(|(key, value)| (key.to_be_bytes().to_vec(), value.clone()));
        assert!(walked.eq(wanted), "a scan has all of it");
        assert_eq!(self.db.verify(&mut |_, _| ()).unwrap().problems, [""; 0]);
    }
}

/// Batches are appended to trees of pointers; what they copy has its values moved from files that are emptied. Amid
/// that power fails.
#[test]
fn trees_of_pointers_are_appended_to() {
    for seed in 1..3 {
        println!("seed {seed}");
        let (mut rng, mut model) = (Rng::new(seed), BTreeMap::new());
        let mut table = Growing::open(CrashFs::new(seed), seed);
        table.put(0..Growing::KEYS, &mut model, &mut rng);
        rest(&table.env, &table.db);
        for round in 0..240 {
            let keys: Vec<u64> = (0..50).map(|_| rng.below(Growing::KEYS)).collect();
            table.put(keys.into_iter(), &mut model, &mut rng);
            table.env.jobs.advance(Duration::from_secs(1));
            table.look();
            if round % 60 == 50 {
                table.fs.crash_at(table.fs.operations() + 1 + rng.below(200));
                let _ = table.db.flush();
                (0..50).for_each(|_| table.env.jobs.step_some(50));
                table = table.power_cycle(seed);
                table.check(&model);
            }
        }
        let Growing { appends, moving, .. } = table;
        println!("{appends} appends, {moving} with values moved");
        assert!(appends > 100 && moving > 0, "{appends} appends, {moving} with values moved");
        rest(&table.env, &table.db);
        table.check(&model);
    }
}
