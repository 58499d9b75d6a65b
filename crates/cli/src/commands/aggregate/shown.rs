//! Groups of a store, or of a program's aggregator, one by one: for `get` and `scan`.
//!
//! A key is given and shown as `aggregate` shows it: columns with tabs between them, `\N` for no value, words with
//! spaces. Where neither a store nor a program says what keys are, they are bytes.

use std::convert::Infallible;
use std::sync::Arc;

use forebay::{Snapshot, limits};
use forebay_aggregate::{Aggregate, BuiltIn, Composite, Grouping, Value};

use super::by::{self, By};
use super::kmers;
use super::labels::Labels;
use super::order::Arrangement;
use super::phrases;
use super::programs::Program;
use super::sheet::{self, Encoder, Header, Sheet, Style};
use super::store;
use super::tables::{INPUTS, RESCUED, SHAPE};
use crate::failure::Failure;
use crate::form::Form;
use crate::keys::Notation;
use crate::screen;
use forebay_aggregate::group_key as keys;

/// What a table's groups are.
pub(crate) struct Shown {
    labels: Labels,
    answers: Answers,
    names: Vec<String>,
}

/// What finishes states.
enum Answers {
    Store(Composite),
    /// Each answer is that of the function at its place.
    Program(Arc<Composite>, Vec<usize>),
    Type(BuiltIn),
}

impl Shown {
    /// Of a table as a snapshot has it; nothing where it keeps values as they are.
    pub(crate) fn of(snapshot: &Snapshot, table: &str) -> Result<Option<Self>, Failure> {
        let Some(state_type) = snapshot.state_type(table)? else { return Ok(None) };
        let function = BuiltIn::of(&state_type).filter(|function| function.unfinished().is_empty());
        let function = function.ok_or_else(|| {
            Failure::work(format!(
                "table `{table}` keeps states of `{state_type}`, a program's own function: only that program can read them"
            ))
        })?;
        let inputs = snapshot.table(&format!("{table}{INPUTS}"));
        let shape = match inputs {
            Ok(inputs) => {
                if let Some(losses) = store::told_losses(table, snapshot.get(&inputs, RESCUED)?) {
                    tell!("forebay: {}", screen::message(&losses));
                }
                snapshot.get(&inputs, SHAPE)?.map(|text| store::parse_shape(&text)).transpose()?
            }
            Err(_) => None,
        };
        let of_type = |labels| {
            let names = function.names().into_iter().map(str::to_string).collect();
            Ok(Some(Self { labels, names, answers: Answers::Type(function) }))
        };
        let Some(shape) = shape else {
            return match Program::of(snapshot, table, &state_type)? {
                None => of_type(Labels::Plain),
                Some(Program { labels, answers: None }) => of_type(labels),
                Some(Program { labels, answers: Some((functions, named)) }) => {
                    let (names, places) = named.into_iter().unzip();
                    Ok(Some(Self { labels, names, answers: Answers::Program(functions, places) }))
                }
            };
        };
        match &shape.by {
            By::Word => of_type(Labels::Plain),
            By::Ngram(_) => of_type(Labels::Phrases),
            By::Kmer(k) => of_type(Labels::Kmers(*k)),
            By::Columns(columns) if shape.counts() => of_type(Labels::Columns(columns.clone())),
            By::Columns(columns) => {
                let table = by::Table::new(columns, &shape.functions, None)?;
                let functions = by::functions(&shape.functions, &table.columns)?;
                let names = functions.names().map(str::to_string).collect();
                let labels = Labels::Columns(columns.clone());
                Ok(Some(Self { labels, names, answers: Answers::Store(functions) }))
            }
        }
    }

    /// The key that a text stands for.
    pub(crate) fn key(&self, text: &[u8]) -> Result<Vec<u8>, Failure> {
        let wrong = |what: String| Failure::Usage(format!("{}: {what}", String::from_utf8_lossy(text)));
        match &self.labels {
            Labels::Columns(_) | Labels::Cube(_) => {
                let (cells, names): (Vec<&[u8]>, _) =
                    (text.split(|&byte| byte == b'\t').collect(), self.labels.names());
                if cells.len() != names.len() {
                    return Err(wrong(format!(
                        "a group of this table has {} columns, with tabs between them: {}",
                        names.len(),
                        names.join(", ")
                    )));
                }
                let (Labels::Cube(_), Some((grouping, cells))) = (&self.labels, cells.split_last()) else {
                    return Ok(joined(&cells));
                };
                let bits = std::str::from_utf8(grouping).ok().and_then(|bits| bits.parse::<u16>().ok());
                let bits =
                    bits.ok_or_else(|| wrong("the last column is the number of the grouping".into()))?;
                let mut key = Vec::new();
                keys::push_grouping(Grouping::from_bits(bits), &joined(cells), &mut key);
                Ok(key)
            }
            Labels::Phrases => Ok(phrases::key(text)),
            Labels::Kmers(k) => {
                let mut key = None;
                let mut roller = kmers::Roller::<u128>::new(*k);
                let Ok(()) = roller.feed(text, |found| {
                    key = Some(kmers::key(*k, &kmers::Word::to_bytes(found)).to_vec());
                    Ok::<_, Infallible>(())
                });
                key.filter(|_| text.len() == *k)
                    .ok_or_else(|| wrong(format!("a group of this table has {k} bases, such as ACGT")))
            }
            _ => Ok(text.to_vec()),
        }
    }

