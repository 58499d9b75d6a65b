//! Operations, drawn from a seed. Each seed draws its own weights, some of them nothing (*swarm testing*):
//! what a uniform mix hides, a lopsided one shows.

mod changes;
mod groups;
mod lives;
mod pieces;
mod transactions;
mod wide;

use std::ops::Bound;

use forebay::Durability;
use forebay_env::Rng;

use crate::config::{ASIDE, draw_layout, draw_rate};
use crate::ops::{GROUPS, LIVES, PIECES, TRANSACTIONS, USUAL, WIDE};
use crate::tables::keeps_order;
use crate::{Config, Keys, Kind, Merging, Op, Query, ReadBeside, TABLES, Theme, Values, walk};

/// Where writes stay among neighbours: one of this many ranges of the keys.
const HOT_RANGES: u64 = 16;
/// For this many operations.
const OPS_PER_STRETCH: u64 = 40;
/// What is left of an operation's stamps tells its number.
const STAMP_BITS: u32 = 10;

/// Draws operations.
#[derive(Debug)]
pub struct Generator {
    rng: Rng,
    /// Walks have dice of their own, so that all else of a seed is as it was before there were any.
    walks: Rng,
    /// So have ranges that are deleted.
    cuts: Rng,
    /// Which tables have such.
    cut: [bool; TABLES],
    /// Which tables have deletes at all.
    deletes: [bool; TABLES],
    /// Of a hundred deletions this many.
    cut_percent: u32,
    /// And what only a wide draw has.
    wide: Rng,
    /// And what only groups have.
    groups: Rng,
    /// And transactions.
    transactions: Rng,
    /// And how long entries live.
    lives: Rng,
    /// And tables that are read in pieces.
    pieces: Rng,
    /// And compactions of ranges.
    ranges: Rng,
    /// Whether there are any.
    has_groups: bool,
    /// Of a hundred changes this many are to the table aside.
    share_percent: u32,
    /// Whether entries of the table aside may be put for a time.
    expires: bool,
    /// Whether tables get other orders.
    turns: bool,
    weights: Vec<(Kind, u32)>,
    durabilities: Vec<Durability>,
    keys: Keys,
    key_count: u64,
    /// Whether writes stay among a few neighbours for a while.
    is_hot: bool,
    values: Values,
    merging: [Merging; TABLES],
    batch_max: u64,
    stamp: u64,
}

impl Generator {
    /// A stream of operations for databases set up so.
    pub fn new(mut rng: Rng, config: &Config) -> Self {
        let weights = USUAL
            .iter()
            .map(|&(kind, usual)| match kind {
                Kind::Put | Kind::Merge | Kind::Batch => (kind, usual * [1, 1, 3][rng.index(3)]),
                _ => (kind, usual * [0, 1, 2, 6][rng.index(4)] / 2),
            })
            .collect();
        let all = [Durability::Memory, Durability::Os, Durability::Disk];
        let durabilities = match rng.below(5) {
            0 => vec![Durability::Disk],
            1 => vec![Durability::Os],
            2 => vec![Durability::Memory, Durability::Os],
            _ => all.to_vec(),
        };
        let batch_max = [4, 30, 200][rng.index(3)];
        let Config { keys, key_count, values, merging, .. } = *config;
        let walks = rng.clone().fork();
        let cuts = walks.clone().fork();
        let wide = cuts.clone().fork();
        let groups = wide.clone().fork();
        let transactions = groups.clone().fork();
        let lives = transactions.clone().fork();
        let pieces = lives.clone().fork();
        let ranges = pieces.clone().fork();
        let aside = config.aside.as_ref();
        let deletes = std::array::from_fn(|table| config.deletes_states || !merging[table].has_states());
        let cut = std::array::from_fn(|table| keeps_order(config, table) && deletes[table]);
        Self {
            rng,
            walks,
            cuts,
            cut,
            deletes,
            cut_percent: 10,
            wide,
            groups,
            transactions,
            lives,
            pieces,
            ranges,
            has_groups: config.groupings.is_some(),
            share_percent: aside.map_or(0, |aside| aside.share_percent),
            expires: aside.is_some_and(|aside| aside.time_to_live.is_some()),
            turns: true,
            weights,
            durabilities,
            keys,
            key_count,
            is_hot: false,
            values,
            merging,
            batch_max,
            stamp: 0,
        }
    }

