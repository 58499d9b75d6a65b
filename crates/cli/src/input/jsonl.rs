//! `jsonl`: a JSON object a line, of which some fields are read. For `load` they are `--key` and `--value`, and
//! without `--value` the whole line is the value. A string stands for its text, anything else for its JSON.
//! Blank lines are passed over.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{Empty, Read};
use std::ops::Range;

use forebay_aggregate::names::similar;
use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::blocks::{Blocks, Quoting};
use super::window::{Block, Window};
use super::{BlockRows, Pair, Position, Rows, Source, Trouble, TroubleKind};

/// See the module.
pub(crate) struct Jsonl<R> {
    window: Window<R>,
    fields: Vec<Field>,
    /// Which field is the value of a pair; the whole line without one.
    value: Option<usize>,
    /// The line, as a place for [`Window::taken`].
    line: Range<usize>,
    /// Fields that are not read, while some that are were in no record yet.
    others: BTreeSet<String>,
}

/// A field that is read.
struct Field {
    name: String,
    found: Found,
    /// Its text, where that does not stand in the line.
    text: Vec<u8>,
    /// Whether any record had it.
    was_found: bool,
}

/// This many names of other fields are kept, to tell what a field that is in no record may have been meant to be.
const OTHERS_MAX: usize = 256;

/// What an object has under a field's name. Places are counted from the line's start.
enum Found {
    Nothing,
    /// Anything but a string: its JSON.
    Json(Range<usize>),
    /// A string: what stands between its quotes.
    Plain(Range<usize>),
    /// A string with escapes.
    Escaped,
}

impl<R: Read> Jsonl<R> {
    /// A source of keys and values.
    pub(crate) fn new(window: Window<R>, key: String, value: Option<String>) -> Result<Self, Trouble> {
        let is_key = value.as_ref() == Some(&key);
        let place = value.as_ref().map(|_| usize::from(!is_key));
        let names = std::iter::once(key).chain(value.filter(|_| !is_key));
        Ok(Self { value: place, ..Self::with_fields(window, names)? })
    }

    /// Rows of which these fields are read; no name comes twice.
    pub(crate) fn with_fields(
        mut window: Window<R>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Trouble> {
        window.skip_byte_order_mark()?;
        let field = |name| Field { name, found: Found::Nothing, text: Vec::new(), was_found: false };
        Ok(Self {
            window,
            fields: names.into_iter().map(field).collect(),
            value: None,
            line: 0..0,
            others: BTreeSet::new(),
        })
    }

    /// The rows behind those that were read, as blocks of about this length.
    pub(crate) fn into_blocks(self, block_bytes: usize) -> Blocks<R> {
        Blocks::new(self.window, Quoting::Plain, block_bytes)
    }

    /// What a field stands for.
    fn text(&self, at: usize) -> Option<&[u8]> {
        let place = match &self.fields[at].found {
            Found::Nothing => return None,
            Found::Escaped => return Some(&self.fields[at].text),
            Found::Json(place) | Found::Plain(place) => place,
        };
        Some(self.window.taken(self.line.start + place.start..self.line.start + place.end))
    }

    /// The same of a field that must be there.
    fn wanted(&self, at: usize) -> Result<&[u8], Trouble> {
        let missing = || TroubleKind::bad(format!("the object has no field {:?}", self.fields[at].name));
        self.text(at).ok_or_else(missing)
    }
}

impl BlockRows for Jsonl<Empty> {
    fn begin(&mut self, block: Block) -> Vec<u8> {
        std::mem::replace(&mut self.window, Window::over(block)).into_bytes()
    }
}

impl<R: Read> Rows for Jsonl<R> {
    fn advance(&mut self) -> Result<bool, Trouble> {
        loop {
            let line = match self.window.line_end(0) {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(false),
                Err(trouble) => {
                    self.window.begin_record();
                    self.window.skip_line()?;
                    return Err(trouble);
                }
            };
            if self.window.at(0..line.content).trim_ascii().is_empty() {
                self.window.consume(line.next);
                continue;
            }
            self.window.begin_record();
            self.line = self.window.start()..self.window.start() + line.content;
            self.window.consume(line.next);
            find(self.window.taken(self.line.clone()), &mut self.fields, &mut self.others)?;
            return Ok(true);
        }
    }

