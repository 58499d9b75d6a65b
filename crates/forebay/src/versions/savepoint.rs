//! What a savepoint keeps: a version of each table, and how much of their files that needs.

use std::collections::BTreeMap;

use forebay_layouts::DataFile;
use forebay_store::manifest;

use crate::versions::tables::Tables;

/// What is kept under a name.
pub(crate) struct Savepoint {
    pub(crate) sequence: u64,
    pub(crate) taken_at_milliseconds: u64,
    pub(crate) tables: Tables,
    /// How much it needs of each table's files, from their beginnings.
    pub(crate) needs: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl Savepoint {
    pub(crate) fn new(sequence: u64, taken_at_milliseconds: u64, tables: Tables) -> Self {
        let needs = tables.iter().map(|(id, table)| (*id, table.file_lengths())).collect();
        Self { sequence, taken_at_milliseconds, tables, needs }
    }

    /// What the manifest keeps of it.
    pub(crate) fn entry(&self, name: &str) -> manifest::Savepoint {
        manifest::Savepoint {
            name: name.to_string(),
            sequence: self.sequence,
            taken_at_milliseconds: self.taken_at_milliseconds,
            tables: self.tables.values().map(|table| table.entry()).collect(),
        }
    }

    /// Its files, as often as parts refer to them.
    pub(crate) fn files(&self) -> impl Iterator<Item = DataFile> {
        self.tables.values().flat_map(|table| table.version.files())
    }
}
