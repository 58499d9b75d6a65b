//! What the functions of an aggregator keep of groups: each by columns if it can, else by rows.

use forebay_base::wire::put_bytes;

use super::by_rows::ByRows;
use super::{Accumulator, Kind, Rows};
use crate::function::Function;
use crate::value::Value;

/// What each function keeps.
#[derive(Default)]
pub(super) struct Parts(Vec<Part>);

/// One function.
struct Part {
    state_bytes: Option<usize>,
    kept: Kept,
}

enum Kept {
    ByColumns(Box<dyn Accumulator>),
    ByRows(ByRows),
}

impl Part {
    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        match &self.kept {
            Kept::ByColumns(kept) => kept.write_state(group, state),
            Kept::ByRows(kept) => kept.write_state(group, self.state_bytes, state),
        }
        debug_assert!(
            self.state_bytes.is_none_or(|bytes| bytes == state.len() - start),
            "a state of fixed length has it"
        );
    }
}

impl Parts {
    /// What functions keep that are given lanes of these kinds.
    pub(super) fn new(functions: &[&dyn Function], kinds: &[Kind]) -> Self {
        let part = |function: &&dyn Function| Part {
            state_bytes: function.state_bytes(),
            kept: match function.accumulator(kinds) {
                Some(kept) => Kept::ByColumns(kept),
                None => Kept::ByRows(ByRows::default()),
            },
        };
        Self(functions.iter().map(part).collect())
    }

    /// Whether what is kept of a group takes what is told: states that grow by rows are not looked at.
    pub(super) fn are_counted(&self) -> bool {
        let is_counted = |part: &Part| part.state_bytes.is_some() || matches!(part.kept, Kept::ByColumns(_));
        self.0.iter().all(is_counted)
    }

    /// As [`Accumulator::gather`].
    pub(super) fn gather(&mut self) {
        for part in &mut self.0 {
            if let Kept::ByColumns(kept) = &mut part.kept {
                kept.gather();
            }
        }
    }

    /// How many bytes are kept of each row that is read: of the others a number.
    pub(super) fn row_bytes(&self) -> usize {
        let by_rows = self.0.iter().filter(|part| matches!(part.kept, Kept::ByRows(_)));
        2 * by_rows.filter_map(|part| part.state_bytes).sum::<usize>() + size_of::<u64>() * self.0.len()
    }

    /// Has functions read rows.
    pub(super) fn read(&mut self, functions: &[&dyn Function], rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let mut needs_rows = false;
        for part in &mut self.0 {
            match &mut part.kept {
                Kept::ByColumns(kept) => kept.read(rows, refused),
                Kept::ByRows(kept) => {
                    kept.clear();
                    needs_rows = true;
                }
            }
        }
        let mut row: Vec<Value<'_>> = Vec::new();
        for at in 0..if needs_rows { rows.len() } else { 0 } {
            rows.row(at, &mut row);
            for (part, function) in self.0.iter_mut().zip(functions) {
                if let Kept::ByRows(kept) = &mut part.kept
                    && !kept.read(*function, &row)
                {
                    refused.push(at as u32);
                }
            }
        }
    }

    /// Adds the rows that were read to their groups.
    pub(super) fn add(&mut self, functions: &[&dyn Function], rows: &Rows<'_>, groups: &[u32]) {
        for (part, function) in self.0.iter_mut().zip(functions) {
            match &mut part.kept {
                Kept::ByColumns(kept) => kept.add(rows, groups),
                Kept::ByRows(kept) => kept.add(*function, part.state_bytes, groups),
            }
        }
    }

    /// As [`Accumulator::resize`].
    pub(super) fn resize(&mut self, groups: usize) {
        for part in &mut self.0 {
            match &mut part.kept {
                Kept::ByColumns(kept) => kept.resize(groups),
                Kept::ByRows(kept) => kept.resize(groups, part.state_bytes),
            }
        }
    }

    /// Puts the state of a group in place of what `state` holds.
    pub(super) fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        debug_assert!(group > 0, "group 0 is nobody's");
        state.clear();
        for part in &self.0 {
            if part.state_bytes.is_some() {
                part.write_state(group, state);
            } else {
                let mut long = Vec::new();
                part.write_state(group, &mut long);
                put_bytes(state, &long);
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let kept = self.0.iter().map(|part| match &part.kept {
            Kept::ByColumns(kept) => kept.memory_bytes(),
            Kept::ByRows(kept) => kept.memory_bytes(),
        });
        kept.sum()
    }
}
