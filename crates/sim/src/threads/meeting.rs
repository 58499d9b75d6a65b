//! Transactions of several threads that meet at few keys, in two tables of their own.
//!
//! **Invariant:** what is recorded is all that was written to those tables.

use std::ops::Bound;

use forebay::{Database, Error, Layout, OrderedTable, Result, Table};
use forebay_env::Rng;
use forebay_env::sync::Mutex;
use forebay_testkit::{Did, Done, Serial, ordered_layouts};

use super::World;

/// Threads that do nothing else.
pub(super) const MEETING: usize = 2;
/// Keys that they meet at.
const KEYS: u64 = 10;
const HASHED: usize = 0;
const ORDERED: usize = 1;

pub(super) struct Meeting {
    hashed: Table,
    ordered: OrderedTable,
    done: Mutex<Vec<Done>>,
    kept: Mutex<Vec<u64>>,
    rollbacks: Mutex<Vec<(u64, u64)>>,
}

impl Meeting {
    pub(super) fn open(db: &Database, rng: &mut Rng) -> Result<Self> {
        let layout = draw_layout(rng);
        Ok(Self {
            hashed: db.table("meeting-hashed").open()?,
            ordered: db.table("meeting-ordered").layout(layout).open_ordered()?,
            done: Mutex::new(Vec::new()),
            kept: Mutex::new(Vec::new()),
            rollbacks: Mutex::new(Vec::new()),
        })
    }

    /// All was kept, up to this number, while nobody else did anything.
    pub(super) fn note_kept(&self, number: u64) {
        self.kept.lock().push(number);
    }

    /// All went back to that, and took this number.
    pub(super) fn note_rollback(&self, number: u64) {
        let kept = self.kept.lock().last().copied().expect("there is what was gone back to");
        self.rollbacks.lock().push((number, kept));
    }

    fn table(&self, table: usize) -> &Table {
        if table == HASHED { &self.hashed } else { &self.ordered }
    }

    /// Transactions, and now and then another layout for a table that they meet at.
    pub(super) fn run(&self, world: &World, rng: &mut Rng) -> u64 {
        let mut count = 0;
        while !world.is_over() {
            let _others = world.quiet.read();
            match rng.below(200) {
                0 => self.turn(rng).expect("another layout"),
                _ => self.transact(&world.db, rng),
            }
            count += 1;
        }
        count
    }

    fn turn(&self, rng: &mut Rng) -> Result<()> {
        let outcome = match rng.chance(50) {
            true => self.ordered.set_layout(draw_layout(rng)),
            false if self.hashed.layout()?.is_ordered() => self.hashed.set_layout(Layout::wb_tree()),
            false => self.hashed.set_layout(draw_layout(rng)),
        };
        match outcome {
            // Another thread does the same.
            Err(Error::Invalid(reason)) if is_being_sorted(&reason) || reason.contains("try again") => Ok(()),
            outcome => outcome,
        }
    }

    fn transact(&self, db: &Database, rng: &mut Rng) {
        let begun = db.last_sequence();
        let mut transaction = db.begin();
        let mut acts = Vec::new();
        for _ in 0..=rng.below(5) {
            let (table, key) = (rng.index(2), key(rng));
            acts.push(match rng.below(10) {
                0..4 => {
                    let found = transaction.get(self.table(table), &key).expect("reading");
                    Did::Get(table, key, found)
                }
                4 => {
                    let bounds = (Bound::Included(key), Bound::Unbounded);
                    let low = bounds.0.as_ref().map(|key| &key[..]);
                    let walk = transaction.range(&self.ordered, (low, Bound::Unbounded)).expect("walking");
                    let found = walk.collect::<Result<_>>().expect("walking");
                    Did::Walk(ORDERED, bounds, found)
                }
                5..8 => {
                    let mut value = rng.next_u64().to_le_bytes().to_vec();
                    value.resize(8 + rng.index(80), 1);
                    transaction.put(self.table(table), &key, &value);
                    Did::Put(table, key, Some(value))
                }
                8 => {
                    transaction.delete(self.table(table), &key);
                    Did::Put(table, key, None)
                }
                _ => {
                    transaction.delete_prefix(&self.ordered, &key);
                    Did::Cut(ORDERED, (Bound::Included(key.clone()), Bound::Included(key)))
                }
            });
            if rng.chance(20) {
                std::thread::yield_now();
            }
        }
        let is_numbered = !transaction.is_empty();
        match transaction.commit() {
            Ok(number) => {
                let ended = if is_numbered { number } else { db.last_sequence() };
                self.done.lock().push(Done { begun, ended, is_numbered, acts });
            }
            Err(Error::Conflict(_)) => {}
            // And a range of that should be deleted.
            Err(Error::Invalid(reason)) if is_being_sorted(&reason) => {}
            Err(error) => panic!("a transaction: {error}"),
        }
    }

    /// Those that were committed could have come one after the other, and left what there is.
    pub(super) fn check(&self) {
        let mut serial = Serial::default();
        serial.check(&self.done.lock(), &self.kept.lock(), &self.rollbacks.lock());
        for table in [HASHED, ORDERED] {
            let found = self.table(table).iter().and_then(Iterator::collect).expect("scanning");
            assert!(
                serial.table(table) == found,
                "where transactions met, table {table} is not what they left"
            );
        }
    }
}

/// One of which savepoints can be taken.
fn draw_layout(rng: &mut Rng) -> Layout {
    let mut layouts = ordered_layouts();
    layouts.retain(|layout| !layout.keeps_in_memory());
    layouts[rng.index(layouts.len())]
}

fn is_being_sorted(reason: &str) -> bool {
    reason.contains("sorted into another")
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("key {}", rng.below(KEYS)).into_bytes()
}
