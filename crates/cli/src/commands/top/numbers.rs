//! [`Numbers`]: what `FB.STATS` tells, and what of it came in a second.

use forebay::Stats;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Numbers {
    now_milliseconds: u64,
    pub(super) server: Server,
    pub(super) slow: Vec<Slow>,
    pub(super) hottest_keys: Vec<Hot>,
    #[serde(flatten)]
    pub(super) database: Stats,
}

#[derive(Debug, Deserialize)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) uptime_seconds: u64,
    pub(super) connections: u64,
    commands: u64,
    pub(super) buffers_bytes: u64,
    #[serde(default)]
    pub(super) followers: u64,
    pub(super) follows: Option<Follows>,
}

/// Whom it follows.
#[derive(Debug, Deserialize)]
pub(super) struct Follows {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_up: bool,
    pub(super) lag_milliseconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Slow {
    pub(super) microseconds: u64,
    #[serde(default)]
    pub(super) request: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hot {
    pub(super) database: u64,
    pub(super) key: Option<String>,
    pub(super) share: f64,
    pub(super) writes: f64,
}

/// Of a second.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) commands: f64,
    pub(super) lookups: f64,
    pub(super) records: f64,
    pub(super) written_bytes: f64,
    pub(super) syncs: f64,
    pub(super) stalled: f64,
}

impl Numbers {
    /// What came since numbers of before, of each second.
    pub(super) fn rates(&self, before: &Self) -> Rates {
        let milliseconds = self.now_milliseconds.saturating_sub(before.now_milliseconds);
        if milliseconds == 0 {
            return Rates::default();
        }
        let each = |pick: &dyn Fn(&Self) -> u64| {
            pick(self).saturating_sub(pick(before)) as f64 * 1000.0 / milliseconds as f64
        };
        let written =
            |all: &Self| all.database.log_bytes + all.database.list_bytes_written.values().sum::<u64>();
        let stalled = self.database.stall_seconds - before.database.stall_seconds;
        Rates {
            commands: each(&|all| all.server.commands),
            lookups: each(&|all| all.database.gets),
            records: each(&|all| all.database.user_records),
            written_bytes: each(&written),
            syncs: each(&|all| all.database.log_syncs),
            stalled: stalled.max(0.0) * 1000.0 / milliseconds as f64,
        }
    }
}
