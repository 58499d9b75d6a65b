//! `jsonl`: a JSON object a line; `--key` and `--value` name its fields, and without `--value` the whole
//! line is the value. A string stands for its text, anything else for its JSON. Blank lines are passed over.

use std::fmt;
use std::io::Read;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::window::Window;
use super::{Pair, Position, Source, Trouble, TroubleKind};

/// See the module.
pub(crate) struct Jsonl<R> {
    window: Window<R>,
    key: String,
    value: Option<String>,
    key_text: Vec<u8>,
    value_text: Vec<u8>,
}

impl<R: Read> Jsonl<R> {
    pub(crate) fn new(mut window: Window<R>, key: String, value: Option<String>) -> Result<Self, Trouble> {
        window.skip_byte_order_mark()?;
        Ok(Self { window, key, value, key_text: Vec::new(), value_text: Vec::new() })
    }
}

impl<R: Read> Source for Jsonl<R> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        loop {
            let line = match self.window.line_end(0) {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
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
            let place = self.window.start()..self.window.start() + line.content;
            self.window.consume(line.next);
            let line = self.window.taken(place);
            let wanted = Wanted { key: &self.key, value: self.value.as_deref() };
            let (key, value) = wanted.find(line)?;
            let value = match value {
                Some(value) => text(value, &mut self.value_text)?,
                None => line,
            };
            return Ok(Some((text(key, &mut self.key_text)?, value)));
        }
    }

    fn position(&self) -> Position {
        self.window.record()
    }

    fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}

/// The bytes that a JSON value stands for.
fn text<'a>(raw: &'a RawValue, unescaped: &'a mut Vec<u8>) -> Result<&'a [u8], Trouble> {
    let json = raw.get();
    let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Ok(json.as_bytes());
    };
    if !inner.contains('\\') {
        return Ok(inner.as_bytes());
    }
    *unescaped = serde_json::from_str::<String>(json).map_err(not_json)?.into_bytes();
    Ok(unescaped)
}

/// The fields to find. Of a field that is there twice, the last counts, as for most readers of JSON.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    key: &'a str,
    value: Option<&'a str>,
}

impl Wanted<'_> {
    fn find(self, line: &[u8]) -> Result<(&RawValue, Option<&RawValue>), Trouble> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let found = json.deserialize_map(self).map_err(not_json)?;
        json.end().map_err(not_json)?;
        let key =
            found.0.ok_or_else(|| TroubleKind::bad(format!("the object has no field {:?}", self.key)))?;
        match (self.value, found.1) {
            (Some(name), None) => Err(TroubleKind::bad(format!("the object has no field {name:?}"))),
            (_, value) => Ok((key, value)),
        }
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = (Option<&'de RawValue>, Option<&'de RawValue>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = (None, None);
        while let Some(name) = map.next_key_seed(Name(self))? {
            match name {
                Match::Neither => {
                    map.next_value::<IgnoredAny>()?;
                }
                Match::Key => found.0 = Some(map.next_value()?),
                Match::Value => found.1 = Some(map.next_value()?),
                Match::Both => {
                    found.0 = Some(map.next_value()?);
                    found.1 = found.0;
                }
            }
        }
        Ok(found)
    }
}

/// Which wanted field a name is.
enum Match {
    Neither,
    Key,
    Value,
    Both,
}

struct Name<'a>(Wanted<'a>);

impl<'de> serde::de::DeserializeSeed<'de> for Name<'_> {
    type Value = Match;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Match, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Match;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Match, E> {
        Ok(match (name == self.0.key, self.0.value == Some(name)) {
            (true, true) => Match::Both,
            (true, false) => Match::Key,
            (false, true) => Match::Value,
            (false, false) => Match::Neither,
        })
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Match, E> {
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
