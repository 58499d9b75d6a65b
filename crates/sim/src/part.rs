//! Which part of a seed's history is done.
//!
//! **Invariant:** an operation that is left out changes nothing of what others are.

use std::fmt;
use std::str::FromStr;

use crate::options::PLAIN;

/// All of a seed's history, or some of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The numbers of the operations that are done, from and to, ends included; all, if there are none.
    only: Option<Vec<(u64, u64)>>,
    /// Options that are as plain as can be.
    pub(crate) plain: Vec<&'static str>,
}

impl Part {
    /// The same with just these operations, which ascend.
    pub(crate) fn narrowed(&self, numbers: &[u64]) -> Self {
        let mut only: Vec<(u64, u64)> = Vec::new();
        for &number in numbers {
            match only.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => only.push((number, number)),
            }
        }
        Self { only: Some(only), plain: self.plain.clone() }
    }

    /// The same without one of the options.
    pub(crate) fn with_plain(&self, name: &'static str) -> Self {
        let mut part = self.clone();
        part.plain.push(name);
        part
    }

    /// Whether an operation is done.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|(low, high)| (low..=high).contains(&&number)))
    }
}

impl FromStr for Part {
    type Err = String;

    /// `3-17,10004` or `all`, and behind a `/` the options that are plain.
    fn from_str(text: &str) -> Result<Self, String> {
        let (numbers, names) = text.split_once('/').unwrap_or((text, ""));
        let known = |name: &str| PLAIN.into_iter().find(|plain| *plain == name);
        let plain = names.split(',').filter(|name| !name.is_empty());
        let plain = plain.map(|name| known(name).ok_or_else(|| format!("`{name}` is none of {PLAIN:?}")));
        let plain = plain.collect::<Result<_, String>>()?;
        if numbers == "all" {
            return Ok(Self { only: None, plain });
        }
        let parse = |text: &str| text.parse::<u64>().map_err(|error| format!("`{text}`: {error}"));
        let range = |piece: &str| match piece.split_once('-') {
            Some((low, high)) => Ok((parse(low)?, parse(high)?)),
            None => parse(piece).map(|number| (number, number)),
        };
        let pieces = numbers.split(',').filter(|piece| !piece.is_empty());
        Ok(Self { only: Some(pieces.map(range).collect::<Result<_, String>>()?), plain })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = self.only.iter().flatten().map(|(low, high)| match low == high {
            true => low.to_string(),
            false => format!("{low}-{high}"),
        });
        match &self.only {
            None => f.write_str("all")?,
            Some(_) => f.write_str(&pieces.collect::<Vec<_>>().join(","))?,
        }
        if self.plain.is_empty() { Ok(()) } else { write!(f, "/{}", self.plain.join(",")) }
    }
}
