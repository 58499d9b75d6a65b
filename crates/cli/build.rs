//! Notes the commit for `--version`, of release builds from a checkout. What is built otherwise does without.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=FOREBAY_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // A directory without a checkout of its own may lie in that of something else.
    let is_known = git(&["ls-files", "build.rs"]).is_some();
    if !is_release || !is_known || std::env::var_os("FOREBAY_COMMIT").is_some() {
        return;
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=FOREBAY_COMMIT={commit}");
    }
}

/// What git says, if it is there and says anything.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (!said.is_empty()).then_some(said)
}
