//! What lookups answered, kept until the clock is stopped, and then compared with what they had to answer.

use std::fmt;

use crate::Failure;
use crate::data::{Presence, Records};

/// Longer values are cut in messages.
const SHOWN_BYTES: usize = 32;

/// What a key has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// This version of the record's value.
    Version { number: u64, version: u32 },
    /// Nothing, though it was written once.
    Removed { number: u64 },
    /// Nothing: the key beside the record's, which nobody writes.
    Never { number: u64 },
}

impl Expected {
    /// Which key is meant.
    pub(crate) fn key(self) -> (u64, Presence) {
        match self {
            Self::Version { number, .. } | Self::Removed { number } => (number, Presence::Present),
            Self::Never { number } => (number, Presence::Absent),
        }
    }
}

/// An answer that is not what was written: the run is worth nothing.
#[derive(Debug)]
pub(crate) struct WrongAnswer {
    key: Vec<u8>,
    expected: Option<Vec<u8>>,
    found: Option<Vec<u8>>,
}

impl WrongAnswer {
    pub(crate) fn new(key: &[u8], expected: Option<&[u8]>, found: Option<&[u8]>) -> Self {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Self { key: key.to_vec(), expected: owned(expected), found: owned(found) }
    }
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, expected, found } = self;
        write!(f, "wrong answer: key {}: expected ", Hex(Some(key)))?;
        write!(f, "{}, found {}", Hex(expected.as_deref()), Hex(found.as_deref()))
    }
}

impl std::error::Error for WrongAnswer {}

struct Hex<'a>(Option<&'a [u8]>);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.0 else { return f.write_str("nothing") };
        bytes.iter().take(SHOWN_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if bytes.len() > SHOWN_BYTES {
            write!(f, "... ({} bytes)", bytes.len())?;
        }
        Ok(())
    }
}

/// Answers to a group of lookups, in their order.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    values: Vec<u8>,
    /// Where each value lies in `values`; `None` for an absent key.
    spans: Vec<Option<(usize, usize)>>,
    scratch: Vec<u8>,
}

impl Answers {
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.spans.clear();
    }

    /// Where the engine appends a value, and what is told to [`answered`](Self::answered) afterwards.
    pub(crate) fn value(&mut self) -> (&mut Vec<u8>, usize) {
        let start = self.values.len();
        (&mut self.values, start)
    }

    /// The answer to the next lookup: whether it was there, its value appended from `start` on.
    pub(crate) fn answered(&mut self, start: usize, found: bool) {
        self.spans.push(found.then_some((start, self.values.len())));
    }

    /// Makes room for the answers to `count` lookups that come in any order; gives the place of the first.
    pub(crate) fn reserve(&mut self, count: usize) -> usize {
        let first = self.spans.len();
        self.spans.resize(first + count, None);
        first
    }

    /// The answer at a place that was reserved.
    pub(crate) fn place(&mut self, place: usize, value: Option<&[u8]>) {
        if let Some(value) = value {
            let start = self.values.len();
            self.values.extend_from_slice(value);
            if let Some(span) = self.spans.get_mut(place) {
                *span = Some((start, self.values.len()));
            }
        }
    }

    /// Compares all answers with what they had to be.
    pub(crate) fn check(&mut self, records: &Records, expected: &[Expected]) -> Result<(), Failure> {
        if self.spans.len() != expected.len() {
            return Err(format!("{} answers to {} lookups", self.spans.len(), expected.len()).into());
        }
        for (span, expected) in self.spans.iter().zip(expected) {
            let found = span.map(|(start, end)| &self.values[start..end]);
            check(records, *expected, found, &mut self.scratch)?;
        }
        Ok(())
    }
}

/// Compares one answer with what it had to be.
pub(crate) fn check(
    records: &Records,
    expected: Expected,
    found: Option<&[u8]>,
    scratch: &mut Vec<u8>,
) -> Result<(), Failure> {
    let value = match expected {
        Expected::Version { number, version } => {
            scratch.resize(records.value_bytes, 0);
            records.fill_value(number, version, scratch);
            Some(&scratch[..])
        }
        Expected::Removed { .. } | Expected::Never { .. } => None,
    };
    if found == value {
        return Ok(());
    }
    let (number, presence) = expected.key();
    Err(Box::new(WrongAnswer {
        key: records.key(number, presence),
        expected: value.map(<[u8]>::to_vec),
        found: found.map(<[u8]>::to_vec),
    }))
}
