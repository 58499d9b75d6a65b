//! The rules for Rust files: what each begins with, how long it and its functions are, where `unsafe` may
//! stand, and that every file is compiled.

use super::mask::code_only;
use super::{Finding, Source};

/// The most lines of code a file holds outside its tests; comments and blank lines are free.
const FILE_LINES_MAX: usize = 300;
/// The most lines of code a function holds, its signature included.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with its ceiling and its reason. Ceilings only go down.
const LONG_FILES: &[(&str, usize, &str)] = &[];
/// Functions that may be longer: file, name, ceiling, reason. Ceilings only go down.
const LONG_FUNCTIONS: &[(&str, &str, usize, &str)] = &[];

/// Names of the only files that may hold `unsafe`.
const UNSAFE_FILES: [&str; 2] = ["kernel.rs", "arena.rs"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let masked = code_only(&source.text);
    if !source.text.starts_with("//!") {
        findings.push(Finding::new(source, 1, "begin with `//!`: what the file is and what it keeps true"));
    }
    let name = source.path.rsplit('/').next().unwrap_or(&source.path);
    for (line, text) in numbered(&masked) {
        if holds_word(text, "unsafe") && !UNSAFE_FILES.contains(&name) {
            findings.push(Finding::new(
                source,
                line,
                format!("`unsafe` outside {}", UNSAFE_FILES.join(" and ")),
            ));
        }
        if text.contains("#[ignore") {
            findings.push(Finding::new(source, line, "no test is ignored: mend it or delete it"));
        }
    }
    if !is_test_file(&source.path) {
        let code = without_tests(&masked);
        findings.extend(long_file(source, &code));
        findings.extend(long_functions(source, &code));
    }
    findings
}

/// Exceptions that no longer except anything.
pub(super) fn stale_exceptions(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let this = Source { path: "xtask/src/tidy/code.rs".into(), text: String::new() };
    let code_at = |path: &str| {
        sources
            .iter()
            .find(|source| source.path == path)
            .map(|source| without_tests(&code_only(&source.text)))
    };
    for (path, _, _) in LONG_FILES {
        if code_at(path).is_none_or(|code| code_lines(&code) <= FILE_LINES_MAX) {
            findings.push(Finding::new(&this, 1, format!("{path} needs no exception any more")));
        }
    }
    for (path, name, _, _) in LONG_FUNCTIONS {
        let is_long = |code: String| {
            functions(&code).iter().any(|found| found.name == *name && found.lines > FUNCTION_LINES_MAX)
        };
        if !code_at(path).is_some_and(is_long) {
            findings.push(Finding::new(&this, 1, format!("{path}: {name} needs no exception any more")));
        }
    }
    findings
}

/// Files that no `mod` names, so that nobody compiles them.
pub(super) fn orphans(sources: &[Source]) -> Vec<Finding> {
    let declares = |path: &str, module: &str| {
        sources.iter().filter(|source| source.path == path).any(|source| {
            let code = code_only(&source.text);
            code.lines().any(|line| line.trim_end().ends_with(&format!("mod {module};")))
        })
    };
    let mut findings = Vec::new();
    for source in sources {
        let Some((folder, name)) = source.path.rsplit_once('/') else { continue };
        let Some(stem) = name.strip_suffix(".rs") else { continue };
        let is_root = matches!(stem, "lib" | "main" | "build") || !source.path.contains("/src/");
        if is_root || folder.ends_with("/bin") {
            continue;
        }
        let (folder, module) = match stem {
            "mod" => folder.rsplit_once('/').unwrap_or((folder, folder)),
            _ => (folder, stem),
        };
        let parents = [
            format!("{folder}/mod.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
            format!("{folder}.rs"),
        ];
        if !parents.iter().any(|parent| declares(parent, module)) {
            findings.push(Finding::new(source, 1, format!("dead file: no `mod {module};` names it")));
        }
    }
    findings
}

fn long_file(source: &Source, code: &str) -> Option<Finding> {
    let lines = code_lines(code);
    let max =
        LONG_FILES.iter().find(|(path, ..)| *path == source.path).map_or(FILE_LINES_MAX, |entry| entry.1);
    (lines > max).then(|| Finding::new(source, 1, format!("{lines} lines of code, {max} at most: split it")))
}

fn long_functions(source: &Source, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for found in functions(code) {
        let max = LONG_FUNCTIONS
            .iter()
            .find(|(path, name, ..)| *path == source.path && *name == found.name)
            .map_or(FUNCTION_LINES_MAX, |entry| entry.2);
        if found.lines > max {
            let text = format!("{} has {} lines of code, {max} at most", found.name, found.lines);
            findings.push(Finding::new(source, found.at, text));
        }
    }
    findings
}

/// The code of a Rust file without its tests; `None` where it is nothing else.
pub(super) fn code_of(source: &Source) -> Option<String> {
    let is_code = source.path.ends_with(".rs") && !is_test_file(&source.path);
    is_code.then(|| without_tests(&code_only(&source.text)))
}

pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn code_lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Masked code with every `#[cfg(test)]` item blanked.
fn without_tests(masked: &str) -> String {
    let mut code = masked.to_string();
    while let Some(at) = code.find("#[cfg(test)]") {
        let end = item_end(&code, at);
        let blank: String = code[at..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        code.replace_range(at..end, &blank);
    }
    code
}

/// The end of the item at `at`: its `;` or its closing brace.
fn item_end(code: &str, at: usize) -> usize {
    match body(code, at) {
        Some((_, end)) => end,
        None => code[at..].find(';').map_or(code.len(), |length| at + length + 1),
    }
}

/// The braces that follow `at`, before any `;` outside brackets.
fn body(code: &str, at: usize) -> Option<(usize, usize)> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    let mut start = None;
    for (offset, byte) in code.as_bytes()[at..].iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => {
                braces += 1;
                start.get_or_insert(at + offset);
            }
            b'}' => {
                braces -= 1;
                if braces <= 0 {
                    return start.map(|start| (start, at + offset + 1));
                }
            }
            _ => {}
        }
    }
    None
}

