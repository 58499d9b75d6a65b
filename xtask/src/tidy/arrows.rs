//! The crate arrows: which crate may know which, and that every crate takes the workspace's lints.

use super::{Finding, Source};

/// A crate's folder, without `crates/`, and the project's crates it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("buffer-tree", &["base"]),
    ("env", &["base"]),
    ("store", &["base", "env"]),
    ("cow-tree", &["base", "env", "store"]),
    ("layouts", &["base", "env", "buffer-tree", "store", "cow-tree"]),
    ("aggregate", &["base", "env", "store"]),
    ("forebay", &["base", "env", "buffer-tree", "store", "cow-tree", "layouts", "aggregate"]),
    ("units", &[]),
    ("server", &["env", "aggregate", "forebay", "groups"]),
    ("cli", &["env", "aggregate", "forebay", "groups", "server", "bench", "units"]),
    ("settings", &["forebay", "units"]),
    ("c", &["env", "forebay", "settings"]),
    ("groups", &["env", "aggregate", "forebay", "units"]),
    ("jni", &["env", "aggregate", "forebay", "groups", "settings", "units"]),
    ("python", &["env", "aggregate", "forebay", "groups", "settings", "units"]),
    ("bench/engine", &["env", "aggregate", "forebay", "units"]),
    ("bench/campaign", &[]),
    ("bench/rivals", &["forebay", "bench"]),
    ("bench/rivals/groups", &["base", "aggregate"]),
    ("testkit", &["base", "env", "buffer-tree", "store", "cow-tree", "layouts", "aggregate", "forebay"]),
    ("torture", &["env", "forebay", "testkit"]),
    (
        "sim",
        &["base", "env", "buffer-tree", "store", "cow-tree", "layouts", "aggregate", "forebay", "testkit"],
    ),
    (
        "fuzz",
        &[
            "base",
            "env",
            "buffer-tree",
            "store",
            "cow-tree",
            "layouts",
            "aggregate",
            "forebay",
            "server",
            "testkit",
        ],
    ),
];

/// What the tests of any crate may use besides.
const FOR_TESTS: [&str; 2] = ["testkit", "env"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if source.path == "Cargo.toml" {
        return findings;
    }
    if !inherits_lints(&source.text) {
        findings.push(Finding::new(source, 1, "add `[lints] workspace = true`"));
    }
    let path = source.path.strip_suffix("/Cargo.toml").unwrap_or("");
    let folder = path.strip_prefix("crates/").unwrap_or(path);
    let allowed = ARROWS.iter().find(|(name, _)| *name == folder).map(|(_, allowed)| *allowed);
    if allowed.is_none() && (folder != path || path.starts_with("bench/")) {
        findings.push(Finding::new(source, 1, "a crate without arrows: add it to the table of arrows"));
    }
    for dependency in dependencies(&source.text) {
        let name = dependency.name.strip_prefix("forebay-").unwrap_or(&dependency.name);
        let may = allowed.is_some_and(|allowed| allowed.contains(&name))
            || dependency.for_tests && FOR_TESTS.contains(&name);
        if !may {
            findings.push(Finding::new(source, dependency.line, format!("{folder} must not know {name}")));
        }
    }
    findings
}

fn inherits_lints(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

struct Dependency {
    name: String,
    line: usize,
    for_tests: bool,
}

/// The project's own crates among the dependencies of a manifest, of every kind and target.
fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let (name, section_of_line) = if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_string();
            // `[dependencies.forebay-base]` names the crate in the header itself.
            match section.rsplit_once("dependencies.") {
                Some((kind, name)) => (name.to_string(), format!("{kind}dependencies")),
                None => continue,
            }
        } else {
            let end = line.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
            (line[..end.unwrap_or(line.len())].to_string(), section.clone())
        };
        let is_ours = name == "forebay" || name.starts_with("forebay-");
        if is_ours && section_of_line.ends_with("dependencies") {
            let for_tests = section_of_line.ends_with("dev-dependencies");
            found.push(Dependency { name, line: index + 1, for_tests });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(folder: &str, text: &str) -> Vec<String> {
        let source = Source { path: format!("crates/{folder}/Cargo.toml"), text: text.into() };
        check(&source).into_iter().map(|finding| finding.text).collect()
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn arrows_point_down() {
        let manifest = |section: &str| {
            format!("[package]\nname = \"forebay-x\"\n{section}\nforebay-store.workspace = true\n{LINTS}")
        };
        assert_eq!(texts("layouts", &manifest("[dependencies]")), Vec::<String>::new());
        assert_eq!(texts("buffer-tree", &manifest("[dependencies]")), ["buffer-tree must not know store"]);
        assert_eq!(texts("base", &manifest("[target.'cfg(unix)'.dependencies]")).len(), 1);
        assert_eq!(texts("base", &manifest("[dev-dependencies]")).len(), 1);
        assert_eq!(texts("base", &format!("[dependencies.forebay-env]\npath = \"\"\n{LINTS}")).len(), 1);
    }

    #[test]
    fn tests_may_use_the_test_kit() {
        let text = format!("[dev-dependencies]\nforebay-testkit.workspace = true\n{LINTS}");
        assert_eq!(texts("base", &text), Vec::<String>::new());
    }

    #[test]
    fn every_crate_is_in_the_table_and_takes_the_lints() {
        assert_eq!(texts("unheard-of", LINTS).len(), 1);
        assert_eq!(texts("base", "[package]\n").len(), 1);
    }
}
