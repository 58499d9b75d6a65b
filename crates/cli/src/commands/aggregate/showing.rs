//! Groups are put in the order to show them in, and go to the sheet in columns.

use std::thread;

use super::belt::Belt;
use super::engine::Measure;
use super::groups::Groups;
use super::labels::Labels;
use super::order::{self, Arrangement};
use super::sheet::{Header, Sheet};
use super::{Job, kinds};

impl Job<'_> {
    /// Returns how many groups there are.
    pub(super) fn show<A: Measure>(
        &self,
        groups: &Groups<A>,
        labels: &Labels,
        sheet: &mut Sheet,
    ) -> Result<u64, forebay::Error> {
        let arrangement = match self.args.top {
            Some(most) => Arrangement::Largest(most as usize),
            None if self.args.unsorted => Arrangement::AsTheyCome,
            None => Arrangement::ByKey,
        };
        let header = match labels {
            Labels::Columns(_) | Labels::Cube(_) => Header::Shown,
            Labels::Plain | Labels::Ngrams { .. } | Labels::Phrases | Labels::Kmers(_) => Header::Hidden,
        };
        let mut names = labels.names();
        let kinds = if sheet.is_typed() { kinds::kinds(groups, labels, &names)? } else { Vec::new() };
        let answer_names = groups.function.names();
        let mut cells = labels.empty_cells(answer_names.len());
        let answers_at = names.len();
        names.extend(answer_names);
        let encoder = sheet.begin(names, &kinds, header)?;
        let (mut text, mut answers) = (Vec::new(), Vec::new());
        let mut write = |encoded| sheet.write(encoded);
        thread::scope(|scope| {
            let mut belt = Belt::new(scope, &encoder, groups.means.encoders);
            let count = order::for_each(groups, labels, arrangement, &mut |key, state| {
                labels.fill(key, &mut text, &mut cells);
                groups.function.answer(state, &mut answers)?;
                cells.values(answers_at, answers.drain(..));
                cells.end_row();
                if encoder.is_full(&cells) { belt.send(&mut cells, &mut write) } else { Ok(()) }
            })?;
            belt.finish(cells, &mut write)?;
            Ok(count)
        })
    }
}
