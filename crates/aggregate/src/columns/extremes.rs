//! The least or the greatest text of each group.

use super::{Accumulator, Rows, Wanted};
use crate::optional::{MISSING, PRESENT};

/// See the module.
pub(crate) struct ExtremeTexts {
    wanted: Wanted,
    lane: usize,
    kept: Vec<Option<Vec<u8>>>,
    kept_bytes: usize,
}

impl ExtremeTexts {
    /// That of the texts of a lane's values.
    pub(crate) fn over(wanted: Wanted, lane: usize) -> Box<dyn Accumulator> {
        Box::new(Self { wanted, lane, kept: Vec::new(), kept_bytes: 0 })
    }
}

impl Accumulator for ExtremeTexts {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        let gone = self.kept.drain(groups.min(self.kept.len())..).flatten();
        self.kept_bytes -= gone.map(|text| text.capacity()).sum::<usize>();
        if groups == 0 {
            self.kept = Vec::new();
        }
        self.kept.resize(groups, None);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let lane = rows.lane(self.lane);
        for (at, group) in groups.iter().enumerate() {
            if *group == 0 || !lane.is_present(at) {
                continue;
            }
            let value = lane.value(at);
            let text = value.to_text();
            let kept = self.kept[*group as usize].get_or_insert_with(|| {
                self.kept_bytes += text.len();
                text.to_vec()
            });
            let order = if self.wanted == Wanted::Least { (**kept).cmp(&text) } else { (*text).cmp(kept) };
            if order.is_gt() {
                self.kept_bytes -= kept.capacity();
                kept.clear();
                kept.extend_from_slice(&text);
                self.kept_bytes += kept.capacity();
            }
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        match &self.kept[group] {
            None => state.push(MISSING),
            Some(text) => {
                state.push(PRESENT);
                state.extend_from_slice(text);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.kept_bytes + size_of::<Option<Vec<u8>>>() * self.kept.capacity()
    }
}