    /// What the keys begin with that begin like a text.
    pub(crate) fn prefix(&self, text: &[u8]) -> Result<Vec<u8>, Failure> {
        let (mut key, may_go_on) = match &self.labels {
            Labels::Columns(_) => {
                let cells: Vec<&[u8]> = text.split(|&byte| byte == b'\t').collect();
                (joined(&cells), cells.last() != Some(&&b"\\N"[..]))
            }
            Labels::Phrases => (phrases::key(text), true),
            Labels::Cube(_) => {
                let reason = "groups by fewer columns are in the order of their groupings: give a range with --hex, or \
                              scan all";
                return Err(Failure::work(reason));
            }
            Labels::Kmers(_) => {
                let reason =
                    "k-mers have no ranges: of a k-mer and its reverse complement the lesser is kept";
                return Err(Failure::work(reason));
            }
            _ => return Ok(text.to_vec()),
        };
        if may_go_on {
            key.truncate(key.len().saturating_sub(keys::END_BYTES));
        }
        Ok(key)
    }

    /// Begins to show groups on standard output.
    pub(crate) fn sheet(&self, form: Form, notation: Notation) -> Result<GroupSheet<'_>, Failure> {
        let style = match (form, &self.labels) {
            (Form::Json, _) => Style::Json,
            (Form::Text, Labels::Columns(_) | Labels::Cube(_)) => Style::Tsv,
            (Form::Text, _) => Style::Plain,
        };
        let mut sheet = Sheet::open(None, style)?;
        let keys = match notation {
            Notation::Plain => self.labels.names(),
            Notation::Hex => vec!["key".into()],
        };
        let names = keys.into_iter().chain(self.names.iter().cloned()).collect();
        let encoder = sheet.begin(names, &[], Header::Hidden, Arrangement::ByKey).map_err(sheet::failure)?;
        Ok(GroupSheet { shown: self, sheet, encoder, notation })
    }
}

/// Groups on standard output.
pub(crate) struct GroupSheet<'a> {
    shown: &'a Shown,
    sheet: Sheet,
    encoder: Encoder,
    notation: Notation,
}

/// Whether the key is shown beside its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Shown,
    Hidden,
}

impl GroupSheet<'_> {
    /// Shows a group; one that is not there has answers of no value.
    pub(crate) fn row(&mut self, at: Key, key: &[u8], state: Option<&[u8]>) -> Result<(), Failure> {
        let (mut text, mut cells) =
            (Vec::with_capacity(2 * limits::KEY_BYTES_MAX.min(key.len())), Vec::new());
        match (at, self.notation) {
            (Key::Hidden, _) => {}
            (Key::Shown, Notation::Hex) => {
                self.notation.write(key, &mut text).map_err(|error| Failure::output(&error))?;
                cells.push(Value::bytes(&text[..]));
            }
            (Key::Shown, Notation::Plain) => self.shown.labels.cells(key, &mut text, &mut cells),
        }
        match (state, &self.shown.answers) {
            (Some(state), Answers::Store(functions)) => cells.extend(functions.finish(state)?),
            (Some(state), Answers::Program(functions, places)) => {
                let answers = functions.finish(state)?;
                cells.extend(places.iter().map(|&place| answers[place].clone()));
            }
            (Some(state), Answers::Type(function)) => cells.extend(function.finish(state)?),
            (None, _) => cells.extend(self.shown.names.iter().map(|_| Value::Null)),
        }
        self.sheet.row(&self.encoder, &cells).map_err(sheet::failure)
    }

    /// Sends on what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.sheet.flush().map_err(sheet::failure)
    }
}

/// The key of cells as they are shown.
fn joined(cells: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::new();
    for cell in cells {
        match *cell {
            b"\\N" => keys::push(&mut key, None),
            cell => keys::push(&mut key, Some(&unescaped(cell))),
        }
    }
    key
}

/// A cell without the backslashes that tabs and line ends stand behind.
fn unescaped(cell: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(cell.len());
    let mut bytes = cell.iter().copied();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'\\' => match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    text
}
