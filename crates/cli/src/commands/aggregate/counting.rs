//! Words, n-grams and k-mers of the inputs, added to a store one by one: it keeps how far each input was read.

use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::functions::Count;

use super::engine::{Engine, Sink};
use super::inputs::{Input, Inputs};
use super::labels::Labels;
use super::reached::{Extent, Place, Separator, State};
use super::reads::Reads;
use super::sequences::{Piece, Records};
use super::words::{Case, Words};
use super::{kmers, phrases, sequences};
use crate::failure::Failure;
use crate::input::Position;
use crate::input::window::Tail;

/// Adds the words of all inputs.
pub(super) fn words(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    case: Case,
) -> Result<Labels, Failure> {
    inputs.for_each(engine, |inputs, path, engine| {
        let Some(mut input) = inputs.open(path, engine, Separator::Space)? else { return Ok(()) };
        let Position { mut number, offset: start } = input.start;
        let mut behind = input.start;
        let shown = Words::new(input.take(), &input.name, case, input.tail).for_each(|word, offset| {
            number += 1;
            let at = Position { number, offset: start + offset };
            inputs.note(engine.add(word, ()), &input.name, || at)?;
            behind = Position { number, offset: at.offset + word.len() as u64 };
            if engine.is_due() { input.reach(part(behind, behind), engine) } else { Ok(()) }
        });
        let left = shown.inspect_err(|_| inputs.note_reached(&input, part(behind, behind), engine))?;
        input.end(number, left, None, State::Stateless, inputs, engine)
    })?;
    Ok(Labels::Plain)
}

/// The place up to which everything is added, and from which words are read on.
fn part(end: Position, at: Position) -> Place {
    Place { at, end: end.offset, extent: Extent::Part, state: State::Stateless }
}

/// Adds the n-grams of all inputs, under keys that have their words.
pub(super) fn phrases(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    words: usize,
    case: Case,
) -> Result<Labels, Failure> {
    let mut phrase = phrases::Phrase::new(words);
    inputs.for_each(engine, |inputs, path, engine| {
        let Some(mut input) = inputs.open(path, engine, Separator::Space)? else { return Ok(()) };
        let Position { mut number, offset: start } = input.start;
        phrase.clear();
        // Behind the last word that was taken, and where the words begin that the next one makes an n-gram with.
        let (mut behind, mut next) = (input.start, input.start);
        let shown = Words::new(input.take(), &input.name, case, input.tail).for_each(|word, offset| {
            let before = Position { number, offset: start + offset };
            number += 1;
            let at = Position { number, ..before };
            if word.len() > KEY_BYTES_MAX {
                phrase.clear();
                inputs.refuse(&input.name, at, &format!("a word of more than {KEY_BYTES_MAX} bytes"))?;
            } else if let Some(key) = phrase.push(word, before) {
                inputs.note(engine.add(key, ()), &input.name, || at)?;
            }
            behind = Position { number, offset: at.offset + word.len() as u64 };
            next = phrase.next().unwrap_or(behind);
            if engine.is_due() { input.reach(part(behind, next), engine) } else { Ok(()) }
        });
        let left = shown.inspect_err(|_| inputs.note_reached(&input, part(behind, next), engine))?;
        input.end(number, left, phrase.next(), State::Stateless, inputs, engine)
    })?;
    Ok(Labels::Phrases)
}

/// The place up to which all k-mers are added.
fn within<W: kmers::Word>(records: Option<&Records>, roller: &kmers::Roller<W>) -> Place {
    let at = records.map_or_else(Position::default, Records::position);
    let state = records.map_or(State::Stateless, |records| State::Sequence(records.clone(), roller.kept()));
    Place { at, end: at.offset, extent: Extent::Part, state }
}

/// Adds the k-mers of all inputs.
pub(super) fn kmers<W: kmers::Word>(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    k: usize,
) -> Result<Labels, Failure> {
    inputs.for_each(engine, |inputs, path, engine| {
        let Some(mut input) = inputs.open(path, engine, Separator::None)? else { return Ok(()) };
        kmers_of::<W>(&mut input, inputs, engine, k)
    })?;
    Ok(Labels::Kmers(k))
}

/// Adds the k-mers of an input.
fn kmers_of<W: kmers::Word>(
    input: &mut Input<'_>,
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    k: usize,
) -> Result<(), Failure> {
    let (roller, mut mark) = match &input.state {
        State::Sequence(records, kept) => (kmers::Roller::<W>::resume(kept), Some(records.clone())),
        _ => (None, None),
    };
    let mut reads = Reads::new(roller.unwrap_or_else(|| kmers::Roller::new(k)), mark.as_ref());
    // Whether all that was added stands before the mark.
    let mut is_marked = true;
    let from = input.take();
    let shown = sequences::for_each(from, &input.name, mark.clone(), input.tail, |piece| {
        let add = |kmer: W| {
            is_marked = false;
            inputs.note(engine.add(kmers::key(k, &kmer.to_bytes()), ()), &input.name, Position::default)
        };
        match piece {
            Piece::Next => reads.begin(),
            Piece::Record => reads.begin_held(),
            Piece::Bases(bases) => reads.take(bases, add)?,
            Piece::Whole => reads.release(add)?,
            Piece::Malformed(records, reason) => {
                if reads.forget() {
                    (mark, is_marked) = (Some(records.before_record()), true);
                }
                inputs.refuse(&input.name, records.record(), reason)?;
            }
            Piece::Mark(records) => {
                let records = if reads.is_held() { records.before_record() } else { records.clone() };
                if engine.is_due() {
                    input.reach(within(Some(&records), &reads.roller), engine)?;
                }
                (mark, is_marked) = (Some(records), true);
            }
        }
        Ok(())
    });
    let place = within(mark.as_ref(), &reads.roller);
    if shown.is_err() && is_marked {
        inputs.note_reached(input, place, engine);
        return shown;
    }
    shown?;
    let is_whole = !reads.is_held() && mark.as_ref().is_none_or(Records::is_whole);
    if input.tail == Tail::Left && !is_whole {
        inputs.tally.unfinished_files += 1;
        tell!("forebay: {}: the last record has no end yet; --final takes it for malformed", input.name);
        // It is not read to its end, so that --final comes back to it.
        return input.reach(place, engine);
    }
    input.end(0, 0, mark.map(|records| records.position()), place.state, inputs, engine)
}
