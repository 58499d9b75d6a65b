//! Runs as a person would draw them, and as numbers.

use super::set::RunSet;
use crate::files::DataFile;
use crate::seam::{Description, LevelDescription, NodeDescription};

pub(super) fn describe(set: &RunSet<DataFile>) -> Description {
    let parts = set.runs().iter().flat_map(|run| run.parts.iter().map(move |part| (run, part)));
    let nodes = parts.map(|(run, part)| NodeDescription {
        id: run.id.0,
        level: run.level as usize,
        low: format!("{:016x}", part.range.low.prefix),
        bytes: part.portion.bytes,
        records: part.portion.records,
        children: 0,
        files: vec![part.fragment.id()],
    });
    Description { levels: levels(set), nodes: nodes.collect() }
}

/// What each level has, top first. A range of keys is a node, and a run its list.
pub(super) fn levels<F>(set: &RunSet<F>) -> Vec<LevelDescription> {
    let level = |runs: &[std::sync::Arc<super::set::Run<F>>]| {
        let whole: forebay_buffer_tree::Portion =
            runs.iter().fold(Default::default(), |sum, run| run.portion().saturating_add(sum));
        LevelDescription {
            level: runs[0].level as usize,
            nodes: runs.iter().map(|run| run.parts.len()).max().unwrap_or(0),
            lists: runs.iter().map(|run| run.parts.len()).sum(),
            lists_max: runs.len(),
            bytes: whole.bytes,
            records: whole.records,
            in_memory: runs[0].is_resident,
        }
    };
    set.runs()
        .chunk_by(|left, right| (left.level, left.is_resident) == (right.level, right.is_resident))
        .map(level)
        .collect()
}
