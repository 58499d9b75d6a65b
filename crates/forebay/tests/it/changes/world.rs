//! A database of one table of every kind, on a disk that may lose power, beside a list of all that was committed to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay::aggregate::Aggregate;
use forebay::aggregate::functions::Count;
use forebay::{
    Aggregator, Batch, Change, ChangeBatch, Database, Durability, Error, Layout, Operation, Options,
    OrderedTable, Result, Table,
};
use forebay_env::fs::{CrashFs, TracedFs};
use forebay_env::{Env, Rng};
use forebay_testkit::Suffix;

pub(super) const DIR: &str = "/db";
/// Those whose ranges can be deleted: a tree, and two organisations of runs.
const ORDERED: [(&str, &str); 3] =
    [("tree", "wb-tree:ordered"), ("level", "leveling:t=3"), ("range", "range-merge")];
const HOUR: Duration = Duration::from_secs(3600);

struct Tables {
    hashed: Table,
    texts: Table,
    brief: Table,
    /// Is dropped and made anew now and then.
    spare: Table,
    ordered: Vec<OrderedTable>,
    hits: Aggregator<Count>,
}

pub(super) struct World {
    pub(super) fs: Arc<CrashFs>,
    pub(super) traced: Arc<TracedFs>,
    pub(super) env: Env,
    pub(super) rng: Rng,
    /// Bytes of log to keep.
    pub(super) keep: u64,
    /// Whether there are tables that keep the log for themselves, and batches that are longer than a buffer.
    pub(super) is_plain: bool,
    /// All that was committed.
    pub(super) model: Vec<ChangeBatch>,
    open: Option<(Tables, Database)>,
}

impl Tables {
    fn open(db: &Database) -> Result<Self> {
        let ordered = |(name, layout): (&str, &str)| {
            db.table(name).layout(layout.parse()?).node_bytes(8 << 10).open_ordered()
        };
        Ok(Self {
            hashed: db.table("hashed").open()?,
            texts: db.table("texts").merge_rule(Suffix).open()?,
            brief: db.table("brief").layout(Layout::tiering(3)).time_to_live(HOUR).open()?,
            spare: db.table("spare").open()?,
            ordered: ORDERED.into_iter().map(ordered).collect::<Result<_>>()?,
            hits: db.aggregator("hits", Count).open()?,
        })
    }
}

impl World {
    pub(super) fn new(seed: u64, keep: u64, is_plain: bool) -> Self {
        let fs = CrashFs::new(seed);
        let traced = TracedFs::new(fs.clone());
        let env = Env::simulated(traced.clone(), seed);
        let (rng, model) = (Rng::new(seed), Vec::new());
        let mut world = Self { fs, traced, env, rng, keep, is_plain, model, open: None };
        world.open().unwrap();
        world
    }

    pub(super) fn options(&self) -> Options {
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10);
        options.keep_changes(self.keep).env(self.env.clone())
    }

    pub(super) fn open(&mut self) -> Result<()> {
        let db = Database::open(DIR, self.options())?;
        if db.tables().iter().all(|(name, _)| name != "spare") {
            // It was being dropped when the power went.
            forget_spare(&mut self.model);
        }
        self.open = Some((Tables::open(&db)?, db));
        Ok(())
    }

    pub(super) fn db(&self) -> &Database {
        &self.open.as_ref().unwrap().1
    }

    pub(super) fn close(&mut self) {
        let (tables, db) = self.open.take().unwrap();
        drop(tables);
        db.close().unwrap();
    }

    pub(super) fn reopen(&mut self) {
        self.close();
        self.open().unwrap();
    }

    /// Loses power. What was durable must be there, and whole batches only.
    pub(super) fn crash(&mut self) {
        let durable = self.db().durable_sequence();
        self.fs = self.fs.power_cycle();
        self.env.jobs.abandon();
        self.open = None;
        self.traced = TracedFs::new(self.fs.clone());
        self.env = Env::simulated(self.traced.clone(), self.rng.next_u64());
        self.open().unwrap();
        let last = self.db().last_sequence();
        assert!(last >= durable, "recovered to {last}; {durable} was durable");
        self.model.retain(|batch| batch.last_sequence <= last);
        assert_eq!(self.model.last().map_or(0, |batch| batch.last_sequence), last);
    }

    pub(super) fn drop_spare(&mut self) -> Result<()> {
        let (tables, db) = self.open.as_mut().unwrap();
        db.drop_table("spare")?;
        forget_spare(&mut self.model);
        tables.spare = db.table("spare").open()?;
        Ok(())
    }

    /// Commits a batch of a few operations of all kinds.
    pub(super) fn commit(&mut self) -> Result<()> {
        let Self { rng, open, env, is_plain, model, .. } = self;
        let (tables, db) = open.as_ref().unwrap();
        let before = db.last_sequence();
        let (mut batch, mut changes) = (Batch::new(), Vec::new());
        for _ in 0..1 + rng.below(6) {
            let (name, operation) = draw(rng, env, tables, &mut batch, *is_plain);
            let sequence = before + batch.len() as u64;
            changes.push(Change { sequence, table: name.into(), operation });
        }
        let durability = [Durability::Memory, Durability::Os, Durability::Disk][rng.index(3)];
        let outcome = match rng.chance(10) {
            // Brings a record that nobody sees.
            true => tables.hits.commit(batch, durability, b"metadata"),
            false => db.commit(batch, durability),
        };
        // A write that failed may have reached the log.
        let last_sequence = db.last_sequence();
        if last_sequence > before {
            model.push(ChangeBatch { last_sequence, changes });
        }
        assert_eq!(outcome?, last_sequence);
        Ok(())
    }

    pub(super) fn commit_some(&mut self, batches: usize) {
        (0..batches).for_each(|_| self.commit().unwrap());
    }

    /// What the model has after a number.
    pub(super) fn after(&self, since: u64) -> &[ChangeBatch] {
        &self.model[self.model.partition_point(|batch| batch.last_sequence <= since)..]
    }

    /// Compares the feed with the model from everywhere, what is gone included. Tells how many batches are gone.
    pub(super) fn check(&self) -> usize {
        let all = self.feed(0).unwrap();
        let gone = self.model.len() - all.len();
        assert_same(&all, &self.model[gone..]);
        let ends: Vec<u64> = self.model.iter().map(|batch| batch.last_sequence).collect();
        let oldest = gone.checked_sub(1).map_or(1, |before| ends[before] + 1);
        // From each of them where there are few, else from some of them.
        for (number, &since) in ends.iter().enumerate().step_by(1 + ends.len() / 25) {
            match self.feed(since) {
                Ok(batches) => {
                    assert!(number + 1 >= gone);
                    assert_same(&batches, &self.model[number + 1..]);
                    // Nobody asks for part of a batch: who does gets all of it.
                    if self.model[number].changes.len() > 1 && since > oldest {
                        assert_same(&self.feed(since - 1).unwrap(), &self.model[number..]);
                    }
                }
                Err(error) => {
                    assert!(number + 1 < gone, "since {since}: {error}");
                    assert!(
                        matches!(error, Error::ChangesGone { since: asked, oldest: said, rolled_back: None } if (asked, said) == (since, oldest)),
                        "{error}"
                    );
                }
            }
        }
        gone
    }

    pub(super) fn feed(&self, since: u64) -> Result<Vec<ChangeBatch>> {
        self.db().changes(since)?.collect()
    }

    /// The log's files and their lengths.
    pub(super) fn log_files(&self) -> BTreeMap<String, usize> {
        let files = self.fs.snapshot_files().into_iter();
        let named = files.map(|(path, bytes)| (path.to_string_lossy().into_owned(), bytes.len()));
        named.filter(|(name, _)| name.starts_with("/db/") && name.ends_with(".log")).collect()
    }
}

