//! Links between documents: every relative link of a Markdown file names a file that is there.

use std::path::Path;

use super::{Finding, Source};

pub(super) fn links(root: &Path, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, target) in relative_links(&source.text) {
            if !root.join(folder).join(&target).exists() {
                findings.push(Finding::new(source, line, format!("the link to {target} leads nowhere")));
            }
        }
    }
    findings
}

/// The targets of the links of a Markdown text that name files, without their fragments.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Every second piece between backquotes is code.
        let prose: Vec<&str> = line.split('`').step_by(2).collect();
        let prose = prose.join("``");
        for (at, _) in prose.match_indices("](") {
            let target = prose[at + 2..].split([')', ' ', '#']).next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !is_elsewhere {
                found.push((index + 1, target.to_string()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_count() {
        let text =
            "[a](b.md) [c](https://d.e) [f](#g) `[h](i)` [`j`](k.md#l)\n```\n[m](n)\n```\n[o](p/q.md)\n";
        let found: Vec<(usize, String)> = relative_links(text);
        assert_eq!(found, [(1, "b.md".into()), (1, "k.md".into()), (5, "p/q.md".into())]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let source = Source { path: "docs/a.md".into(), text: "[x](../Cargo.toml) [y](nowhere.md)\n".into() };
        let findings = links(&crate::workspace_root(), &[source]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.contains("nowhere.md"));
    }
}
