//! The names of the input formats, and what chooses a record's key and value in each.

use std::path::Path;
use std::str::FromStr;

use forebay::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_aggregate::names::similar;

/// How records stand in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The line is the key.
    Lines,
    /// Comma-separated, RFC 4180.
    Csv,
    /// Tab-separated, no quoting.
    Tsv,
    /// A JSON object a line.
    Jsonl,
    /// Rows of a Parquet file.
    Parquet,
    /// Binary records.
    Fixed { key_bytes: usize, value_bytes: usize },
}

impl Format {
    /// What a file's name tells, whatever packs it and however often it was rotated.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match ending(path)? {
            ending @ ("csv" | "tsv" | "jsonl" | "ndjson" | "parquet") => ending.parse().ok(),
            _ => None,
        }
    }
}

/// What tells a file's format in its name: `csv` of `x.csv`, and also of `x.csv.gz`, `x.csv.1` and
/// `x.csv-20260131.zst`.
pub(crate) fn ending(path: &Path) -> Option<&str> {
    let mut name = path.to_str()?;
    while let Some(shorter) = unrotated(name) {
        name = shorter;
    }
    name.rsplit_once('.').map(|(_, ending)| ending)
}

/// A name without the last of what packing and rotating files put behind it, if there is such.
pub(crate) fn unrotated(name: &str) -> Option<&str> {
    // Those that nothing here unpacks too: so it is their bytes that tell why they are not read.
    let unpacked = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".Z", ".zip"]
        .iter()
        .find_map(|packed| name.strip_suffix(packed));
    let unnumbered = || {
        let rest = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        (rest.len() < name.len()).then(|| rest.strip_suffix(['.', '-'])).flatten()
    };
    unpacked.or_else(unnumbered).filter(|rest| !rest.is_empty())
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "lines" => Ok(Self::Lines),
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "parquet" => Ok(Self::Parquet),
            _ => match text.strip_prefix("fixed:") {
                Some(sizes) => fixed(sizes),
                None => {
                    let like = similar(text, ["lines", "csv", "tsv", "jsonl", "parquet"]);
                    let like = like.map_or(String::new(), |like| format!("; did you mean {like}?"));
                    Err(format!("one of lines, csv, tsv, jsonl, parquet, fixed:KEY,VALUE{like}"))
                }
            },
        }
    }
}

fn fixed(sizes: &str) -> Result<Format, String> {
    let parsed = sizes.split_once(',').and_then(|(key, value)| {
        Some((key.trim().parse::<usize>().ok()?, value.trim().parse::<usize>().ok()?))
    });
    let Some((key_bytes, value_bytes)) = parsed else {
        return Err("write fixed:KEY,VALUE with two numbers of bytes, such as fixed:8,8".into());
    };
    if key_bytes == 0 {
        return Err("a key has at least one byte, or all records would be one".into());
    }
    if key_bytes > KEY_BYTES_MAX {
        return Err(format!("a key has at most {KEY_BYTES_MAX} bytes"));
    }
    if value_bytes > VALUE_BYTES_MAX {
        return Err(format!("a value has at most {VALUE_BYTES_MAX} bytes"));
    }
    Ok(Format::Fixed { key_bytes, value_bytes })
}

/// A column of a delimited record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    /// Its place, from 0.
    Place(usize),
    /// Its name in the header.
    Name(String),
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Name(text.into()));
        }
        match text.parse::<usize>() {
            Ok(place) if place > 0 => Ok(Self::Place(place - 1)),
            _ => Err("columns are counted from 1".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        assert_eq!("lines".parse(), Ok(Format::Lines));
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("b/a.jsonl.gz", Some(Format::Jsonl)),
            ("a.csv.bz2", Some(Format::Csv)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.csv.1", Some(Format::Csv)),
            ("a.tsv.12.gz", Some(Format::Tsv)),
            ("a.jsonl-20260131.zst", Some(Format::Jsonl)),
            ("a.csv.2026-01-31", Some(Format::Csv)),
            ("csv.1", None),
            (".1", None),
            ("a.txt", None),
            ("csv", None),
            ("a.lines", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
        assert_eq!("fixed:8,16".parse(), Ok(Format::Fixed { key_bytes: 8, value_bytes: 16 }));
        assert_eq!("fixed:8,0".parse(), Ok(Format::Fixed { key_bytes: 8, value_bytes: 0 }));
        for wrong in [
            "",
            "xml",
            "fixed",
            "fixed:8",
            "fixed:0,0",
            "fixed:0,8",
            "fixed:8,-1",
            "fixed:65537,0",
            "fixed:a,b",
        ] {
            assert!(wrong.parse::<Format>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn columns_are_places_or_names() {
        assert_eq!("1".parse(), Ok(Column::Place(0)));
        assert_eq!("id".parse(), Ok(Column::Name("id".into())));
        assert!("0".parse::<Column>().is_err());
    }
}
