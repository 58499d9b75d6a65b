//! What a workload may ask for: checked before anything is started, each complaint naming the key.

use super::{Mixed, OpenLoop, Phase, Transact, Workload};
use crate::Durability;
use crate::counts::COUNT_BYTES;
use crate::data::{HEX_BYTES, KEY_BYTES_MIN, KeyOrder, RECORDS_MAX};

/// In seconds.
pub(super) const HOUR: f64 = 3600.0;

fn is(holds: bool, complaint: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(complaint) }
}

fn is_time(seconds: Option<f64>, complaint: &'static str) -> Result<(), &'static str> {
    is(seconds.is_none_or(|seconds| (0.0..=HOUR).contains(&seconds)), complaint)
}

impl Workload {
    /// Says what cannot work.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_head()?;
        let (mut loaded, mut rate_known, mut has_hole) = (false, false, false);
        for (number, phase) in self.phases.iter().enumerate() {
            let fills = matches!(phase, Phase::Load | Phase::Grow(_) | Phase::Queue(_) | Phase::Reopen(_));
            let counts = matches!(phase, Phase::Count(_) | Phase::Hot(_));
            let rests = matches!(phase, Phase::Drain | Phase::Wait(_) | Phase::Cold);
            let goes_with_hole = rests || matches!(phase, Phase::Scan);
            let works = !fills && !counts && !rests;
            let shares_rate = matches!(
                phase,
                Phase::OpenLoop(
                    OpenLoop { rate_share: Some(_), .. } | OpenLoop { steady_share: Some(_), .. }
                )
            );
            self.check_phase(phase)
                .and_then(|()| self.check_counts(phase))
                .and_then(|()| is(!works || loaded, "there is nothing to work on before `load`"))
                .and_then(|()| is(!fills || !loaded, "records are loaded once"))
                .and_then(|()| {
                    is(!has_hole || goes_with_hole, "only `scan`, `drain`, `wait` and `cold` follow `delete`")
                })
                .and_then(|()| {
                    is(
                        !shares_rate || rate_known,
                        "`rate_share` and `steady_share` are of a load or overwrite before it",
                    )
                })
                .map_err(|complaint| format!("phase {} of `phases`: {complaint}", number + 1))?;
            rate_known |= matches!(phase, Phase::Load | Phase::Overwrite(_));
            loaded |= fills || counts;
            has_hole |= matches!(phase, Phase::Delete(_));
        }
        Ok(())
    }

    fn check_head(&self) -> Result<(), &'static str> {
        let named = !self.name.is_empty() && !self.name.contains(['/', '\0']);
        is(named, "`name` has to be there, and without a slash")?;
        is(self.key_bytes >= KEY_BYTES_MIN, "`key_bytes` has to be at least 8")?;
        let is_hex = self.keys == KeyOrder::Hex;
        is(!is_hex || self.key_bytes >= HEX_BYTES, "`key_bytes` has to be at least 16 for keys of digits")?;
        is(self.records >= 1, "`records` has to be at least 1")?;
        is(self.records_expected() <= RECORDS_MAX, "`records` has to be below 2^32, with what is inserted")?;
        is(self.batch >= 1, "`batch` has to be at least 1")?;
        is(self.writers >= 1, "`writers` has to be at least 1")?;
        let is_beside = self.writers > 1;
        is(!is_beside || self.samples == 0, "`samples` are taken of one of `writers` only")?;
        is(!is_beside || !self.adds(), "counts are added to by one of `writers` only")?;
        is(self.memory_share > 0.0, "`memory_share` has to be above 0")?;
        is(
            !self.adds() || self.load_seconds_max.is_none(),
            "`load_seconds_max` goes with values that are put, and not with counts",
        )?;
        is_time(self.load_seconds_max, "`load_seconds_max` has to be an hour at most")?;
        self.check_layout(self.forebay.layout.as_deref())?;
        is(!self.phases.is_empty(), "`phases` has to name at least one")
    }

    fn check_layout(&self, name: Option<&str>) -> Result<(), &'static str> {
        let Some(name) = name else { return Ok(()) };
        let layout =
            name.parse::<forebay::Layout>().map_err(|_| "`layout` has to be the name of a layout")?;
        is(layout.is_ordered() == self.ordered, "`layout` has to keep keys in order as `ordered` says")
    }

    fn check_phase(&self, phase: &Phase) -> Result<(), &'static str> {
        let operations = |count: f64| is(count > 0.0, "`operations_per_record` has to be above 0");
        let seconds = |most| is_time(most, "`seconds_max` has to be an hour at most");
        match phase {
            Phase::Load | Phase::Drain | Phase::Cold | Phase::Finalize => Ok(()),
            Phase::Grow(grow) => {
                is(
                    grow.steps.min(grow.ranges).min(grow.length) >= 1,
                    "`steps`, `ranges`, `length`: at least 1",
                )?;
                is(self.ordered, "`grow` needs `ordered = true`")
            }
            Phase::Delete(delete) => {
                is((0.0..1.0).contains(&delete.share), "`share` has to be below 1")?;
                is(self.keys == KeyOrder::Ascending, "`delete` needs `keys = \"ascending\"`")
            }
            Phase::Scan => is(self.ordered, "`scan` needs `ordered = true`"),
            Phase::Wait(wait) => {
                is((0.0..=HOUR).contains(&wait.seconds), "`seconds` has to be an hour at most")
            }
            Phase::Count(count) => {
                operations(count.operations_per_record)?;
                seconds(count.seconds_max)
            }
            Phase::Hot(hot) => {
                is(hot.keys >= 1, "`keys` has to be at least 1")?;
                seconds(hot.seconds_max)
            }
            Phase::Overwrite(overwrite) => {
                operations(overwrite.operations_per_record)?;
                seconds(overwrite.seconds_max)
            }
            Phase::Mixed(mixed) => {
                operations(mixed.operations_per_record)?;
                seconds(mixed.seconds_max)?;
                self.check_mix(mixed)
            }
            Phase::Get(get) => {
                operations(get.operations_per_record)?;
                seconds(get.seconds_max)?;
                is((0.0..=1.0).contains(&get.present), "`present` has to be in 0..1")?;
                is(get.batch >= 1, "`batch` has to be at least 1")
            }
            Phase::Range(range) => {
                operations(range.operations_per_record)?;
                is(range.length >= 1, "`length` has to be at least 1")?;
                is(self.ordered, "`range` needs `ordered = true`")
            }
            Phase::Queue(queue) => {
                operations(queue.operations_per_record)?;
                is(queue.backlog_per_record > 0.0, "`backlog_per_record` has to be above 0")
            }
            Phase::Reopen(reopen) => {
                is(reopen.kills >= 1, "`kills` has to be at least 1")?;
                is(
                    self.durability != Durability::Memory,
                    "`durability` memory promises nothing after a kill: use os or disk",
                )
            }
            Phase::OpenLoop(open_loop) => self.check_open_loop(open_loop),
            Phase::Transact(transact) => self.check_transact(transact),
        }
    }

    fn check_transact(&self, transact: &Transact) -> Result<(), &'static str> {
        is(transact.operations_per_record > 0.0, "`operations_per_record` has to be above 0")?;
        is_time(transact.seconds_max, "`seconds_max` has to be an hour at most")?;
        let least = transact.threads.min(transact.keys).min(transact.among);
        is(least >= 1, "`threads`, `keys`, `among`: at least 1")?;
        is(self.value_bytes >= 8, "`value_bytes` has to be at least 8 for the numbers of `transact`")
    }

    fn check_open_loop(&self, open_loop: &OpenLoop) -> Result<(), &'static str> {
        is(open_loop.operations_per_record > 0.0, "`operations_per_record` has to be above 0")?;
        is_time(open_loop.seconds_max, "`seconds_max` has to be an hour at most")?;
        let rates = [open_loop.records_per_second, open_loop.rate_share, open_loop.steady_share];
        let rates: Vec<f64> = rates.into_iter().flatten().collect();
        is(rates.len() == 1, "give one of `records_per_second`, `rate_share` and `steady_share`")?;
        is(rates.iter().all(|rate| *rate > 0.0), "the rate has to be above 0")?;
        self.check_layout(open_loop.layout.as_deref())
    }

    /// In a workload that adds, values are counts: no phase may look for others.
    fn check_counts(&self, phase: &Phase) -> Result<(), &'static str> {
        if !self.adds() {
            return Ok(());
        }
        let is_of_counts = matches!(
            phase,
            Phase::Load
                | Phase::Count(_)
                | Phase::Hot(_)
                | Phase::Finalize
                | Phase::Drain
                | Phase::Wait(_)
                | Phase::Cold
        );
        is(
            is_of_counts,
            "only `load`, `count`, `hot`, `finalize`, `drain`, `wait` and `cold` go with counts",
        )?;
        is(self.value_bytes == COUNT_BYTES, "`value_bytes` has to be 8 where values are counts")
    }

    fn check_mix(&self, mixed: &Mixed) -> Result<(), &'static str> {
        let shares = [mixed.read, mixed.update, mixed.insert, mixed.scan, mixed.read_modify_write];
        is(shares.iter().all(|share| *share >= 0.0), "shares have to be 0 or more")?;
        is((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "shares have to come to 1")?;
        is(mixed.scan == 0.0 || self.ordered, "`scan` needs `ordered = true`")?;
        is(mixed.scan_limit >= 1, "`scan_limit` has to be at least 1")?;
        // What a scan finds is compared at the end of a group of operations, when later ones are done.
        is(
            mixed.scan == 0.0 || mixed.update + mixed.read_modify_write == 0.0,
            "`scan` can be checked beside `read` and `insert` only",
        )
    }
}
