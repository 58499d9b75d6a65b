//! Groups are put in the order to show them in, and go to the sheet in columns.

use std::ops::Range;
use std::thread;

use forebay::Error;
use forebay_aggregate::Value;

use super::Job;
use super::belt::Belt;
use super::cells::Cells;
use super::engine::Measure;
use super::groups::{Groups, Held};
use super::kinds::{self, Kind};
use super::labels::Labels;
use super::order::{self, Arrangement};
use super::sheet::{Encoded, Encoder, Header, Sheet};
use super::taken::{Give, for_each_part, parts};

impl Job<'_> {
    /// Returns how many groups there are.
    pub(super) fn show<A: Measure>(
        &self,
        groups: &Groups<A>,
        labels: &Labels,
        sheet: &mut Sheet,
    ) -> Result<u64, Error> {
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
        names.extend(groups.function.names());
        let encoder = sheet.begin(names, &kinds, header, arrangement)?;
        let mut write = |encoded| sheet.write(encoded);
        match &groups.held {
            Held::Taken(_) if arrangement == Arrangement::AsTheyCome => {
                as_taken(groups, labels, &kinds, &encoder, &mut write)
            }
            _ => arranged(groups, labels, &kinds, arrangement, &encoder, &mut write),
        }
    }
}

/// Shows groups one after the other; other threads encode them.
fn arranged<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    kinds: &[Kind],
    arrangement: Arrangement,
    encoder: &Encoder,
    write: &mut impl FnMut(Encoded) -> Result<(), Error>,
) -> Result<u64, Error> {
    thread::scope(|scope| {
        let mut belt = Belt::new(scope, encoder, groups.means.encoders);
        let mut rows = Rows::new(&*groups.function, labels, kinds);
        let count = order::for_each(groups, labels, arrangement, &mut |key, state| {
            rows.add(key, state)?;
            if encoder.is_full(&rows.cells) { belt.send(&mut rows.cells, write) } else { Ok(()) }
        })?;
        belt.finish(rows.cells, write)?;
        Ok(count)
    })
}

/// What is written of some groups, and how many of a part there are, at its end.
type Made = (Option<Encoded>, u64);

/// Shows groups in the order of their hashes; each thread merges and encodes those of some leaves, which are gone then.
fn as_taken<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    kinds: &[Kind],
    encoder: &Encoder,
    write: &mut impl FnMut(Encoded) -> Result<(), Error>,
) -> Result<u64, Error> {
    let Held::Taken(taken) = &groups.held else { return Ok(0) };
    let (function, threads) = (&*groups.function, groups.means.encoders + 1);
    let worker = || {
        let (mut rows, mut shown) = (Rows::new(function, labels, kinds), Vec::new());
        move |leaves: Range<usize>, give: &mut Give<'_, Made>| {
            let mut count = 0;
            taken.show(leaves.clone(), &mut |key, state| {
                count += 1;
                rows.add(labels.shown(key, &mut shown), state)?;
                if encoder.is_full(&rows.cells) { give((Some(rows.encode(encoder)?), 0)) } else { Ok(()) }
            })?;
            taken.free(leaves);
            let last = if rows.cells.rows() > 0 { Some(rows.encode(encoder)?) } else { None };
            give((last, count))
        }
    };
    let mut count = 0;
    for_each_part(
        &parts(taken, threads, encoder.part_rows()),
        threads,
        worker,
        &mut |(encoded, more): Made| {
            count += more;
            encoded.map_or(Ok(()), &mut *write)
        },
    )?;
    taken.told().map(|()| count)
}

/// Groups as cells.
struct Rows<'a, A> {
    function: &'a A,
    labels: &'a Labels,
    cells: Cells,
    answers_at: usize,
    text: Vec<u8>,
    answers: Vec<Value<'static>>,
}

impl<'a, A: Measure> Rows<'a, A> {
    fn new(function: &'a A, labels: &'a Labels, kinds: &[Kind]) -> Self {
        let (answers_at, answers) = (labels.names().len(), function.names().len());
        let cells = labels.empty_cells(answers).of_kinds(kinds);
        let (text, answers) = (Vec::new(), Vec::with_capacity(answers));
        Self { function, labels, cells, answers_at, text, answers }
    }

    /// Adds a group.
    fn add(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        let Self { function, labels, cells, answers_at, text, answers } = self;
        labels.fill(key, text, cells);
        function.answer(state, answers)?;
        cells.values(*answers_at, answers.drain(..));
        cells.end_row();
        Ok(())
    }

    /// Encodes all that were added, and forgets them.
    fn encode(&mut self, encoder: &Encoder) -> Result<Encoded, Error> {
        let encoded = encoder.encode(&mut self.cells)?;
        self.cells.clear();
        Ok(encoded)
    }
}
