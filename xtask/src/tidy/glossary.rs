//! The words of the project: `docs/glossary.md` defines each once, and those that it bans stand nowhere else.
//!
//! 1. A row of a table whose first cell is **bold** defines that word.
//! 2. A row below the heading [`BANNED_HEADING`] bans the word in its first cell, but in the files whose paths begin
//!    as its last cell says.
//! 3. Every line of every file is taken apart into plain words, `camelCase` and `snake_case` too, and searched for
//!    them.

use super::{Finding, Source};

const GLOSSARY: &str = "docs/glossary.md";
const BANNED_HEADING: &str = "## Words that are not used";

/// A word that nobody uses, what is used instead, and where it may stand all the same.
struct Banned {
    words: String,
    instead: String,
    allowed: Vec<String>,
}

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(glossary) = sources.iter().find(|source| source.path == GLOSSARY) else { return Vec::new() };
    let mut findings = defined_twice(glossary, sources);
    let banned = banned(&glossary.text);
    for source in sources.iter().filter(|source| source.path != GLOSSARY) {
        let bans: Vec<&Banned> = banned.iter().filter(|ban| !ban.allows(&source.path)).collect();
        for (index, line) in source.text.lines().enumerate() {
            let line = plain(line);
            for ban in bans.iter().filter(|ban| line.contains(&ban.words)) {
                let text = format!("`{}`: the glossary says {}", ban.words.trim(), ban.instead);
                findings.push(Finding::new(source, index + 1, text));
            }
        }
    }
    findings
}

impl Banned {
    fn allows(&self, path: &str) -> bool {
        self.allowed.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// Words that the glossary defines twice, or that another document defines again.
fn defined_twice(glossary: &Source, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let others = sources.iter().filter(|source| source.path.ends_with(".md") && source.path != GLOSSARY);
    for source in std::iter::once(glossary).chain(others) {
        for (line, word) in defined(&source.text) {
            if known.contains(&word) {
                findings.push(Finding::new(source, line, format!("`{word}` is defined already")));
            } else if source.path == GLOSSARY {
                known.push(word);
            }
        }
    }
    findings
}

/// The words that a document defines, each with its line: `| **word** | meaning |` below `| word | meaning |`.
fn defined(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut defines = false;
    for (index, line) in text.lines().enumerate() {
        let first = cells(line).next().unwrap_or_default();
        defines = line.starts_with('|') && (defines || first == "word");
        if let Some(word) =
            first.strip_prefix("**").and_then(|word| word.strip_suffix("**")).filter(|_| defines)
        {
            found.push((index + 1, word.to_lowercase()));
        }
    }
    found
}

/// The words that the glossary bans.
fn banned(text: &str) -> Vec<Banned> {
    let table = text.split_once(BANNED_HEADING).map_or("", |(_, table)| table);
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.flat_map(|row| {
        let cells: Vec<&str> = cells(row).collect();
        let cell = |number: usize| cells.get(number).copied().unwrap_or_default();
        let (words, instead) = (cell(0), cell(1).to_string());
        let allowed: Vec<String> = cell(2).split('`').skip(1).step_by(2).map(String::from).collect();
        let ban =
            move |words| Banned { words: plain(words), instead: instead.clone(), allowed: allowed.clone() };
        words.split(", ").map(ban).collect::<Vec<_>>()
    })
    .collect()
}

fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.trim().trim_start_matches('|').split('|').map(str::trim)
}

/// A line in lower case, its words with a space before and behind each.
fn plain(line: &str) -> String {
    let mut words = String::with_capacity(line.len() + 8);
    words.push(' ');
    let mut before = ' ';
    for char in line.chars() {
        let begins = !before.is_alphanumeric() || (before.is_lowercase() && char.is_uppercase());
        if char.is_alphanumeric() {
            if begins && !words.ends_with(' ') {
                words.push(' ');
            }
            words.extend(char.to_lowercase());
        } else if !words.ends_with(' ') {
            words.push(' ');
        }
        before = char;
    }
    words.push(' ');
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(others: &[(&str, &str)]) -> Vec<String> {
        let glossary = "| word | meaning |\n| --- | --- |\n| **Flush** | x |\n\n## Words that are not used\n\n\
                        | word | instead | but in |\n| --- | --- | --- |\n| frob, foo bar | flush | `a/` |\n";
        let first = [(GLOSSARY, glossary)];
        let all = first.iter().chain(others);
        let sources: Vec<Source> =
            all.map(|(path, text)| Source { path: (*path).into(), text: (*text).into() }).collect();
        check(&sources).iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_banned_word_is_found_in_every_form() {
        for text in ["fn foo_bar()", "// A foo bar is", "Cause::FooBar", "`foo-bar`"] {
            assert_eq!(texts(&[("b.rs", text)]), ["b.rs:1: `foo bar`: the glossary says flush"], "{text}");
        }
        assert_eq!(texts(&[("b.rs", "a foo barrel"), ("a/b.rs", "foo bar")]), Vec::<String>::new());
    }

    #[test]
    fn a_word_is_defined_once() {
        let again = "| word | meaning |\n| --- | --- |\n| **flush** | y |\n";
        assert_eq!(texts(&[("docs/b.md", again)]), ["docs/b.md:3: `flush` is defined already"]);
        assert_eq!(texts(&[("docs/b.md", "| step | |\n| **flush** | y |\n")]), Vec::<String>::new());
    }
}
