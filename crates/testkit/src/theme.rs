//! Kinds of users. Some seeds draw one, and are narrowed to what it does: what takes many steps of few kinds to go
//! wrong, a wide draw comes to only now and then.
//!
//! **Invariant:** a theme says how a database is used, and nothing of what should go wrong.

use forebay_env::Rng;

use crate::config::draw_groupings;
use crate::ops::Kind;
use crate::{Aside, Config, Keys, Merging, Values};

/// A kind of user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Keeps what was, in snapshots, savepoints, copies and handles of before, of trees that grow and lose ranges.
    Keeping,
    /// Writes among neighbouring keys for a while, and then among others; deletes what it has done with. All else is
    /// idle, and lies in memory if it can.
    Moving,
    /// Closes and opens a lot, and goes on with handles of before, while few files may be open.
    Restarting,
    /// Has rules, functions and filters of its own, which may panic, and compacts now and then.
    Merging,
    /// Adds to a cube and to windows, which it makes expire; takes savepoints and goes back to them.
    Grouping,
}

impl Theme {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Keeping, Self::Moving, Self::Restarting, Self::Merging, Self::Grouping];

    /// A database as such a user has it.
    pub fn narrow(self, config: Config, rng: &mut Rng) -> Config {
        let one_of = |rng: &mut Rng, names: &[&str]| {
            names[rng.index(names.len())].parse().expect("the name of a layout")
        };
        match self {
            Self::Keeping => {
                let jungles = [
                    "jungle:c=3,t=2",
                    "jungle:c=10,t=3",
                    "jungle:c=2,t=3,upper=20",
                    "jungle:c=5,t=2,levels=live",
                ];
                let layout = one_of(rng, &jungles);
                Config {
                    ordered_layout: layout,
                    node_bytes: [8 << 10, 16 << 10, 48 << 10][rng.index(3)],
                    write_buffer_bytes: Some([4 << 10, 8 << 10][rng.index(2)]),
                    keys: Keys::Counted,
                    key_count: [600, 2000][rng.index(2)],
                    values: Values::Hundreds,
                    merging: [Merging::None; 3],
                    aside: config.aside.map(|aside| Aside { layout, share_percent: 80, ..aside }),
                    ..config
                }
            }
            Self::Moving => Config {
                ordered_layout: one_of(rng, &["range-merge", "range-merge:c=1.5", "jungle", "leveling"]),
                node_bytes: [2 << 10, 6 << 10][rng.index(2)],
                keys: Keys::Counted,
                key_count: [200, 2000][rng.index(2)],
                merging: [Merging::None; 3],
                reclaim_interval: [None; 3],
                aside: config.aside.map(|aside| Aside {
                    layout: one_of(rng, &["range-merge", "range-merge:c=3"]),
                    share_percent: [1, 10, 80][rng.index(3)],
                    ..aside
                }),
                ..config
            },
            Self::Restarting => Config { open_files_max: Some(16), ..config },
            Self::Grouping => Config { groupings: Some(draw_groupings(rng)), ..config },
            Self::Merging => Config {
                merging: [Merging::Operands, Merging::ALL[3 + rng.index(3)], Merging::None],
                key_count: [20, 200][rng.index(2)],
                aside: config.aside.map(|aside| Aside { drops: true, share_percent: 40, ..aside }),
                ..config
            },
        }
    }

    /// Of a hundred keys that it deletes this many are the first of a range.
    pub(crate) fn cut_percent(self) -> u32 {
        match self {
            Self::Moving => 20,
            Self::Keeping | Self::Restarting | Self::Merging | Self::Grouping => 10,
        }
    }

    /// Its batches have up to this many records at least. Trees grow deep enough for one part of a cut tree to be
    /// written, and the others not, only where there are many.
    pub(crate) fn batch_max_min(self) -> u64 {
        if self == Self::Keeping { 60 } else { 0 }
    }

    /// What it does, how often.
    pub(crate) fn weights(self) -> &'static [(Kind, u32)] {
        match self {
            Self::Keeping => KEEPING,
            Self::Moving => MOVING,
            Self::Restarting => RESTARTING,
            Self::Merging => MERGING,
            Self::Grouping => GROUPING,
        }
    }
}