struct Function {
    name: String,
    at: usize,
    lines: usize,
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !is_word || name.is_empty() {
            continue;
        }
        if let Some((_, end)) = body(code, at) {
            let line = code[..at].matches('\n').count() + 1;
            found.push(Function { name, at: line, lines: code_lines(&code[at..end]) });
        }
    }
    found
}

fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        !line[..at].ends_with(is_name) && !line[at + word.len()..].starts_with(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    fn texts(path: &str, text: &str) -> Vec<String> {
        check(&source(path, text)).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_tidy_file_passes() {
        assert_eq!(texts("a.rs", "//! A.\nfn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn a_file_says_what_it_is() {
        assert_eq!(texts("a.rs", "fn f() {}\n").len(), 1);
    }

    #[test]
    fn danger_stays_in_named_files() {
        let text = "//! A.\n// unsafe in words is fine\nfn f() { unsafe { g() } }\n";
        assert_eq!(texts("src/a.rs", text), ["src/a.rs:3: `unsafe` outside kernel.rs and arena.rs"]);
        assert_eq!(texts("src/kernel.rs", text), Vec::<String>::new());
    }

    #[test]
    fn tests_are_not_ignored() {
        let text = format!("//! A.\n#[{}]\nfn f() {{}}\n", "ignore = \"slow\"");
        assert_eq!(texts("tests/it/a.rs", &text).len(), 1);
    }

    #[test]
    fn lengths_count_code_and_not_tests() {
        let line = "    g();\n";
        let long = format!("//! A.\nfn f() {{\n{}}}\n", line.repeat(FUNCTION_LINES_MAX));
        assert_eq!(texts("a.rs", &long), ["a.rs:2: f has 72 lines of code, 70 at most"]);
        let tests = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert_eq!(texts("a.rs", &tests), Vec::<String>::new());
        let comments = format!("//! A.\n{}", "// words\n\n".repeat(FILE_LINES_MAX));
        assert_eq!(texts("a.rs", &comments), Vec::<String>::new());
        let code = format!("//! A.\n{}", "const A: [u8; 1] = [0];\n".repeat(FILE_LINES_MAX + 1));
        assert_eq!(texts("a.rs", &code), ["a.rs:1: 301 lines of code, 300 at most: split it"]);
    }

    #[test]
    fn functions_are_found_by_their_braces() {
        let code = "fn a(x: [u8; 3]) -> fn(u8) {\n}\ntrait T { fn b(); fn c() {\n1\n} }\nlet d: fn() = a;";
        let found: Vec<(String, usize, usize)> =
            functions(code).into_iter().map(|found| (found.name, found.at, found.lines)).collect();
        assert_eq!(found, [("a".to_string(), 1, 2), ("c".to_string(), 3, 3)]);
    }

    #[test]
    fn every_file_is_compiled() {
        let sources = [
            source("c/src/lib.rs", "pub mod a;\n// mod b;\nmod d;\n"),
            source("c/src/a.rs", ""),
            source("c/src/b.rs", ""),
            source("c/src/d/mod.rs", "mod e;\n"),
            source("c/src/d/e.rs", ""),
            source("c/tests/it/main.rs", ""),
        ];
        let paths: Vec<String> = orphans(&sources).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["c/src/b.rs"]);
    }
}
