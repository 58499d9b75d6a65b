//! What groups are made by, and of what: `--by`, `--fn` and what belongs to them, as the command line gives
//! them.

use std::fmt;
use std::str::FromStr;

use forebay_aggregate::names::{quoted, split_words, unquoted};
use forebay_aggregate::{Composite, FUNCTIONS, columns_of};
use serde::{Deserialize, Serialize};

use super::{kmers, ngrams};
use crate::failure::Failure;

/// What a group is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum By {
    /// A word.
    Word,
    /// This many words that follow each other.
    Ngram(usize),
    /// This many bases that follow each other.
    Kmer(usize),
    /// The values of these columns.
    Columns(Vec<String>),
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, most: usize| match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(format!("use a number from 1 to {most}")),
        };
        match text.split_once(':') {
            None if text == "word" => Ok(Self::Word),
            Some(("ngram", words)) => number(words, ngrams::WORDS_MAX).map(Self::Ngram),
            Some(("kmer", bases)) => number(bases, kmers::BASES_MAX).map(Self::Kmer),
            Some(("column", names)) => {
                let names: Vec<String> =
                    split_words(names, ',').into_iter().map(|name| unquoted(name).into_owned()).collect();
                match names.iter().any(String::is_empty) {
                    true => Err("write column:NAME, or column:NAME,NAME".into()),
                    false => Ok(Self::Columns(names)),
                }
            }
            _ => Err("one of word, ngram:N, kmer:K, column:NAME[,NAME…]".into()),
        }
    }
}

impl TryFrom<String> for By {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<By> for String {
    fn from(by: By) -> Self {
        by.to_string()
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word => f.write_str("word"),
            Self::Ngram(words) => write!(f, "ngram:{words}"),
            Self::Kmer(bases) => write!(f, "kmer:{bases}"),
            Self::Columns(names) => {
                let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
                write!(f, "column:{}", names.join(","))
            }
        }
    }
}

/// The columns that are read, and the functions over them.
#[derive(Debug)]
pub(super) struct Table {
    /// The columns of the group key.
    pub(super) keys: Vec<String>,
    /// All columns that are read, those of the key first.
    pub(super) columns: Vec<String>,
}

impl Table {
    /// The columns that grouping by `keys` and `functions` ask for. Every column of the output has a name of
    /// its own, also beside `grouping`, where there is one.
    pub(super) fn new(keys: &[String], functions: &str, grouping: Option<&str>) -> Result<Self, Failure> {
        let mut columns: Vec<String> = Vec::new();
        for key in keys {
            if columns.contains(key) {
                return Err(Failure::Usage(format!("--by names column {key} twice")));
            }
            columns.push(key.clone());
        }
        for function in split_words(functions, ',') {
            for column in columns_of(function) {
                if !column.is_empty() && columns.iter().all(|known| *known != column) {
                    columns.push(column.into_owned());
                }
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for name in keys.iter().map(String::as_str).chain(grouping).chain(split_words(functions, ',')) {
            if names.contains(&name) {
                return Err(Failure::Usage(format!(
                    "two columns of the output would be called {name}; columns can be named by number too"
                )));
            }
            names.push(name);
        }
        Ok(Self { keys: keys.to_vec(), columns })
    }
}

/// The functions over these columns.
pub(super) fn functions(list: &str, columns: &[String]) -> Result<Composite, Failure> {
    Composite::parse(list, columns).map_err(|error| Failure::Usage(format!("--fn: {error}")))
}

/// The functions that there are, for `--help`.
pub(super) fn functions_help() -> String {
    let width = FUNCTIONS.iter().map(|(form, _)| form.len()).max().unwrap_or(0);
    FUNCTIONS.iter().map(|(form, what)| format!("  {form:width$}  {what}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_names() {
        for text in ["word", "ngram:3", "kmer:32", "column:a,b c", "column:\"a,b\",c"] {
            assert_eq!(text.parse::<By>().map(|by| by.to_string()), Ok(text.into()));
        }
        assert_eq!("word".parse(), Ok(By::Word));
        assert_eq!("ngram:3".parse(), Ok(By::Ngram(3)));
        assert_eq!("kmer:64".parse(), Ok(By::Kmer(64)));
        assert_eq!("column:\"a,\"\"b\"\":\",c".parse(), Ok(By::Columns(vec!["a,\"b\":".into(), "c".into()])));
        assert_eq!("column:a,b c".parse(), Ok(By::Columns(vec!["a".into(), "b c".into()])));
        for wrong in [
            "",
            "words",
            "word:1",
            "ngram",
            "ngram:0",
            "ngram:33",
            "kmer:65",
            "kmer:x",
            "column:",
            "column:a,",
        ] {
            assert!(wrong.parse::<By>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_functions_columns_are_known_by_its_form() {
        for (function, columns) in [
            ("count", &[][..]),
            ("count:a", &["a"]),
            ("sum:a", &["a"]),
            ("top_k:a:10", &["a"]),
            ("top_k:a:10:b", &["a", "b"]),
            ("last:a:b", &["a", "b"]),
            ("r2:a:b", &["a", "b"]),
            ("sample:a:3:w", &["a", "w"]),
            ("string_agg:a:;", &["a"]),
            ("histogram:a:0;1", &["a"]),
            ("nonsense:a", &[]),
            ("last:\"a:b\":\"c,d\"", &["a:b", "c,d"]),
        ] {
            assert_eq!(columns_of(function).collect::<Vec<_>>(), columns, "{function}");
        }
        let keys = ["k".to_string(), "a".to_string()];
        let table = Table::new(&keys, "sum:a,last:b:k,max:b", None).unwrap();
        assert_eq!(table.columns, ["k", "a", "b"]);
        assert!(Table::new(&["count".into()], "count", None).is_err());
        assert!(Table::new(&["grouping".into()], "count", Some("grouping")).is_err());
        assert!(Table::new(&["a".into(), "a".into()], "count", None).is_err());
        assert!(Table::new(&keys, "sum:a,sum:a", None).is_err());
    }
}
