//! What keys look like to people, and the order they are shown in.

use forebay_aggregate::Value;

use super::cells::Cells;
use super::ngrams::{self, Words};
use super::{kmers, phrases};
use forebay_aggregate::group_key as keys;

/// What the column of a cube's groupings is called.
pub(super) const GROUPING: &str = "grouping";

/// How keys are shown.
pub(super) enum Labels {
    /// As they are.
    Plain,
    /// As words.
    Ngrams {
        /// The words in their order.
        words: Words,
        /// From the numbers that keys have to those.
        renumbered: Vec<u32>,
    },
    /// As words that the key has.
    Phrases,
    /// As this many letters.
    Kmers(usize),
    /// As columns.
    Columns(Vec<String>),
    /// As columns and their grouping.
    Cube(Vec<String>),
}

impl Labels {
    /// What a key's cells are called.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Plain | Self::Ngrams { .. } | Self::Phrases | Self::Kmers(_) => vec!["key".into()],
            Self::Columns(names) => names.clone(),
            Self::Cube(names) => names.iter().cloned().chain([GROUPING.into()]).collect(),
        }
    }

    /// The memory that showing them takes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Ngrams { words, renumbered } => words.memory_bytes() + size_of_val(&renumbered[..]),
            _ => 0,
        }
    }

    /// Whether keys in the order of their bytes are in the order to show them in.
    pub(super) fn keep_order(&self) -> bool {
        !matches!(self, Self::Ngrams { .. })
    }

    /// The key to show and to sort by instead of `key`.
    pub(super) fn shown<'a>(&self, key: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let Self::Ngrams { renumbered, .. } = self else { return key };
        buffer.clear();
        for number in ngrams::numbers(key) {
            let number = renumbered.get(number as usize).copied().unwrap_or(number);
            buffer.extend_from_slice(&number.to_be_bytes());
        }
        buffer
    }

    /// The text of a key that [`shown`](Self::shown) gave, where it is one.
    fn text<'a>(&self, key: &'a [u8], text: &'a mut Vec<u8>) -> &'a [u8] {
        text.clear();
        match self {
            Self::Plain | Self::Columns(_) | Self::Cube(_) => return key,
            Self::Ngrams { words, .. } => {
                for (place, number) in ngrams::numbers(key).enumerate() {
                    text.extend_from_slice(if place > 0 { b" " } else { b"" });
                    text.extend_from_slice(words.word(number));
                }
            }
            Self::Phrases => phrases::text(key, text),
            Self::Kmers(k) => kmers::letters(*k, key, text),
        }
        text
    }

    /// The cells of a key that [`shown`](Self::shown) gave.
    pub(super) fn cells<'a>(&self, key: &'a [u8], text: &'a mut Vec<u8>, cells: &mut Vec<Value<'a>>) {
        let columns = |key: &'a [u8], cells: &mut Vec<Value<'a>>| {
            let cell = |pushed| keys::column(pushed).map_or(Value::Null, Value::bytes);
            cells.extend(keys::split(key).map(cell));
        };
        match self {
            Self::Columns(_) => columns(key, cells),
            Self::Cube(_) => {
                let (grouping, key) = keys::split_grouping(key);
                columns(key, cells);
                cells.push(Value::from(i64::from(grouping.bits())));
            }
            _ => cells.push(Value::bytes(self.text(key, text))),
        }
    }

    /// Cells of such keys, and this many answers.
    pub(super) fn empty_cells(&self, answers: usize) -> Cells {
        let names = self.names().len();
        let groupings = usize::from(matches!(self, Self::Cube(_)));
        Cells::new(names - groupings, groupings + answers)
    }

    /// Puts the cells of a key that [`shown`](Self::shown) gave into the row that is being made.
    pub(super) fn fill(&self, key: &[u8], text: &mut Vec<u8>, cells: &mut Cells) {
        let (names, key) = match self {
            Self::Columns(names) => (names, key),
            Self::Cube(names) => {
                let (grouping, key) = keys::split_grouping(key);
                cells.values(names.len(), std::iter::once(Value::from(i64::from(grouping.bits()))));
                (names, key)
            }
            _ => return cells.text(0, Some(self.text(key, text))),
        };
        let mut at = 0;
        keys::for_each_column(key, |column| {
            if at < names.len() {
                cells.text(at, column);
            }
            at += 1;
        });
        (at..names.len()).for_each(|at| cells.text(at, None));
    }
}
