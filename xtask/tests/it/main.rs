//! The project obeys its own house rules.

#[test]
fn the_tree_is_tidy() {
    let findings = xtask::tidy::check(&xtask::workspace_root());
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}