fn forget_spare(model: &mut [ChangeBatch]) {
    model.iter_mut().for_each(|batch| batch.changes.retain(|change| &*change.table != "spare"));
}

/// Says where two feeds differ, and not all that they have.
#[track_caller]
pub(super) fn assert_same(left: &[ChangeBatch], right: &[ChangeBatch]) {
    left.iter().zip(right).for_each(|(left, right)| assert_eq!(left, right));
    assert_eq!(left.len(), right.len());
}

fn draw(
    rng: &mut Rng,
    env: &Env,
    tables: &Tables,
    batch: &mut Batch,
    is_plain: bool,
) -> (&'static str, Operation) {
    let key = format!("key{}", rng.below(60)).into_bytes();
    let longest = if !is_plain && rng.chance(3) { 9000 } else { 60 };
    let mut value = vec![0; rng.below(longest) as usize];
    rng.fill(&mut value);
    let put = |key, value| Operation::Put { key, value, expiry_milliseconds: None };
    match rng.below(9) {
        0 => {
            batch.put(&tables.hashed, &key, &value);
            ("hashed", put(key, value))
        }
        1 => {
            batch.delete(&tables.hashed, &key);
            ("hashed", Operation::Delete { key })
        }
        2 => {
            batch.merge(&tables.texts, &key, &value);
            ("texts", Operation::Merge { key, operand: value, expiry_milliseconds: None })
        }
        3 => {
            batch.put(&tables.texts, &key, &value);
            ("texts", put(key, value))
        }
        4 => {
            let life = [HOUR, Duration::from_millis(7), Duration::MAX][rng.index(3)];
            batch.put_with_ttl(&tables.brief, &key, &value, life);
            let expiry =
                (life != Duration::MAX).then(|| env.clock.unix_milliseconds() + life.as_millis() as u64);
            ("brief", Operation::Put { key, value, expiry_milliseconds: expiry })
        }
        5 => {
            batch.add(&tables.hits, &key, ());
            let mut state = Vec::new();
            Count.lift((), &mut state).unwrap();
            ("hits", Operation::Merge { key, operand: state, expiry_milliseconds: None })
        }
        6 => {
            batch.put(&tables.spare, &key, &value);
            ("spare", put(key, value))
        }
        kind => {
            let of = rng.index(if is_plain { 2 } else { 3 });
            let (table, (name, _)) = (&tables.ordered[of], ORDERED[of]);
            if kind == 7 {
                batch.put(table, &key, &value);
                return (name, put(key, value));
            }
            let end = [&key[..], b"x"].concat();
            if rng.chance(30) {
                batch.delete_range(table, &key[..]..);
                return (name, Operation::DeleteRange { low: key, high: None });
            }
            batch.delete_range(table, &key[..]..&end);
            (name, Operation::DeleteRange { low: key, high: Some(end) })
        }
    }
}
