//! What the groups of a run are: what the command line asks for, or what a store keeps, which must agree.

use forebay_aggregate::names::split_words;
use serde::{Deserialize, Serialize};

use super::args::AggregateArgs;
use super::by::By;
use super::words::Case;
use crate::failure::Failure;

/// The version of how keys and states are made, and of what is kept of files; a store keeps it. Version 1 had sums of
/// integers only.
const KEYS_VERSION: u32 = 2;
/// The functions where none are given.
const COUNT: &str = "count";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    keys_version: u32,
    pub(super) by: By,
    /// The functions, with commas between them.
    pub(super) functions: String,
    fold_case: bool,
}

impl Shape {
    /// What the command line asks for; nothing where it does not say by what.
    pub(super) fn asked(args: &AggregateArgs) -> Option<Self> {
        let functions = functions(args).unwrap_or_else(|| COUNT.into());
        Some(Self { fold_case: args.fold_case, ..Self::of(args.by.clone()?, functions) })
    }

    /// These groups, with these functions.
    pub(super) fn of(by: By, functions: String) -> Self {
        Self { keys_version: KEYS_VERSION, by, functions, fold_case: false }
    }

    /// Whether the command line asks for nothing else than this, which a table keeps; what it leaves out it does
    /// not ask for.
    pub(super) fn agrees(&self, args: &AggregateArgs, table: &str) -> Result<(), Failure> {
        if self.keys_version != KEYS_VERSION {
            return Err(Failure::work(format!(
                "table `{table}` has groups of version {}, which an older program made, and this one knows version \
                 {KEYS_VERSION}; make another --table from the files",
                self.keys_version
            )));
        }
        let differs = |option: &str, asked: Option<String>, kept: String| match asked {
            Some(asked) if asked != kept => Err(Failure::work(format!(
                "table `{table}` was made with {option} {kept}, not {asked}; leave {option} out, or name another --table"
            ))),
            _ => Ok(()),
        };
        differs("--by", args.by.as_ref().map(By::to_string), self.by.to_string())?;
        differs("--fn", functions(args), self.functions.clone())?;
        match args.fold_case && !self.fold_case {
            true => Err(Failure::work(format!(
                "table `{table}` was made without --fold-case; leave it out, or name another --table"
            ))),
            false => Ok(()),
        }
    }

    /// What becomes of upper case in words.
    pub(super) fn case(&self) -> Case {
        if self.fold_case { Case::Folded } else { Case::Kept }
    }

    /// Whether groups are only counted.
    pub(super) fn counts(&self) -> bool {
        self.functions == COUNT
    }
}

/// The functions that the command line names.
fn functions(args: &AggregateArgs) -> Option<String> {
    let lists = args.functions.iter().flat_map(|list| split_words(list, ','));
    let names: Vec<_> = lists.map(str::trim).collect();
    (!names.is_empty()).then(|| names.join(","))
}
