//! Walking a buffer's frames: all of them, or those that may have records of one table.
//!
//! **Invariant:** a walk near a table shows all that it has.

use forebay_base::Record;

use super::WriteBuffer;
use super::stretches::Stretch;
use crate::log::batch::Records;
use crate::log::frame;

impl WriteBuffer {
    /// Calls `each` with every record of the frames that begin at `from` and before `to`: table, place and
    /// record. Returns where the last of them ends.
    pub(crate) fn for_each(
        &self,
        from: usize,
        to: usize,
        mut each: impl FnMut(u32, usize, &Record<'_>),
    ) -> usize {
        let mut end = from;
        for (start, payload) in frame::walk(self.bytes(), from) {
            if end >= to {
                break;
            }
            for (table, place, record) in Records::new(payload) {
                each(table, start + place, &record);
            }
            end = frame::end_of(self.bytes(), start);
        }
        end
    }

    /// The same of what may be a table's. All that it has is shown, and of others little that lies beside it.
    pub(crate) fn for_each_near(
        &self,
        table: u32,
        from: usize,
        to: usize,
        mut each: impl FnMut(u32, usize, &Record<'_>),
    ) -> usize {
        let Some((stretches, next)) = self.stretches(table, from, to) else {
            return self.for_each(from, to, each);
        };
        for stretch in stretches {
            for (start, payload) in frame::walk(self.bytes(), stretch.frame().max(from)) {
                let frame = start - frame::HEADER_BYTES;
                if frame > stretch.last() {
                    break;
                }
                if frame >= to {
                    return frame;
                }
                let records = match stretch.first().checked_sub(start) {
                    Some(first) => Records::behind(payload, first, table),
                    None => Records::new(payload),
                };
                let inside = records.take_while(|(_, place, _)| start + place <= stretch.last());
                inside.for_each(|(owner, place, record)| each(owner, start + place, &record));
            }
        }
        next
    }

    /// Where records of a table may lie in frames that begin at `from` or behind and before `to`, and where the frame
    /// begins from which a walk goes on; nothing where that was not noted.
    fn stretches(&self, table: u32, from: usize, to: usize) -> Option<(Vec<Stretch>, usize)> {
        let index = self.index.read();
        if !index.noted {
            return None;
        }
        let stretches = index.tables.get(&table).map(|table| &table.stretches);
        let within = stretches.map_or_else(Vec::new, |stretches| stretches.within(from, to).to_vec());
        let next = stretches.and_then(|stretches| stretches.frame_from(to));
        Some((within, next.unwrap_or_else(|| self.len())))
    }
}
