//! The shape of tables, as a person or a program is told it.

use std::fmt;
use std::time::Duration;

use forebay_base::expiry::NEVER;
use forebay_buffer_tree::TreeOptions;
use forebay_layouts::{Layout, LevelDescription, NodeDescription, RuleName, milliseconds_of};
use serde::Serialize;

use crate::api::stats::time_text;
use crate::changes::buffered_records;
use crate::engine::Engine;

/// Every table's tree.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// By name.
    pub tables: Vec<TableDescription>,
    /// Records of all tables that are in the log only, and in no node yet.
    pub unlisted_records: u64,
}

/// A table's options and tree.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the fields' names are those of the options")]
#[non_exhaustive]
pub struct TableDescription {
    pub name: String,
    pub layout: String,
    pub rule: Option<String>,
    pub node_bytes: u64,
    pub fan_out: usize,
    pub fast_per_slow: u32,
    pub lists_max: usize,
    pub repeats_max: f64,
    pub filter_bits_per_key: u32,
    /// Which first bytes of keys filters know, too, as text.
    pub prefix_filter: Option<String>,
    pub codec: String,
    pub max_space_amplification: Option<f64>,
    pub reclaim_interval_seconds: Option<u64>,
    /// How long entries live that are put without more; the greatest number forever.
    pub time_to_live_milliseconds: Option<u64>,
    /// Values of at least this many bytes are kept apart.
    pub values_apart_bytes_min: Option<u32>,
    pub levels: Vec<LevelDescription>,
    pub nodes: Vec<NodeDescription>,
    #[serde(skip)]
    drawing: String,
    /// What the sizes above mean to its layout.
    #[serde(skip)]
    sizes: String,
}

/// The options that bound what a layout is made of.
fn sizes(layout: Layout, tree: TreeOptions) -> String {
    let TreeOptions { node_bytes, fan_out, fast_per_slow, .. } = tree;
    match layout {
        Layout::WbTree { .. } => {
            format!(
                "nodes of {node_bytes} bytes, fan-out {fan_out}, {fast_per_slow} fast splits to a slow one"
            )
        }
        Layout::RunSet(_) => format!("list files of at most {node_bytes} bytes"),
    }
}

impl Description {
    pub(crate) fn of(engine: &Engine) -> Self {
        let state = engine.versions.state();
        let mut tables: Vec<_> = state
            .user_tables()
            .map(|table| {
                let description = table.version.describe();
                let tree = table.options.tree;
                TableDescription {
                    name: table.name.clone(),
                    layout: table.options.layout.to_string(),
                    rule: (*table.rule.name() != RuleName::None).then(|| table.rule.name().describe()),
                    node_bytes: tree.node_bytes,
                    fan_out: tree.fan_out,
                    fast_per_slow: tree.fast_per_slow,
                    lists_max: tree.lists_max,
                    repeats_max: tree.repeats_max,
                    filter_bits_per_key: table.options.filter_bits_per_key,
                    prefix_filter: table.options.prefix_filter.map(|prefixes| prefixes.to_string()),
                    codec: format!("{:?}", table.options.codec).to_lowercase(),
                    max_space_amplification: table.options.max_space_amplification,
                    reclaim_interval_seconds: table.options.reclaim_interval.map(|all| all.as_secs()),
                    time_to_live_milliseconds: table.options.time_to_live.map(milliseconds_of),
                    values_apart_bytes_min: table.options.apart_bytes_min,
                    drawing: description.to_string(),
                    sizes: sizes(table.options.layout, tree),
                    levels: description.levels,
                    nodes: description.nodes,
                }
            })
            .collect();
        tables.sort_by(|left, right| left.name.cmp(&right.name));
        Self { tables, unlisted_records: buffered_records(&engine.versions.view()).sum() }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            write!(f, "table {} ({}), ", table.name, table.layout)?;
            if let Some(rule) = &table.rule {
                write!(f, "{rule}, ")?;
            }
            if let Some(most) = table.max_space_amplification {
                write!(f, "at most {most} times on disk, ")?;
            }
            if let Some(seconds) = table.reclaim_interval_seconds {
                write!(f, "reclaimed within {seconds} s, ")?;
            }
            match table.time_to_live_milliseconds {
                Some(NEVER) => f.write_str("entries may expire, ")?,
                Some(milliseconds) => {
                    write!(f, "entries live {}, ", time_text(Duration::from_millis(milliseconds)))?;
                }
                None => {}
            }
            if let Some(prefixes) = &table.prefix_filter {
                write!(f, "prefix filter {prefixes}, ")?;
            }
            if let Some(bytes) = table.values_apart_bytes_min {
                write!(f, "values from {bytes} bytes on apart, ")?;
            }
            writeln!(f, "{}", table.sizes)?;
            f.write_str(&table.drawing)?;
        }
        if self.unlisted_records > 0 {
            writeln!(f, "records in the log only, of all tables: {}", self.unlisted_records)?;
        }
        Ok(())
    }
}
