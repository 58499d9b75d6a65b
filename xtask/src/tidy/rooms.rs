//! The rooms of the engine: which folder of `crates/forebay/src` may name which.

use std::collections::{BTreeMap, BTreeSet};

use super::mask::code_only;
use super::{Finding, Source};

const HOUSE: &str = "crates/forebay/src/";

/// A room, and the rooms that it may name. Each may name `engine` and `options`; `engine` holds parts of all.
const ROOMS: &[(&str, &[&str])] = &[
    ("versions", &[]),
    ("retained", &["versions"]),
    ("space", &["versions"]),
    ("memory", &["versions"]),
    ("read", &["versions"]),
    ("write", &["versions"]),
    ("background", &["versions", "retained", "space", "memory", "read", "write"]),
    ("history", &["versions", "retained", "space", "memory", "read", "write"]),
    ("relayout", &["versions", "retained", "space", "memory", "read", "write", "history"]),
    (
        "open",
        &["versions", "retained", "space", "memory", "read", "write", "background", "history", "relayout"],
    ),
    (
        "api",
        &[
            "versions",
            "retained",
            "space",
            "memory",
            "read",
            "write",
            "background",
            "history",
            "relayout",
            "open",
        ],
    ),
    ("simulate", &["api"]),
];
const FOR_ALL: [&str; 2] = ["engine", "options"];
/// Files that name a room all the same. The list only gets shorter.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("background/mod.rs", "open"),
    ("history/checkpoint.rs", "open"),
    ("open/destroy.rs", "api"),
    ("versions/replay.rs", "space"),
    ("versions/state.rs", "space"),
    ("versions/version_set/mod.rs", "retained"),
];

/// Every room that is named where it must not be, and every exception that is not needed any more.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let doors = doors(sources);
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for source in sources {
        let Some((room, _)) = source.path.strip_prefix(HOUSE).and_then(|path| path.split_once('/')) else {
            continue;
        };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            findings.push(Finding::new(
                source,
                1,
                format!("{room} is no room: add it to the table of rooms"),
            ));
            continue;
        };
        for (name, line) in named(&code_only(&source.text)) {
            let other = doors.get(&name).unwrap_or(&name);
            let is_room = ROOMS.iter().any(|(name, _)| name == other);
            if !is_room || other == room || FOR_ALL.contains(&&**other) || allowed.contains(&&**other) {
                continue;
            }
            match EXCEPTIONS.iter().find(|(path, to)| source.path.ends_with(path) && to == other) {
                Some(exception) => _ = needed.insert(*exception),
                None => {
                    findings.push(Finding::new(
                        source,
                        line,
                        format!("{room} must not know {other} ({name})"),
                    ));
                }
            }
        }
    }
    let this = Source { path: "xtask/src/tidy/rooms.rs".into(), text: String::new() };
    for (path, room) in EXCEPTIONS.iter().filter(|exception| !needed.contains(*exception)) {
        findings.push(Finding::new(&this, 1, format!("{path} needs no exception for {room} any more")));
    }
    findings
}

/// By what names the crate gives out what its rooms have: in which room each is.
fn doors(sources: &[Source]) -> BTreeMap<String, String> {
    let lib = sources.iter().find(|source| source.path.strip_prefix(HOUSE) == Some("lib.rs"));
    let code = lib.map(|lib| code_only(&lib.text)).unwrap_or_default();
    let mut doors = BTreeMap::new();
    for given in code.split("pub use ").skip(1) {
        let Some((room, rest)) = given.split_once("::") else { continue };
        let names = rest.split(';').next().unwrap_or_default();
        for name in names.split(['{', '}', ',']).map(str::trim).filter(|name| !name.is_empty()) {
            doors.insert(name.to_string(), room.to_string());
        }
    }
    doors
}

/// What code names of its own crate, at the first place of a path, and on which lines.
fn named(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let line = 1 + code[..at].matches('\n').count();
        let rest = &code[at + path.len()..];
        let list = rest.strip_prefix('{').and_then(|list| list.split('}').next());
        let names = list.map_or_else(|| vec![rest], |list| list.split(',').collect());
        for name in names {
            let name = name.trim_start();
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            if end > 0 {
                found.push((name[..end].to_string(), line));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sources: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| Source { path: format!("{HOUSE}{path}"), text: (*text).into() };
        let sources: Vec<Source> = sources.iter().map(source).collect();
        let findings = check(&sources).into_iter().filter(|finding| finding.path.starts_with(HOUSE));
        findings.map(|finding| finding.to_string().replace(HOUSE, "")).collect()
    }

    #[test]
    fn a_room_names_what_is_below_it() {
        let lib = ("lib.rs", "pub use api::{Batch, Table};\npub use options::Options;\n");
        let fine =
            "use crate::versions::State;\nuse crate::{Options, engine::Engine};\n// crate::api::Table\n";
        assert_eq!(texts(&[lib, ("read/mod.rs", fine)]), Vec::<String>::new());
        let wrong = "use crate::{Options, Table};\nlet x = crate::open::open();\n";
        let said = [
            "read/mod.rs:1: read must not know api (Table)",
            "read/mod.rs:2: read must not know open (open)",
        ];
        assert_eq!(texts(&[lib, ("read/mod.rs", wrong)]), said);
        assert_eq!(
            texts(&[("attic/a.rs", "")]),
            ["attic/a.rs:1: attic is no room: add it to the table of rooms"]
        );
    }
}
