//! The records that are loaded, and who loads them.

use super::RIVALS;
use super::curve::Curve;
use crate::figures::part::{BLOB, FJALL, FOREBAY, LEVELDB, LEVELED, Length, Run, UNIVERSAL, laid_out_name};
use crate::figures::results::{Phase, Results};

/// Records of one length.
pub(super) struct Size {
    pub(super) label: &'static str,
    pub(super) record_bytes: u64,
    pub(super) workload: &'static str,
    text: &'static str,
    records: u64,
    /// Of Forebay besides the WB tree in hash order.
    layouts: &'static [&'static str],
    /// Of Forebay with values apart from their keys: what it is held against rivals by, where there are such.
    apart: &'static [&'static str],
    /// Besides those that load all sizes.
    rivals: &'static [&'static str],
    /// Names of the plots.
    pub(super) by_size: &'static str,
    pub(super) by_time: &'static str,
}

/// What workloads are called that keep values apart, from this length on.
const APART: &str = "apart";
const BYTES_MIN: u64 = 128;

/// All come to the same bytes.
pub(super) const SIZES: [Size; 4] = [
    Size {
        label: "16 B",
        record_bytes: 16,
        workload: "figures-steady-16",
        text: include_str!("../../workloads/figures-steady-16.toml"),
        records: 80_000_000,
        layouts: &["wb-tree:ordered"],
        apart: &[],
        rivals: &[],
        by_size: "steady-16-by-size",
        by_time: "steady-16-by-time",
    },
    Size {
        label: "64 B",
        record_bytes: 64,
        workload: "figures-steady-64",
        text: include_str!("../../workloads/figures-steady-64.toml"),
        records: 20_000_000,
        layouts: &["wb-tree:ordered"],
        apart: &[],
        rivals: &[FJALL],
        by_size: "steady-64-by-size",
        by_time: "steady-64-by-time",
    },
    Size {
        label: "256 B",
        record_bytes: 256,
        workload: "figures-steady-256",
        text: include_str!("../../workloads/figures-steady-256.toml"),
        records: 5_000_000,
        layouts: &["jungle:c=3"],
        apart: &["wb-tree", "jungle:c=3"],
        rivals: &[],
        by_size: "steady-256-by-size",
        by_time: "steady-256-by-time",
    },
    Size {
        label: "1 KiB",
        record_bytes: 1024,
        workload: "figures-steady-1024",
        text: include_str!("../../workloads/figures-steady-1024.toml"),
        records: 1_250_000,
        layouts: &["jungle:c=3"],
        apart: &["wb-tree", "jungle:c=3"],
        rivals: &[BLOB],
        by_size: "steady-1024-by-size",
        by_time: "steady-1024-by-time",
    },
];

/// Who loads one size: an engine, and of Forebay a layout.
pub(super) struct Contender {
    pub(super) label: String,
    pub(super) engine: &'static str,
    pub(super) workload: String,
}

impl Size {
    pub(super) fn runs(&self) -> Vec<Run> {
        let run = Run::new(self.text, self.records).rounds(1).length(Length::Scaled);
        let mut runs = vec![run.clone().engines(&[FOREBAY])];
        runs.extend(self.layouts.iter().map(|layout| run.clone().organised(layout).in_order()));
        runs.extend(self.apart.iter().map(|layout| {
            let run = run.clone().varied(APART, &[]).organised(layout).told("values_apart", BYTES_MIN);
            if self.layouts.contains(layout) { run.in_order() } else { run }
        }));
        // One at a time, so that what is interrupted loses one engine's run.
        for engines in [&[LEVELED], &[UNIVERSAL], &[LEVELDB]] {
            runs.push(run.clone().engines(engines));
        }
        if !self.rivals.is_empty() {
            runs.push(run.engines(self.rivals));
        }
        runs
    }

    /// Forebay first, as it suits these records best.
    pub(super) fn contenders(&self) -> Vec<Contender> {
        let apart = |layout: &&str| Contender {
            label: format!("forebay, {layout}, values apart"),
            engine: FOREBAY,
            workload: laid_out_name(&format!("{}-{APART}", self.workload), layout),
        };
        let own = |layout: &&str| Contender {
            label: format!("forebay, {layout}"),
            engine: FOREBAY,
            workload: laid_out_name(self.workload, layout),
        };
        let first = Contender { label: FOREBAY.into(), engine: FOREBAY, workload: self.workload.into() };
        let mut all: Vec<Contender> = self.apart.iter().map(apart).collect();
        all.push(first);
        all.extend(self.layouts.iter().map(own));
        all.extend(RIVALS.iter().chain(self.rivals).map(|engine| Contender {
            label: (*engine).into(),
            engine,
            workload: self.workload.into(),
        }));
        all
    }
}

impl Contender {
    pub(super) fn is_rival(&self) -> bool {
        self.engine != FOREBAY
    }

    pub(super) fn of(&self, results: &Results, phase: &str, pointer: &str) -> Option<f64> {
        results.median(self.engine, Phase(&self.workload, phase), pointer)
    }

    /// Of the last round.
    pub(super) fn curve(&self, results: &Results) -> Option<Curve> {
        Curve::of(results.last(self.engine, Phase(&self.workload, "load"))?)
    }

    pub(super) fn memory_bytes(&self, results: &Results) -> Option<f64> {
        results.memory_bytes(self.engine, &self.workload).map(|bytes| bytes as f64)
    }
}

/// How many times as fast as this rival Forebay was while it grew to the size that the rival has reached, from half of
/// it on.
pub(super) fn times(results: &Results, own: &Contender, rival: &Contender) -> Option<f64> {
    let (own, theirs) = (own.curve(results)?, rival.curve(results)?);
    let records = own.end().records.min(theirs.end().records);
    Some(own.last_half(records)?.rate() / theirs.last_half(records)?.rate())
}
