//! The rooms of the upper floors: which folder or file of a crate may name which.

use std::collections::BTreeMap;

use super::mask::code_only;
use super::{Finding, Source};

/// A crate whose rooms are checked.
struct House {
    path: &'static str,
    /// From the bottom up, each with the rooms that it may name.
    rooms: &'static [(&'static str, &'static [&'static str])],
    /// Files that are no rooms: all may name them.
    for_all: &'static [&'static str],
}

const ENGINE: House = House {
    path: "crates/forebay/src/",
    rooms: &[
        ("pool", &[]),
        ("context", &["pool"]),
        ("versions", &["context"]),
        ("read", &["context", "versions"]),
        ("changes", &["context", "versions"]),
        ("space", &["context", "versions"]),
        ("memory", &["pool", "context", "versions"]),
        ("write", &["context", "versions", "space", "memory"]),
        ("transactions", &["versions", "read", "write"]),
        ("background", &["pool", "context", "versions", "space", "memory", "write"]),
        ("history", &["context", "versions", "memory", "write", "background"]),
        ("relayout", &["context", "versions", "read", "space", "memory", "write", "background"]),
        ("deferred", &["context"]),
        (
            "engine",
            &[
                "context",
                "versions",
                "space",
                "memory",
                "write",
                "background",
                "history",
                "relayout",
                "deferred",
            ],
        ),
        ("open", &["pool", "context", "versions", "changes", "memory", "background", "engine"]),
        (
            "api",
            &[
                "context",
                "versions",
                "read",
                "changes",
                "space",
                "memory",
                "write",
                "transactions",
                "background",
                "history",
                "relayout",
                "deferred",
                "engine",
                "open",
            ],
        ),
        ("simulate", &["api"]),
        ("advise", &["api", "simulate"]),
    ],
    for_all: &["options", "lib", "examples"],
};

/// A layout is a folder; `options` and `registry` have a line for each family.
const LAYOUTS: House = House {
    path: "crates/layouts/src/",
    rooms: &[
        ("dialogue", &[]),
        ("stored_rule", &[]),
        ("rule", &["stored_rule"]),
        ("files", &["rule"]),
        ("seam", &["files"]),
        ("inventory", &[]),
        ("simulation", &["seam", "inventory"]),
        ("wb_tree", &["rule", "files", "seam", "inventory", "simulation"]),
        ("run_set", &["rule", "files", "seam", "inventory", "simulation"]),
        ("layout", &["run_set"]),
        ("options", &["rule", "layout"]),
        ("convert", &["files", "run_set"]),
        (
            "registry",
            &[
                "rule",
                "files",
                "seam",
                "inventory",
                "simulation",
                "wb_tree",
                "run_set",
                "layout",
                "options",
                "convert",
            ],
        ),
        ("reorder_target", &["rule", "files", "seam", "run_set", "options", "registry"]),
    ],
    for_all: &["lib"],
};

/// Every room that is named where it must not be. Tests may name all.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    [ENGINE, LAYOUTS].iter().flat_map(|house| check_house(house, sources)).collect()
}

fn check_house(house: &House, sources: &[Source]) -> Vec<Finding> {
    let doors = doors(house, sources);
    let mut findings = Vec::new();
    for source in sources {
        let Some(path) = source.path.strip_prefix(house.path) else { continue };
        let room = path.split_once('/').map_or(path.trim_end_matches(".rs"), |(room, _)| room);
        if house.for_all.contains(&room) || path.contains("/tests/") || path.ends_with("/tests.rs") {
            continue;
        }
        let Some((_, allowed)) = house.rooms.iter().find(|(name, _)| *name == room) else {
            let what = format!("{room} is no room: add it to the table of rooms");
            findings.push(Finding::new(source, 1, what));
            continue;
        };
        let code = code_only(&source.text);
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (name, line) in named(code) {
            let other = doors.get(&name).unwrap_or(&name);
            let is_room = house.rooms.iter().any(|(name, _)| name == other);
            if is_room && other != room && !allowed.contains(&&**other) {
                let what = format!("{room} must not know {other} ({name})");
                findings.push(Finding::new(source, line, what));
            }
        }
    }
    findings
}

/// By what names the crate gives out what its rooms have: in which room each is.
fn doors(house: &House, sources: &[Source]) -> BTreeMap<String, String> {
    let lib = sources.iter().find(|source| source.path.strip_prefix(house.path) == Some("lib.rs"));
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
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("{}{path}", ENGINE.path),
            text: (*text).into(),
        };
        let sources: Vec<Source> = sources.iter().map(source).collect();
        let findings = check(&sources).into_iter().filter(|finding| finding.path.starts_with(ENGINE.path));
        findings.map(|finding| finding.to_string().replace(ENGINE.path, "")).collect()
    }

    #[test]
    fn a_room_names_what_is_below_it() {
        let lib = ("lib.rs", "pub use api::{Batch, Table};\npub use options::Options;\n");
        let fine =
            "use crate::versions::State;\nuse crate::{Options, context::Context};\n// crate::api::Table\n";
        assert_eq!(texts(&[lib, ("read/mod.rs", fine)]), Vec::<String>::new());
        let tests = "use crate::versions::State;\n#[cfg(test)]\nmod tests { use crate::Table; }\n";
        assert_eq!(texts(&[lib, ("read/mod.rs", tests)]), Vec::<String>::new());
        assert_eq!(
            texts(&[lib, ("engine.rs", "use crate::open::open;\n")]),
            ["engine.rs:1: engine must not know open (open)"]
        );
        let wrong = "use crate::{Options, Table};\nlet x = crate::open::open();\n";
        let said = [
            "read/mod.rs:1: read must not know api (Table)",
            "read/mod.rs:2: read must not know open (open)",
        ];
        assert_eq!(texts(&[lib, ("read/mod.rs", wrong)]), said);
        let seam = Source {
            path: "crates/layouts/src/seam/mod.rs".into(),
            text: "use crate::run_set::Slice;\n".into(),
        };
        assert_eq!(check(&[seam]).len(), 1, "the seam knows no layout");
        assert_eq!(
            texts(&[("attic/a.rs", "")]),
            ["attic/a.rs:1: attic is no room: add it to the table of rooms"]
        );
    }
}
