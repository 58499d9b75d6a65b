//! What becomes of a record as it goes to a leaf: short values lie there, long ones in the tree's file, or in a value
//! file.

use forebay_base::codec::Codec;
use forebay_base::limits::{KEY_BYTES_MAX, STEP_BYTES, STORED_VALUE_BYTES_MAX};
use forebay_base::wire::put_bytes;
use forebay_base::{Error, Kind, Record, Result};

use super::Growth;
use crate::extent::Extent;
use crate::node::{APART, Node, Value};
use crate::packed;
use crate::packer::Weight;
use crate::values::pointed_bytes;

impl Growth {
    /// Copies a record of an old leaf as it is; only a value in a value file that is emptied moves.
    pub(super) fn copy_record(&mut self, node: &Node, index: usize, key: &[u8]) -> Result<()> {
        let (mut weight, mut moved) = (Weight { records: 1, ..Weight::default() }, None);
        if let Value::Apart(extent) = node.value(index) {
            weight.live_bytes = extent.bytes as u64;
        } else if let Some(pointer) = node.pointer(index) {
            weight.pointed_bytes = pointed_bytes(pointer);
            moved = self.pointers.carry(&Record { kind: Kind::Pointer, key, value: pointer })?;
        }
        let Some(pointer) = moved else {
            return self.push(0, key, node.flags(index), node.payload(index), weight);
        };
        let mut payload = Vec::with_capacity(1 + pointer.len());
        put_bytes(&mut payload, &pointer);
        self.push(0, key, node.flags(index), &payload, weight)
    }

    /// Adds a record that comes with the batch.
    pub(super) fn write(&mut self, record: &Record<'_>) -> Result<()> {
        if record.key.len() > KEY_BYTES_MAX || record.value.len() > STORED_VALUE_BYTES_MAX {
            return Err(Error::bug("a record is longer than the limits allow"));
        }
        self.store.expiry.iter().for_each(|_| self.lives.add(record));
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        let mut weight = Weight { records: 1, ..Weight::default() };
        let mut flags = record.kind as u8;
        if record.kind == Kind::Pointer {
            weight.pointed_bytes = pointed_bytes(record.value);
            let moved = self.pointers.take(&self.store, record)?;
            put_bytes(&mut payload, moved.as_deref().unwrap_or(record.value));
        } else if record.value.len() <= self.store.options.inline_value_bytes_max {
            put_bytes(&mut payload, record.value);
        } else {
            flags |= APART;
            let value = self.append(record.value)?;
            weight.live_bytes = value.bytes as u64;
            value.encode(&mut payload);
        }
        if self.levels.is_empty() {
            self.add_level(0);
        }
        let pushed = self.push(0, record.key, flags, &payload, weight);
        self.payload = payload;
        pushed
    }

    /// Appends a node or a value.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<Extent> {
        if self.codec == Codec::None {
            return self.tail.append(bytes);
        }
        packed::pack(self.codec, bytes, &mut self.packed);
        let extent = self.tail.append(&self.packed)?;
        // A long value is rare, and what it took is not kept for the next one.
        self.packed.shrink_to(STEP_BYTES);
        Ok(extent)
    }
}
