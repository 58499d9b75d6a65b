//! What a table version has: its files, its bytes for the manifest, and how it is shown to a person.

use std::fmt;

use forebay_store::list::FileMeta;
use serde::{Deserialize, Serialize};

use super::space::FilePart;
use crate::files::DataFile;

/// What there is.
pub trait Inspect {
    /// Every file, as often as parts refer to it.
    fn files(&self) -> Vec<DataFile>;

    /// A file that is the table's, and only named so far.
    fn named(&self, meta: FileMeta) -> DataFile;

    /// Shows every list. Pure.
    fn each_list(&self, visit: &mut dyn FnMut(FilePart<'_>));

    /// The version's bytes for a snapshot of the manifest.
    fn encode(&self) -> Vec<u8>;

    /// The organisation as a person would draw it.
    fn describe(&self) -> Description;
}

/// One level of a tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LevelDescription {
    /// 1 is just below the root.
    pub level: usize,
    /// Its nodes.
    pub nodes: usize,
    /// Their lists.
    pub lists: usize,
    /// The most lists of one node.
    pub lists_max: usize,
    /// Bytes of records.
    pub bytes: u64,
    /// Records, every version counted.
    pub records: u64,
    /// Whether it is in memory, and in no file yet.
    pub in_memory: bool,
}

/// One node of a tree.
#[derive(Clone, Debug, Serialize)]
pub struct NodeDescription {
    /// Its id.
    pub id: u64,
    /// Its depth; 1 is just below the root.
    pub level: usize,
    /// The lowest prefix it is responsible for, in hexadecimal.
    pub low: String,
    /// Bytes of records.
    pub bytes: u64,
    /// Records, every version counted.
    pub records: u64,
    /// How many children.
    pub children: usize,
    /// The files of its lists, oldest first.
    pub files: Vec<u64>,
}

/// A table's tree.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Description {
    /// By level, top first.
    pub levels: Vec<LevelDescription>,
    /// Every node, in order.
    pub nodes: Vec<NodeDescription>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let indent = "  ".repeat(node.level);
            let kind = if node.children == 0 { "leaf" } else { "node" };
            write!(f, "{indent}{kind} {} from {}: ", node.id, node.low)?;
            write!(f, "{} records, {} bytes, {} lists", node.records, node.bytes, node.files.len())?;
            let files: Vec<String> = node.files.iter().map(u64::to_string).collect();
            writeln!(f, " [{}]", files.join(" "))?;
        }
        Ok(())
    }
}
