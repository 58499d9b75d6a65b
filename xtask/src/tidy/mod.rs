//! The house rules that a machine can check. `STYLE.md` tells them in words; `cargo test` runs them.
//!
//! Every check is a function from sources to findings; only this file and [`sources`] touch the disk.

mod arrows;
mod assertions;
mod code;
mod docs;
mod glossary;
mod mask;
mod rooms;
mod sources;
mod words;

use std::fmt;
use std::path::Path;

pub use assertions::Density;
pub use sources::Source;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the workspace.
    pub path: String,
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

impl Finding {
    fn new(source: &Source, line: usize, text: impl Into<String>) -> Self {
        Self { path: source.path.clone(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// How many assertions each library crate of the tree at `root` has.
pub fn densities(root: &Path) -> Vec<Density> {
    sources::read(root).map_or_else(|_| Vec::new(), |sources| assertions::densities(&sources))
}

/// Every broken rule of the tree at `root`, in the order of its files.
pub fn check(root: &Path) -> Vec<Finding> {
    let sources = match sources::read(root) {
        Ok(sources) => sources,
        Err(reason) => return vec![Finding { path: root.display().to_string(), line: 1, text: reason }],
    };
    let mut findings = check_sources(&sources);
    findings.extend(docs::links(root, &sources));
    findings.extend(glossary::check(&sources));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

fn check_sources(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        findings.extend(words::check(source));
        if source.path.ends_with(".rs") {
            findings.extend(code::check(source));
        }
        if source.path.ends_with("Cargo.toml") {
            findings.extend(arrows::check(source));
        }
    }
    findings.extend(code::stale_exceptions(sources));
    findings.extend(code::orphans(sources));
    findings.extend(rooms::check(sources));
    findings.extend(assertions::check(sources));
    findings
}
