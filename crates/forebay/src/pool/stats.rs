//! What can be seen of a pool.

use serde::Serialize;

use super::Shared;
use super::arbiter::{Claim, Wish};

/// A pool's memory by database, and what its threads are at.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PoolStats {
    /// All the memory there is.
    pub memory_bytes: u64,
    /// What databases have of it, or hold where that is more, but for what merges take to read.
    pub taken_bytes: u64,
    /// The databases, in the order in which they were opened.
    pub databases: Vec<PooledStats>,
    /// Each thread: whose machine it steps and which, or that it waits. None before the first database.
    pub threads: Vec<String>,
    /// Machines that wait for a thread.
    pub machines_ready: usize,
    /// Machines that wait for something to do.
    pub machines_resting: usize,
    /// Merges under way.
    pub merges: usize,
    /// Databases that wait for others' merges to be done.
    pub merges_waiting: usize,
    /// Bytes a second that background work goes through at most; 0 for no limit.
    pub background_rate_bytes: u64,
}

/// One database of a pool.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PooledStats {
    /// Its directory.
    pub directory: String,
    /// How much it may take now.
    pub share_bytes: u64,
    /// What it held when it said so last, but for what merges take to read.
    pub held_bytes: u64,
    /// What it has use for; 0 while nobody reads or writes it.
    pub wanted_bytes: u64,
}

impl PoolStats {
    pub(super) fn of(pool: &Shared) -> Self {
        let seats = pool.seats.lock();
        let databases =
            seats.by_number.values().map(|seat| PooledStats::of(&seat.label, &seat.claim)).collect();
        let taken_bytes = seats.by_number.values().map(|seat| seat.claim.taken_bytes()).sum();
        drop(seats);
        let executor = pool.executor.look();
        let shown = |at: &Option<(String, String)>| match at {
            Some((label, name)) => format!("{name} of {label}"),
            None => "waits".to_owned(),
        };
        let background_rate_bytes = pool.rate.bytes();
        let permits = pool.permits.lock();
        Self {
            memory_bytes: pool.memory_bytes,
            taken_bytes,
            databases,
            threads: executor.threads.iter().map(shown).collect(),
            machines_ready: executor.ready,
            machines_resting: executor.resting,
            merges: permits.taken(),
            merges_waiting: permits.waiting(),
            background_rate_bytes,
        }
    }
}

impl PooledStats {
    fn of(label: &str, claim: &Claim) -> Self {
        let wanted_bytes = match claim.wish {
            Wish::Asleep { .. } => 0,
            Wish::Awake { bytes } => bytes,
            Wish::Fixed => claim.share_bytes,
        };
        Self {
            directory: label.to_owned(),
            share_bytes: claim.share_bytes,
            held_bytes: claim.held_bytes,
            wanted_bytes,
        }
    }
}