const KEEPING: &[(Kind, u32)] = &[
    (Kind::Put, 30),
    (Kind::Batch, 120),
    (Kind::Delete, 40),
    (Kind::Get, 10),
    (Kind::Snapshot, 10),
    (Kind::ReadSnapshot, 12),
    (Kind::DropSnapshot, 4),
    (Kind::Savepoint, 10),
    (Kind::ReadSavepoint, 4),
    (Kind::Rollback, 6),
    (Kind::DropSavepoint, 3),
    (Kind::Checkpoint, 20),
    (Kind::Fork, 4),
    (Kind::ReadBeside, 16),
    (Kind::ReopenKeeping, 8),
    (Kind::Ingest, 2),
    (Kind::Transact, 6),
    (Kind::Flush, 4),
    (Kind::WaitUntilIdle, 10),
    (Kind::Step, 60),
    (Kind::Wait, 4),
];

const MOVING: &[(Kind, u32)] = &[
    (Kind::Put, 60),
    (Kind::Batch, 100),
    (Kind::Delete, 60),
    (Kind::Get, 20),
    (Kind::Scan, 10),
    (Kind::Snapshot, 4),
    (Kind::ReadSnapshot, 6),
    (Kind::DropSnapshot, 4),
    (Kind::Checkpoint, 3),
    (Kind::Fork, 1),
    (Kind::ReadBeside, 12),
    (Kind::Reopen, 6),
    (Kind::Flush, 4),
    (Kind::WaitUntilIdle, 6),
    (Kind::Compact, 2),
    (Kind::Ingest, 2),
    (Kind::Transact, 20),
    (Kind::Step, 60),
    (Kind::Wait, 10),
];

const MERGING: &[(Kind, u32)] = &[
    (Kind::Put, 40),
    (Kind::Merge, 80),
    (Kind::Batch, 60),
    (Kind::Delete, 20),
    (Kind::Get, 40),
    (Kind::MultiGet, 10),
    (Kind::Scan, 10),
    (Kind::Snapshot, 3),
    (Kind::ReadSnapshot, 6),
    (Kind::DropSnapshot, 3),
    (Kind::Flush, 8),
    (Kind::WaitUntilIdle, 4),
    (Kind::Compact, 6),
    (Kind::Savepoint, 1),
    (Kind::Transact, 20),
    (Kind::Swap, 5),
    (Kind::Update, 10),
    (Kind::Step, 60),
    (Kind::Wait, 6),
];

const RESTARTING: &[(Kind, u32)] = &[
    (Kind::Put, 60),
    (Kind::Batch, 60),
    (Kind::Delete, 20),
    (Kind::Merge, 30),
    (Kind::Get, 30),
    (Kind::Snapshot, 12),
    (Kind::ReadSnapshot, 24),
    (Kind::DropSnapshot, 4),
    (Kind::Reopen, 6),
    (Kind::ReopenKeeping, 16),
    (Kind::Stale, 16),
    (Kind::Keys, 4),
    (Kind::Sync, 4),
    (Kind::Flush, 8),
    (Kind::Compact, 8),
    (Kind::Savepoint, 2),
    (Kind::Rollback, 1),
    (Kind::SetLayout, 3),
    (Kind::Renew, 2),
    (Kind::Fork, 2),
    (Kind::ReadBeside, 16),
    (Kind::Transact, 10),
    (Kind::Step, 40),
    (Kind::Wait, 6),
];

const GROUPING: &[(Kind, u32)] = &[
    (Kind::Put, 10),
    (Kind::Batch, 20),
    (Kind::Groups, 120),
    (Kind::ReadGroups, 60),
    (Kind::Expire, 60),
    (Kind::RenewGroups, 2),
    (Kind::Snapshot, 6),
    (Kind::DropSnapshot, 5),
    (Kind::Savepoint, 8),
    (Kind::ReadSavepoint, 3),
    (Kind::Rollback, 6),
    (Kind::DropSavepoint, 6),
    (Kind::Checkpoint, 2),
    (Kind::Fork, 1),
    (Kind::Reopen, 4),
    (Kind::Sync, 4),
    (Kind::Flush, 8),
    (Kind::Verify, 1),
    (Kind::Step, 60),
    (Kind::Wait, 4),
];
