//! How the rows of a file are written.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::input::delimited::Dialect;
use crate::input::format::ending;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    Delimited(Dialect),
    Jsonl,
    Parquet,
}

impl FromStr for RowFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "csv" => Ok(Self::Delimited(Dialect::Csv)),
            "tsv" => Ok(Self::Delimited(Dialect::Tsv)),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "parquet" => Ok(Self::Parquet),
            _ => Err("one of csv, tsv, jsonl, parquet".into()),
        }
    }
}

impl fmt::Display for RowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delimited(Dialect::Csv) => "csv",
            Self::Delimited(Dialect::Tsv) => "tsv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        })
    }
}

impl RowFormat {
    /// What a file's name tells, with or without what packing and rotating put behind.
    pub(super) fn of(path: &Path) -> Option<Self> {
        ending(path)?.parse().ok()
    }
}
