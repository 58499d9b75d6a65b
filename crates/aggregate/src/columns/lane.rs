//! [`Lane`]: one column of a batch of rows, borrowed, as Arrow lays columns out.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_base::{Error, Result};

use crate::digits::write_int;
use crate::value::Value;

/// A number that no other dictionary in this process has.
pub fn new_dictionary() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Bits, the lowest of a byte first, from a bit on.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Bits<'a> {
    /// The bits of these bytes behind the first `offset`.
    pub fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    /// How many there are.
    fn len(&self) -> usize {
        (8 * self.bytes.len()).saturating_sub(self.offset)
    }

    /// A bit; none is set behind the last.
    #[inline]
    pub fn get(&self, at: usize) -> bool {
        let at = at + self.offset;
        self.bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

/// Texts one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    offsets: &'a [i32],
    bytes: &'a [u8],
}

impl<'a> Texts<'a> {
    /// The texts between each offset into `bytes` and the next. An error where an offset is less than the one before
    /// it, or leads beyond the bytes.
    pub fn new(offsets: &'a [i32], bytes: &'a [u8]) -> Result<Self> {
        let is_ordered = offsets.is_sorted() && offsets.first().is_none_or(|first| *first >= 0);
        let end = offsets.last().map_or(0, |last| usize::try_from(*last).unwrap_or(usize::MAX));
        if is_ordered && end <= bytes.len() {
            return Ok(Self { offsets, bytes });
        }
        Err(Error::invalid("the offsets of texts lead beyond their bytes, or back"))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A text; an empty one behind the last.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u8] {
        match self.offsets.get(at..) {
            Some([start, end, ..]) => self.bytes.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// The values of a lane. What is under a null does not matter.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Items<'a> {
    /// Integers.
    I64(&'a [i64]),
    /// Floating-point numbers. Each is what its shortest text says, and minus zero is zero.
    F64(&'a [f64]),
    /// The same of 32 bits.
    F32(&'a [f32]),
    /// This many truths.
    Bool(Bits<'a>, usize),
    /// Texts, or any bytes.
    Bytes(Texts<'a>),
    /// Texts of a dictionary by their places in it.
    Codes {
        /// The places.
        codes: &'a [i32],
        /// The dictionary.
        texts: Texts<'a>,
        /// A number that [`new_dictionary`] gave for this very dictionary, or 0. What is known of a dictionary's texts is
        /// kept by it, over all rows that are added.
        dictionary: u64,
    },
    /// This many nulls.
    Null(usize),
}

/// One column of some rows. Its values are to functions and as keys what [`value`](Self::value) gives.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    items: Items<'a>,
    valid: Option<Bits<'a>>,
}

/// What kind of values a lane has, as far as keys are concerned: those of one kind are equal where their words are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Integers.
    I64,
    /// Floating-point numbers.
    F64,
    /// The same of 32 bits.
    F32,
    /// Truths.
    Bool,
    /// Texts, with or without a dictionary.
    Bytes,
    /// None.
    Null,
}

impl<'a> Lane<'a> {
    /// The values, of which those are nulls whose bit of `valid` is not set. An error where there are fewer bits than
    /// values, or a value's place is not in its dictionary.
    pub fn new(items: Items<'a>, valid: Option<Bits<'a>>) -> Result<Self> {
        let lane = Self { items, valid };
        let (len, truths) = match items {
            Items::Bool(bits, len) => (len, bits.len()),
            _ => (lane.len(), usize::MAX),
        };
        if valid.is_some_and(|valid| valid.len() < len) || truths < len {
            return Err(Error::invalid(format!("fewer bits than the {len} values of their lane")));
        }
        if let Items::Codes { codes, texts, .. } = items {
            let is_known = |code: i32| usize::try_from(code).is_ok_and(|code| code < texts.len());
            let all = codes.iter().fold(true, |all, code| all & is_known(*code));
            if !all && codes.iter().enumerate().any(|(at, code)| lane.is_present(at) && !is_known(*code)) {
                return Err(Error::invalid(format!("a place outside a dictionary of {}", texts.len())));
            }
        }
        Ok(lane)
    }

    /// Nothing but nulls.
    pub fn nulls(len: usize) -> Self {
        Self { items: Items::Null(len), valid: None }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self.items {
            Items::I64(values) => values.len(),
            Items::F64(values) => values.len(),
            Items::F32(values) => values.len(),
            Items::Bytes(texts) => texts.len(),
            Items::Codes { codes, .. } => codes.len(),
            Items::Bool(_, len) | Items::Null(len) => len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    pub fn items(&self) -> Items<'a> {
        self.items
    }

    /// What kind they are.
    pub fn kind(&self) -> Kind {
        match self.items {
            Items::I64(_) => Kind::I64,
            Items::F64(_) => Kind::F64,
            Items::F32(_) => Kind::F32,
            Items::Bool(..) => Kind::Bool,
            Items::Bytes(_) | Items::Codes { .. } => Kind::Bytes,
            Items::Null(_) => Kind::Null,
        }
    }

    /// Whether any value may be a null.
    #[inline]
    pub fn has_nulls(&self) -> bool {
        self.valid.is_some() || matches!(self.items, Items::Null(_))
    }

    /// Whether there is a value at this place.
    #[inline]
    pub fn is_present(&self, at: usize) -> bool {
        self.valid.is_none_or(|valid| valid.get(at)) && !matches!(self.items, Items::Null(_))
    }

    /// The text at this place, where the lane has texts; an empty one under a null.
    #[inline]
    pub(crate) fn text(&self, at: usize) -> &'a [u8] {
        match self.items {
            Items::Bytes(texts) => texts.get(at),
            Items::Codes { codes, texts, .. } => {
                codes.get(at).map_or(&[], |code| texts.get(usize::try_from(*code).unwrap_or(usize::MAX)))
            }
            _ => &[],
        }
    }

    /// The value at this place, as functions take it.
    pub fn value(&self, at: usize) -> Value<'a> {
        if !self.is_present(at) {
            return Value::Null;
        }
        match self.items {
            Items::I64(values) => values.get(at).map_or(Value::Null, |value| Value::I64(*value)),
            Items::F32(values) => {
                values.get(at).map_or(Value::Null, |value| Value::F32(plain_single(*value)))
            }
            Items::F64(values) => values.get(at).map_or(Value::Null, |value| shown(*value)),
            Items::Bool(bits, _) => Value::Bool(bits.get(at)),
            Items::Bytes(_) | Items::Codes { .. } => Value::bytes(self.text(at)),
            Items::Null(_) => Value::Null,
        }
    }

    /// Appends the text of the value at this place, as it stands in a key. `false` where there is none.
    pub(crate) fn write_text(&self, at: usize, out: &mut Vec<u8>) -> bool {
        if !self.is_present(at) {
            return false;
        }
        match self.items {
            Items::I64(values) => write_int(values.get(at).copied().unwrap_or(0), out),
            Items::Bytes(_) | Items::Codes { .. } => out.extend_from_slice(self.text(at)),
            _ => self.value(at).write_text(out),
        }
        true
    }

    /// Some of the values.
    pub(crate) fn slice(&self, from: usize, len: usize) -> Self {
        let bits = |bits: Bits<'a>| Bits { offset: bits.offset + from, ..bits };
        fn part<T>(all: &[T], from: usize, len: usize) -> &[T] {
            all.get(from..from + len).unwrap_or_default()
        }
        let items = match self.items {
            Items::I64(values) => Items::I64(part(values, from, len)),
            Items::F64(values) => Items::F64(part(values, from, len)),
            Items::F32(values) => Items::F32(part(values, from, len)),
            Items::Bool(truths, _) => Items::Bool(bits(truths), len),
            Items::Bytes(texts) => {
                Items::Bytes(Texts { offsets: part(texts.offsets, from, len + 1), ..texts })
            }
            Items::Codes { codes, texts, dictionary } => {
                Items::Codes { codes: part(codes, from, len), texts, dictionary }
            }
            Items::Null(_) => Items::Null(len),
        };
        Self { items, valid: self.valid.map(bits) }
    }
}

/// A floating-point number as the one that stands for all with its text.
#[inline]
pub(crate) fn plain(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// The same of 32 bits.
#[inline]
pub(crate) fn plain_single(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

/// A floating-point number as its shortest text: a large whole one is not that of all its digits.
pub(crate) fn shown(value: f64) -> Value<'static> {
    Value::Bytes(Cow::Owned(Value::F64(plain(value)).to_text().into_owned()))
}
