//! Fault rules: which operation on which file fails, and how.
//!
//! A rule is four words, `operation files selection fault`, such as `write *.list #7 no-space`:
//! - operation: `read write sync set_len reserve create open list rename remove link sync_dir lock any`;
//! - files: a file name in which `*` stands for anything;
//! - selection: `#n` the n-th match (from 1), `from:n` that and all later ones, or `all`;
//! - fault: `no-space`; `io-error`; `short`, a write that does half of its work before an I/O error;
//!   `lost`, a sync that fails so that the caller cannot know what is on disk.
//!
//! **Invariant:** a rule counts its matches from the moment it is made.

use std::path::Path;
use std::str::FromStr;

use forebay_base::{Error, Result};

/// The names of operations that rules and traces use.
pub(super) const OPERATIONS: [&str; 15] = [
    "read",
    "write",
    "sync",
    "set_len",
    "reserve",
    "create",
    "open",
    "list",
    "rename",
    "remove",
    "link",
    "create_dir",
    "remove_dir",
    "sync_dir",
    "lock",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NoSpace,
    IoError,
    Short,
    Lost,
}

#[derive(Debug, Clone, Copy)]
enum Selection {
    Nth(u64),
    From(u64),
}

/// One rule and how often it matched.
#[derive(Debug)]
pub(super) struct Rule {
    operation: String,
    files: String,
    selection: Selection,
    fault: Fault,
    matches: u64,
}

impl Rule {
    /// The fault this rule has for an operation on `paths`, which it counts if it matches.
    pub(super) fn fault(&mut self, operation: &str, paths: &[&Path]) -> Option<Fault> {
        debug_assert!(OPERATIONS.contains(&operation), "no rule can name {operation}");
        let named = |path: &&Path| {
            let name = path.file_name().unwrap_or_default();
            matches(self.files.as_bytes(), name.as_encoded_bytes())
        };
        if !(self.operation == "any" || self.operation == operation) || !paths.iter().any(named) {
            return None;
        }
        self.matches += 1;
        let selected = match self.selection {
            Selection::Nth(n) => self.matches == n,
            Selection::From(n) => self.matches >= n,
        };
        selected.then_some(self.fault)
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: &str| Error::invalid(format!("fault rule `{text}`: {what}"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[operation, files, selection, fault] = words.as_slice() else {
            return Err(wrong("want `operation files selection fault`, as in `write *.list #7 no-space`"));
        };
        if operation != "any" && !OPERATIONS.contains(&operation) {
            return Err(wrong(&format!(
                "no operation {operation}; want any or one of {}",
                OPERATIONS.join(", ")
            )));
        }
        Ok(Self {
            operation: operation.to_owned(),
            files: files.to_owned(),
            selection: selection_of(selection)
                .ok_or_else(|| wrong("want a selection `#n`, `from:n` or `all`"))?,
            fault: fault_of(fault)
                .ok_or_else(|| wrong("want a fault `no-space`, `io-error`, `short` or `lost`"))?,
            matches: 0,
        })
    }
}

fn selection_of(word: &str) -> Option<Selection> {
    let selection = if let Some(n) = word.strip_prefix('#') {
        Selection::Nth(n.parse().ok()?)
    } else if let Some(n) = word.strip_prefix("from:") {
        Selection::From(n.parse().ok()?)
    } else {
        (word == "all").then_some(Selection::From(1))?
    };
    let (Selection::Nth(n) | Selection::From(n)) = selection;
    (n > 0).then_some(selection)
}

fn fault_of(word: &str) -> Option<Fault> {
    match word {
        "no-space" => Some(Fault::NoSpace),
        "io-error" => Some(Fault::IoError),
        "short" => Some(Fault::Short),
        "lost" => Some(Fault::Lost),
        _ => None,
    }
}

/// Whether `name` is `pattern`, in which each `*` stands for any text.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        Some((byte, rest)) => {
            name.split_first().is_some_and(|(first, name)| first == byte && matches(rest, name))
        }
    }
}