    /// Draws what a database with a table aside can do besides.
    pub fn wide(mut self) -> Self {
        for (kind, usual) in WIDE {
            let weight = usual * [0, 1, 2, 6][self.wide.index(4)] / 2;
            self.weights.push((kind, weight));
        }
        if self.has_groups {
            self.weights.extend(GROUPS);
        }
        self.weights.extend(PIECES);
        if self.expires {
            self.weights.extend(LIVES);
        }
        self = self.transacting();
        self.is_hot = self.wide.clone().fork().chance(30);
        if self.is_hot {
            self.cut_percent = 30;
            // Ranges nearby are idle, and hold the log: copies and openings must have what it holds for them.
            let more = [(Kind::Checkpoint, 6), (Kind::Fork, 2), (Kind::Reopen, 6), (Kind::Wait, 6)];
            self.weights.extend(more);
        }
        self
    }

    /// Draws transactions and changes of single keys besides.
    pub fn transacting(mut self) -> Self {
        let mut dice = self.transactions.clone().fork();
        for (kind, usual) in TRANSACTIONS {
            self.weights.push((kind, usual * [0, 1, 2, 6][dice.index(4)] / 2));
        }
        self
    }

    /// Draws what a kind of user does, and nothing else.
    pub fn themed(mut self, theme: Theme) -> Self {
        self.weights = theme.weights().to_vec();
        (self.is_hot, self.cut_percent) = (true, theme.cut_percent());
        self.batch_max = self.batch_max.max(theme.batch_max_min());
        self
    }

    /// Draws from here on by these dice; values are told by the stamp.
    pub fn reseed(&mut self, rng: &mut Rng, stamp: u64) {
        let Self { rng: all, walks, cuts, wide, groups, transactions, lives, pieces, ranges, .. } = self;
        for dice in [all, walks, cuts, wide, groups, transactions, lives, pieces, ranges] {
            *dice = rng.fork();
        }
        self.stamp = stamp;
    }

    /// Never draws this kind again.
    pub fn without(mut self, kind: Kind) -> Self {
        self.weights.retain(|(other, _)| *other != kind);
        self
    }

    /// Never gives a table another order.
    pub fn without_turns(mut self) -> Self {
        self.turns = false;
        self
    }

    /// What is drawn how often.
    pub fn mix(&self) -> String {
        format!("{:?} {:?} batches to {}", self.weights, self.durabilities, self.batch_max)
    }

    /// The next operation.
    pub fn draw(&mut self) -> Op {
        let kind = self.kind();
        self.draw_one(kind)
    }

