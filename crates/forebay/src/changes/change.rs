//! What a commit changed, as users are told it: made of the records of a frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::expiry::{self, NEVER};
use forebay_base::{Kind, Record};
use forebay_store::buffer::RangeDelete;
use forebay_store::log::batch::Records;
use forebay_store::log::frame::Header;

use crate::versions::TableState;

/// What one commit changed: all of it or, in a copy, nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeBatch {
    /// The number of the batch's last record: what its commit returned, and where to go on from.
    pub last_sequence: u64,
    /// In the order in which they were given. May be empty, where all were to tables that are dropped by now.
    pub changes: Vec<Change>,
}

/// One operation of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its number. Numbers ascend; some belong to records that are left out.
    pub sequence: u64,
    /// The table's name.
    pub table: Arc<str>,
    /// What was done.
    pub operation: Operation,
}

/// What was done to a key, or a range of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The key got a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// When the entry expires, in milliseconds since 1970; `None` where it never does.
        expiry_milliseconds: Option<u64>,
    },
    /// The key was removed.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Something was merged into what the key has.
    Merge {
        /// The key.
        key: Vec<u8>,
        /// An operand of the table's rule or, in an aggregator's table, a state.
        operand: Vec<u8>,
        /// When the entry expires that it was merged into, in milliseconds since 1970; `None` where it never does.
        expiry_milliseconds: Option<u64>,
    },
    /// All keys of a range were removed.
    DeleteRange {
        /// The first key.
        low: Vec<u8>,
        /// The key that the range ends before; `None` where it has no end.
        high: Option<Vec<u8>>,
    },
}

pub(super) type Names = BTreeMap<u32, Named>;

/// What changes of a table are told with.
pub(super) struct Named {
    name: Arc<str>,
    expires: bool,
    merges_puts: bool,
}

impl Named {
    pub(super) fn of(table: &TableState) -> Self {
        Self {
            name: table.name.as_str().into(),
            expires: table.options.time_to_live.is_some(),
            merges_puts: table.rule.name().state_type().is_some(),
        }
    }

    fn operation(&self, record: &Record<'_>) -> Operation {
        let key = record.key.to_vec();
        let (value, expiry) = match self.expires && record.kind != Kind::Delete {
            true => expiry::split(record.value),
            false => (record.value, NEVER),
        };
        let (value, expiry_milliseconds) = (value.to_vec(), (expiry != NEVER).then_some(expiry));
        match record.kind {
            Kind::Delete => Operation::Delete { key },
            Kind::Put if !self.merges_puts => Operation::Put { key, value, expiry_milliseconds },
            // The log has no pointers to values.
            Kind::Put | Kind::Merge | Kind::Pointer => {
                Operation::Merge { key, operand: value, expiry_milliseconds }
            }
        }
    }
}

fn range_delete(RangeDelete { range, .. }: RangeDelete) -> Operation {
    Operation::DeleteRange { low: range.low.key.into(), high: range.high.map(|high| high.key.into()) }
}

/// What a batch changed in tables that are known. `None` where the payload is not one.
pub(super) fn changes_of(header: &Header, payload: &[u8], tables: &Names) -> Option<Vec<Change>> {
    let mut records = Records::new(payload);
    let mut found = Vec::with_capacity(header.records as usize);
    for (table, place, record) in records.by_ref() {
        let named = tables.get(&table);
        found.push((place, named.map(|named| (&named.name, named.operation(&record)))));
    }
    if !records.is_at_end() {
        return None;
    }
    let range_deletes = records.into_range_deletes();
    if !range_deletes.is_empty() {
        found.extend(range_deletes.into_iter().map(|met| {
            let named = tables.get(&met.table);
            (met.place, named.map(|named| (&named.name, range_delete(met))))
        }));
        found.sort_by_key(|(place, _)| *place);
    }
    let numbered = (header.sequence..).zip(&mut found);
    let changes = numbered.filter_map(|(sequence, (_, of))| {
        let (name, operation) = of.take()?;
        Some(Change { sequence, table: Arc::clone(name), operation })
    });
    let changes = changes.collect();
    (found.len() == header.records as usize).then_some(changes)
}