    /// A field that is null is none.
    fn column(&self, at: usize) -> Option<&[u8]> {
        let is_json = matches!(self.fields[at].found, Found::Json(_));
        self.text(at).filter(|text| !is_json || *text != b"null")
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn end(&self) -> u64 {
        self.window.offset()
    }

    fn absent(&self) -> Vec<(usize, Option<String>)> {
        let absent = self.fields.iter().enumerate().filter(|(_, field)| !field.was_found);
        let like = |name: &str| similar(name, self.others.iter().map(String::as_str)).map(str::to_string);
        absent.map(|(place, field)| (place, like(&field.name))).collect()
    }

    fn left(&self) -> u64 {
        self.window.left() as u64
    }
}

impl<R: Read> Source for Jsonl<R> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        if !self.advance()? {
            return Ok(None);
        }
        self.wanted(0)?;
        let null = || TroubleKind::bad(format!("the key, field {:?}, is null", self.fields[0].name));
        let key = self.column(0).ok_or_else(null)?;
        let value = match self.value {
            Some(at) => self.wanted(at).map(|_| self.column(at).unwrap_or_default())?,
            None => self.window.taken(self.line.clone()),
        };
        Ok(Some((key, value)))
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}

/// Finds the fields of the object that `line` is.
fn find(line: &[u8], fields: &mut [Field], others: &mut BTreeSet<String>) -> Result<(), Trouble> {
    fields.iter_mut().for_each(|field| field.found = Found::Nothing);
    let keeps_others = others.len() < OTHERS_MAX && fields.iter().any(|field| !field.was_found);
    let mut json = serde_json::Deserializer::from_slice(line);
    json.deserialize_map(Object { line, fields, others: keeps_others.then_some(others) })
        .map_err(not_json)?;
    json.end().map_err(not_json)
}

/// Of a field that is there twice, the last counts, as for most readers of JSON.
struct Object<'a> {
    line: &'a [u8],
    fields: &'a mut [Field],
    /// Where the names of others go.
    others: Option<&'a mut BTreeSet<String>>,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(wanted) = map.next_key_seed(Name(self.fields, self.others.as_deref_mut()))? {
            match wanted {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(at) => {
                    let json = map.next_value::<&RawValue>()?.get();
                    // Both are of the line, so the difference is where the value stands in it.
                    let start = json.as_ptr().addr() - self.line.as_ptr().addr();
                    self.fields[at].take(json, start).map_err(serde::de::Error::custom)?;
                }
            }
        }
        Ok(())
    }
}

impl Field {
    /// Notes the value whose JSON stands at `start`.
    fn take(&mut self, json: &str, start: usize) -> serde_json::Result<()> {
        self.was_found = true;
        let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        self.found = match inner {
            None => Found::Json(start..start + json.len()),
            Some(inner) if memchr(b'\\', inner.as_bytes()).is_none() => {
                Found::Plain(start + 1..start + 1 + inner.len())
            }
            Some(_) => {
                self.text = serde_json::from_str::<String>(json)?.into_bytes();
                Found::Escaped
            }
        };
        Ok(())
    }
}

/// Finds out which field a name is.
struct Name<'a>(&'a [Field], Option<&'a mut BTreeSet<String>>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let place = self.0.iter().position(|field| field.name == name);
        if let (None, Some(others)) = (place, self.1) {
            others.insert(name.to_string());
        }
        Ok(place)
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Self::Value, E> {
        Err(E::custom("a field's name is not UTF-8"))
    }
}

/// The parser's reason, with the column where it counts: records are lines, so the line says nothing.
fn not_json(error: serde_json::Error) -> Trouble {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    TroubleKind::bad(match error.column() {
        0 => format!("not JSON: {reason}"),
        column => format!("not JSON: {reason}, at byte {column} of the line"),
    })
}