    /// One of this kind.
    fn draw_one(&mut self, kind: Kind) -> Op {
        let table = self.table();
        match kind {
            Kind::Put => Op::Commit(vec![self.put(table)], self.durability()),
            Kind::Delete => Op::Commit(vec![self.delete(table)], self.durability()),
            Kind::Merge => Op::Commit(vec![self.merge(table)], self.durability()),
            Kind::Batch => Op::Commit(self.batch(), self.durability()),
            Kind::Get => Op::Read(table, Query::Get(self.key())),
            Kind::MultiGet => Op::Read(table, self.multi_get()),
            Kind::Scan => Op::Read(table, self.scan()),
            Kind::Iterate => Op::Read(table, Query::All),
            Kind::Snapshot => Op::Snapshot,
            Kind::ReadSnapshot => Op::ReadSnapshot(table, self.any_query()),
            Kind::DropSnapshot => Op::DropSnapshot,
            Kind::Sync => Op::Sync,
            Kind::Flush => Op::Flush,
            Kind::WaitUntilIdle => Op::WaitUntilIdle,
            Kind::Compact => self.compaction(table),
            Kind::SetLayout => {
                let layout = draw_layout(&mut self.rng);
                match self.turns && !self.merging[table].has_states() && self.cuts.chance(50) {
                    true => Op::Turn(table, layout, self.meanwhile()),
                    false if table == ASIDE => Op::SetLayoutAside(layout),
                    false => Op::SetLayout(layout),
                }
            }
            Kind::Checkpoint => Op::Checkpoint,
            Kind::Reopen => Op::Reopen,
            Kind::Verify => Op::Verify,
            Kind::Step => Op::Step(1 + self.rng.index(30)),
            Kind::Wait => Op::Wait(self.rng.below(300)),
            Kind::Clock => Op::Clock(self.jump()),
            Kind::Savepoint => Op::Savepoint(self.name()),
            Kind::ReadSavepoint => match self.wide.below(3) {
                0 => Op::ReadSavepoint(self.name(), table, self.scan()),
                1 => Op::ReadSavepoint(self.name(), table, self.multi_get()),
                _ => Op::ReadSavepoint(self.name(), table, Query::All),
            },
            Kind::Rollback => Op::Rollback(self.name()),
            Kind::DropSavepoint => Op::DropSavepoint(self.name()),
            Kind::Ingest => Op::Ingest(if self.wide.chance(70) { ASIDE } else { table }, self.entries()),
            Kind::ReopenKeeping => Op::ReopenKeeping,
            Kind::Stale => Op::Stale(self.stale(table)),
            Kind::Renew => Op::Renew,
            Kind::Alter => Op::Alter(table, self.altered()),
            Kind::Keys => Op::Keys(self.wide.chance(50)),
            Kind::Fork => Op::Fork,
            Kind::ReadBeside => Op::ReadBeside(match self.wide.below(10) {
                0 => ReadBeside::Close,
                1..4 => ReadBeside::Keep,
                _ => ReadBeside::Refresh,
            }),
            Kind::Groups => Op::Commit(self.group_batch(), self.durability()),
            Kind::ReadGroups => self.read_groups(),
            Kind::Expire => self.expiry(),
            Kind::RenewGroups => Op::RenewGroups(self.one_of_groups()),
            Kind::Transact => self.transaction(),
            Kind::Swap => self.swap(table),
            Kind::Update => {
                let stamp = self.stamp;
                Op::Update(table, self.key(), self.values.value(&mut self.transactions, stamp))
            }
            Kind::Life => self.life(),
            Kind::Pieces => self.pieces(table),
            Kind::Rate => Op::Rate(draw_rate(&mut self.ranges)),
        }
    }

    fn any_query(&mut self) -> Query {
        match self.rng.below(4) {
            0 => Query::Get(self.key()),
            1 => self.multi_get(),
            2 => self.scan(),
            _ => Query::All,
        }
    }

    /// A table: one of the two, or that aside.
    fn table(&mut self) -> usize {
        let table = self.rng.index(2);
        if self.share_percent > 0 && self.wide.chance(self.share_percent) { ASIDE } else { table }
    }

    fn kind(&mut self) -> Kind {
        let total: u32 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut at = self.rng.below(u64::from(total)) as u32;
        for &(kind, weight) in &self.weights {
            if at < weight {
                return kind;
            }
            at -= weight;
        }
        Kind::Put
    }

    /// A key: mostly one of those in use, sometimes one of twice as many.
    fn key(&mut self) -> Vec<u8> {
        if self.is_hot && self.rng.chance(90) {
            let width = self.key_count.div_ceil(HOT_RANGES);
            let stretch = (self.stamp >> STAMP_BITS) / OPS_PER_STRETCH;
            return self.keys.key(stretch * 7 % HOT_RANGES * width + self.rng.below(width));
        }
        draw_key(&mut self.rng, self.keys, self.key_count)
    }

    fn durability(&mut self) -> Durability {
        self.durabilities[self.rng.index(self.durabilities.len())]
    }

    fn multi_get(&mut self) -> Query {
        let count = self.rng.below(12);
        Query::MultiGet((0..count).map(|_| self.key()).collect())
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.below(6) {
            0 => Bound::Unbounded,
            1..4 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    /// A range, a prefix, or in place of either a walk.
    fn scan(&mut self) -> Query {
        let range = self.range();
        if self.walks.chance(50) {
            return range;
        }
        let (keys, key_count) = (self.keys, self.key_count);
        Query::Walk(walk::draw(&mut self.walks, |rng| draw_key(rng, keys, key_count)))
    }

    fn range(&mut self) -> Query {
        if self.rng.chance(70) {
            return Query::Range(self.bound(), self.bound());
        }
        let mut prefix = self.key();
        prefix.truncate(self.rng.index(10));
        Query::Prefix(prefix)
    }
}

fn draw_key(rng: &mut Rng, keys: Keys, key_count: u64) -> Vec<u8> {
    let among = if rng.chance(10) { 2 * key_count } else { key_count };
    keys.key(rng.below(among))
}
