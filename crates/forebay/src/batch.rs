//! A batch: records of any tables of one database, written all or not at all.

use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::{Error, Record, Result};
use forebay_store::log::batch::Payload;

use crate::Table;

/// The longest batch, in bytes.
const BATCH_BYTES_MAX: usize = 1 << 30;
/// What a record takes at most besides its key and value.
const RECORD_HEAD_BYTES_MAX: usize = 16;

/// Puts and deletes to be written together. Later ones of a key win over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    payload: Payload,
    database: Option<u64>,
    fault: Option<Error>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key. A key over 64 KiB, a value over 256 MiB or a table of another database makes the commit
    /// fail, and nothing of the batch is written.
    #[inline]
    pub fn put(&mut self, table: impl AsRef<Table>, key: &[u8], value: &[u8]) {
        self.push(table.as_ref(), Record::put(key, value));
    }

    /// Removes a key, present or not.
    pub fn delete(&mut self, table: impl AsRef<Table>, key: &[u8]) {
        self.push(table.as_ref(), Record::delete(key));
    }

    #[inline]
    fn push(&mut self, table: &Table, record: Record<'_>) {
        let is_long = record.key.len() > KEY_BYTES_MAX || record.value.len() > VALUE_BYTES_MAX;
        let is_foreign = self.database.is_some_and(|database| database != table.database_id());
        let bytes =
            self.payload.bytes().len() + record.key.len() + record.value.len() + RECORD_HEAD_BYTES_MAX;
        if is_long || is_foreign || bytes > BATCH_BYTES_MAX {
            return self.refuse(&record, is_long, is_foreign);
        }
        self.database = Some(table.database_id());
        self.payload.push(table.id(), table.order(), &record);
    }

    #[cold]
    fn refuse(&mut self, record: &Record<'_>, is_long: bool, is_foreign: bool) {
        let fault = match (is_long, is_foreign) {
            (true, _) => too_long(record),
            (_, true) => Error::invalid("a batch cannot span two databases; commit one batch to each"),
            _ => {
                Error::invalid(format!("a batch is longer than {BATCH_BYTES_MAX} bytes; commit it in parts"))
            }
        };
        self.fault.get_or_insert(fault);
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.payload.records() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the batch takes in the log.
    pub fn encoded_bytes(&self) -> usize {
        self.payload.bytes().len()
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.payload.clear();
        (self.database, self.fault) = (None, None);
    }

    /// The payload, if the batch may be committed to this database.
    pub(crate) fn payload(&self, database: u64) -> Result<&Payload> {
        match (&self.fault, self.database) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(other)) if other != database => {
                Err(Error::invalid("the batch was made for tables of another database"))
            }
            _ => Ok(&self.payload),
        }
    }
}

fn too_long(record: &Record<'_>) -> Error {
    Error::invalid(format!(
        "a key of {} bytes with a value of {} bytes; the longest key has {KEY_BYTES_MAX}, the longest value \
         {VALUE_BYTES_MAX}",
        record.key.len(),
        record.value.len()
    ))
}
