//! Words and whitespace that no file of the project holds.

use super::{Finding, Source};

/// Each word in two halves, so that this file does not hold it, and what to do instead.
const BANNED: &[(&str, &str, &str)] = &[
    ("to", "do!", "finish it"),
    ("unimple", "mented!", "finish it"),
    ("FIX", "ME", "fix it"),
    ("TO", "DO", "do it, or write it down in the tracker"),
    ("dbg", "!(", "remove it"),
    ("/ro", "ot/", "name no machine's paths"),
    ("/ho", "me/", "name no machine's paths"),
    ("/Us", "ers/", "name no machine's paths"),
    ("/wo", "rk/", "name no machine's paths"),
    ("index.", "crates.io", "name no registry host"),
    ("static.", "crates.io", "name no registry host"),
    ("proxy.", "golang.org", "name no registry host"),
    ("pypi.", "org", "name no registry host"),
    ("iss", "ue #", "say the reason itself"),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tabs_allowed = source.path.ends_with("Makefile");
    for (index, line) in source.text.lines().enumerate() {
        let mut find = |text: String| findings.push(Finding::new(source, index + 1, text));
        for (head, tail, remedy) in BANNED {
            let word = format!("{head}{tail}");
            if line.contains(&word) {
                find(format!("`{word}`: {remedy}"));
            }
        }
        if line.ends_with([' ', '\t', '\r']) {
            find("whitespace at the end of the line".into());
        }
        if line.contains('\t') && !tabs_allowed {
            find("a tab: use spaces, or `\\t` in a literal".into());
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        findings.push(Finding::new(source, source.text.lines().count(), "no newline at the end of the file"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Source { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn each_banned_word_is_found() {
        for (head, tail, _) in BANNED {
            assert_eq!(count("a.rs", &format!("a\nb {head}{tail} c\n")), 1, "{head}{tail}");
        }
    }

    #[test]
    fn whitespace_is_clean() {
        assert_eq!(count("a.md", "a\nb\n"), 0);
        assert_eq!(count("a.md", "a \nb\n"), 1);
        assert_eq!(count("a.md", "a\tb\n"), 1);
        assert_eq!(count("Makefile", "\ta\n"), 0);
        assert_eq!(count("a.md", "a"), 1);
        assert_eq!(count("a.md", "a\r\n"), 0, "git and the reader see to line ends");
    }
}
