//! What phases are called in results.

use std::collections::BTreeMap;

use super::{Distribution, OpenLoop, Phase, Workload};

impl Workload {
    /// A name for each phase; the second of a name gets a 2.
    pub(crate) fn phase_names(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let named = |phase: &Phase| {
            let name = phase.name();
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name}-{count}") }
        };
        self.phases.iter().map(named).collect()
    }
}

impl Phase {
    fn name(&self) -> String {
        match self {
            Self::Load => "load".into(),
            Self::Grow(_) => "grow".into(),
            Self::Delete(_) => "delete".into(),
            Self::Scan => "scan".into(),
            Self::Overwrite(overwrite) => format!("overwrite{}", suffix(overwrite.distribution)),
            Self::Mixed(mixed) => format!("mixed{}", suffix(mixed.distribution)),
            Self::Get(get) if get.batch > 1 => format!("multi-get-{}{}", get.batch, suffix(get.distribution)),
            Self::Get(get) => format!("get{}", suffix(get.distribution)),
            Self::Range(range) => format!("range-{}{}", range.length, suffix(range.distribution)),
            Self::Queue(_) => "queue".into(),
            Self::Reopen(_) => "reopen".into(),
            Self::Count(count) => format!("count{}", suffix(count.distribution)),
            Self::Hot(_) => "hot".into(),
            Self::Finalize => "finalize".into(),
            Self::OpenLoop(OpenLoop { layout: Some(_), .. }) => "switch".into(),
            Self::OpenLoop(OpenLoop { rate_share: Some(share), .. }) => format!("open-loop-{share}"),
            Self::OpenLoop(OpenLoop { steady_share: Some(share), .. }) => format!("steady-loop-{share}"),
            Self::OpenLoop(OpenLoop { records_per_second, .. }) => {
                format!("open-loop-{}", records_per_second.unwrap_or_default())
            }
            Self::Transact(transact) => format!("transact-{}", transact.among),
            Self::Drain => "drain".into(),
            Self::Wait(_) => "wait".into(),
            Self::Cold => "cold".into(),
        }
    }
}

fn suffix(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Uniform => "",
        Distribution::Zipf => "-zipf",
        Distribution::Latest => "-latest",
    }
}
