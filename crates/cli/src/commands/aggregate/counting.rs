//! Words, n-grams and k-mers of the inputs, given to the engine one by one.

use forebay::aggregate::functions::Count;
use forebay::limits::KEY_BYTES_MAX;

use super::engine::{Engine, Means};
use super::inputs::{Input, Inputs};
use super::labels::Labels;
use super::reached::{Extent, Place, Separator, State};
use super::words::{Case, Words};
use super::{kmers, ngrams, phrases, sequences};
use crate::failure::Failure;
use crate::input::Position;

/// Adds the words of all inputs.
pub(super) fn words(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    case: Case,
) -> Result<Labels, Failure> {
    for path in inputs.files {
        let Some(mut input) = inputs.open(path, engine, Separator::Space)? else { continue };
        let Position { mut number, offset: start } = input.start;
        Words::new(input.take(), &input.name, case).for_each(|word, offset| {
            number += 1;
            let at = Position { number, offset: start + offset };
            inputs.note(engine.add(word, ()), &input.name, || at)?;
            if engine.is_due() {
                let end = at.offset + word.len() as u64;
                let at = Position { number, offset: end };
                input.reach(Place { at, end, extent: Extent::Part, state: State::Stateless }, engine)?;
            }
            Ok(())
        })?;
        input.end(number, None, State::Stateless, inputs.progress, engine)?;
    }
    Ok(Labels::Plain)
}

/// Adds the n-grams of all inputs, under keys of their words' numbers.
pub(super) fn ngrams(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    words: usize,
    case: Case,
    means: Means,
) -> Result<Labels, Failure> {
    let mut vocabulary = ngrams::Vocabulary::new(means.memory_bytes);
    let mut window = ngrams::Window::new(words);
    for path in inputs.files {
        let Some(Input { name, from, .. }) = inputs.open(path, engine, Separator::Space)? else { continue };
        window.clear();
        let mut number = 0;
        Words::new(from, &name, case).for_each(|word, offset| {
            number += 1;
            let at = Position { number, offset };
            if word.len() > KEY_BYTES_MAX {
                window.clear();
                return inputs.refuse(&name, at, &format!("a word of more than {KEY_BYTES_MAX} bytes"));
            }
            match window.push(vocabulary.number(word)?) {
                Some(key) => inputs.note(engine.add(key, ()), &name, || at),
                None => Ok(()),
            }
        })?;
    }
    let (words, renumbered) = vocabulary.sorted();
    Ok(Labels::Ngrams { words, renumbered })
}

/// As [`ngrams`], with words in the keys.
pub(super) fn phrases(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    words: usize,
    case: Case,
) -> Result<Labels, Failure> {
    let mut phrase = phrases::Phrase::new(words);
    for path in inputs.files {
        let Some(mut input) = inputs.open(path, engine, Separator::Space)? else { continue };
        let Position { mut number, offset: start } = input.start;
        phrase.clear();
        Words::new(input.take(), &input.name, case).for_each(|word, offset| {
            let before = Position { number, offset: start + offset };
            number += 1;
            let at = Position { number, ..before };
            if word.len() > KEY_BYTES_MAX {
                phrase.clear();
                return inputs.refuse(&input.name, at, &format!("a word of more than {KEY_BYTES_MAX} bytes"));
            }
            if let Some(key) = phrase.push(word, before) {
                inputs.note(engine.add(key, ()), &input.name, || at)?;
            }
            if engine.is_due() {
                let end = at.offset + word.len() as u64;
                let at = phrase.next().unwrap_or(Position { number, offset: end });
                input.reach(Place { at, end, extent: Extent::Part, state: State::Stateless }, engine)?;
            }
            Ok(())
        })?;
        input.end(number, phrase.next(), State::Stateless, inputs.progress, engine)?;
    }
    Ok(Labels::Phrases)
}

/// Adds the k-mers of all inputs.
pub(super) fn kmers<W: kmers::Word>(
    inputs: &mut Inputs<'_, '_>,
    engine: &mut Engine<Count>,
    k: usize,
) -> Result<Labels, Failure> {
    for path in inputs.files {
        let Some(mut input) = inputs.open(path, engine, Separator::None)? else { continue };
        let (roller, mut mark) = match &input.state {
            State::Sequence(records, kept) => (kmers::Roller::<W>::resume(kept), Some(records.clone())),
            _ => (None, None),
        };
        let mut roller = roller.unwrap_or_else(|| kmers::Roller::new(k));
        sequences::for_each(input.take(), &input.name, mark.clone(), |piece| match piece {
            sequences::Piece::Next => {
                roller.clear();
                Ok(())
            }
            sequences::Piece::Bases(bases) => {
                roller.feed(bases, |key| inputs.note(engine.add(key, ()), &input.name, Position::default))
            }
            sequences::Piece::Malformed(at, reason) => inputs.refuse(&input.name, at, reason),
            sequences::Piece::Mark(records) => {
                if engine.is_due() {
                    let (at, state) = (records.position(), State::Sequence(records.clone(), roller.kept()));
                    input.reach(Place { at, end: at.offset, extent: Extent::Part, state }, engine)?;
                }
                mark = Some(records.clone());
                Ok(())
            }
        })?;
        let (next, state) = match mark {
            Some(records) => (Some(records.position()), State::Sequence(records, roller.kept())),
            None => (None, State::Stateless),
        };
        input.end(0, next, state, inputs.progress, engine)?;
    }
    Ok(Labels::Kmers(k))
}
