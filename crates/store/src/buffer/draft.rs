//! Drafts: what a batch holds that is not in the log, as write buffers of its own. Whoever writes the batch reads it by
//! the code that reads all else.
//!
//! **Invariant:** a draft has the batch's records up to a mark, in their order. The batch does not change them any more.

use std::sync::Arc;

use forebay_base::{Error, Order, Result};
use forebay_env::{Appender, Arena};

use super::WriteBuffer;
use crate::log::batch::{Mark, Payload};
use crate::log::frame::{self, HEADER_BYTES, Header, Secret, frame_bytes};

/// The first buffer of a draft; each one more is twice as long, up to the longest.
const DRAFT_BYTES_MIN: usize = 4 << 10;
const DRAFT_BYTES_MAX: usize = 16 << 20;
/// It stands for no segment of the log.
const NO_SEGMENT: u64 = u64::MAX;

/// See the module.
#[derive(Default)]
pub struct Draft {
    /// Newest first.
    buffers: Vec<Arc<WriteBuffer>>,
    /// To the newest.
    appender: Option<Appender>,
    mark: Mark,
}

impl Draft {
    /// Takes in what was added to its batch since the last time, noted for tables of these orders.
    pub fn take_in(&mut self, batch: &mut Payload, order_of: impl Fn(u32) -> Option<Order>) -> Result<()> {
        let added = batch.behind(self.mark, order_of);
        if added.records() == 0 {
            return Ok(());
        }
        self.mark = batch.mark();
        let bytes = frame_bytes(added.bytes().len());
        if self.room() < bytes {
            self.make_room(bytes);
        }
        let (Some(buffer), Some(appender)) = (self.buffers.first(), &mut self.appender) else {
            return Err(Error::bug("a draft without a buffer"));
        };
        let offset = appender.len();
        // Nobody looks for frames here, and none of them has a number.
        let header = Header {
            payload_sum: 0,
            is_encrypted: false,
            payload_bytes: added.bytes().len() as u32,
            records: added.records(),
            sequence: 1,
            watermark: 0,
        };
        let head = header.encode(Secret::default(), NO_SEGMENT, offset);
        frame::append_frame(appender, &head, added.bytes(), &frame::NO_TRAILER)
            .ok_or_else(|| Error::bug("a draft is smaller than it says"))?;
        buffer.note(added.notes(), offset + HEADER_BYTES, || appender.publish());
        debug_assert_eq!(buffer.len(), offset + bytes, "a frame ends where it was said to end");
        Ok(())
    }

    /// Its buffers as they are now, newest first, each with its length.
    pub fn buffers(&self) -> Vec<(Arc<WriteBuffer>, usize)> {
        self.buffers.iter().map(|buffer| (Arc::clone(buffer), buffer.len())).collect()
    }

    fn room(&self) -> usize {
        let free = |appender: &Appender| appender.arena().capacity() - appender.len();
        self.appender.as_ref().map_or(0, free)
    }

    fn make_room(&mut self, bytes: usize) {
        let next = self.buffers.first().map_or(DRAFT_BYTES_MIN, |newest| 2 * newest.capacity());
        let (arena, appender) = Arena::new(next.min(DRAFT_BYTES_MAX).max(bytes));
        self.buffers.insert(0, Arc::new(WriteBuffer::new(NO_SEGMENT, arena, None)));
        self.appender = Some(appender);
    }
}

/// A copy of a batch has a draft of its own, made once somebody reads it.
impl Clone for Draft {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Draft({:?})", self.mark)
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Record;

    use super::*;
    use crate::buffer::TableRows;

    /// States of one key merge in a batch, but never into what a draft has taken in.
    #[test]
    fn a_draft_has_what_its_batch_has_in_any_steps() {
        for step in [1, 3, 50, 1000] {
            let (table, order) = (7, Order::Hashed { seed: 1 });
            let (mut batch, mut draft) = (Payload::default(), Draft::default());
            for number in 0..1000_u32 {
                let (key, value) = ((number % 60).to_le_bytes(), number.to_le_bytes());
                let record = Record::put(&key, &value);
                batch.push_state(table, order, &record, |state, newer| state.copy_from_slice(newer));
                batch.push(table + 1, order, &record);
                if number % step == step - 1 {
                    draft.take_in(&mut batch, |_| Some(order)).unwrap();
                }
            }
            draft.take_in(&mut batch, |_| Some(order)).unwrap();
            for (table, key) in [table, table + 1].into_iter().flat_map(|t| (0..61_u32).map(move |k| (t, k)))
            {
                let rows = TableRows { table, order, rule: None };
                let (bytes, mut found) = (key.to_le_bytes(), None);
                for (buffer, limit) in draft.buffers() {
                    buffer.find(&rows, order.prefix(&bytes), &bytes, limit, |record| {
                        found.get_or_insert_with(|| record.value.to_vec());
                        false
                    });
                }
                let wanted = (key < 60).then(|| (key + 960 - if key < 40 { 0 } else { 60 }).to_le_bytes());
                assert_eq!(
                    found.as_deref(),
                    wanted.as_ref().map(|value| &value[..]),
                    "step {step}, key {key}"
                );
            }
        }
    }
}
