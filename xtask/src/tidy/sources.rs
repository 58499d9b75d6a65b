//! The files that are checked: what git tracks or would track, or, without git, all but build output.

use std::path::Path;
use std::process::Command;

/// One text file of the project.
#[derive(Debug, Clone)]
pub struct Source {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

const EXTENSIONS: [&str; 11] = ["rs", "c", "h", "md", "toml", "sh", "txt", "map", "yml", "py", "pyi"];
const NAMES: [&str; 3] = ["Makefile", "run", ".gitignore"];

/// Reads every checked file under `root`, in the order of their paths.
pub(super) fn read(root: &Path) -> Result<Vec<Source>, String> {
    let mut paths = match listed_by_git(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    paths.retain(|path| is_checked(path));
    paths.sort();
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        match std::fs::read(root.join(&path)) {
            Ok(bytes) => sources.push(Source { path, text: String::from_utf8_lossy(&bytes).into_owned() }),
            // Tracked, but deleted in the work tree.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read {path}: {error}")),
        }
    }
    Ok(sources)
}

fn is_checked(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    NAMES.contains(&name) || name.rsplit_once('.').is_some_and(|(_, ext)| EXTENSIONS.contains(&ext))
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = list.split('\0').filter(|path| !path.is_empty()).map(String::from).collect();
    // An unpacked archive inside somebody else's repository lists nothing of ours.
    paths.iter().any(|path| path == "Cargo.toml").then_some(paths)
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let entries =
        std::fs::read_dir(root.join(folder)).map_err(|error| format!("cannot list {folder}: {error}"))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("cannot list {folder}: {error}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder {
            paths.push(path);
        } else if name != "target" && name != ".git" {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_git_the_walk_finds_the_same_code() {
        let root = crate::workspace_root();
        let mut walked = Vec::new();
        walk(&root, "", &mut walked).unwrap();
        for path in ["Cargo.toml", "xtask/src/tidy/sources.rs", "crates/base/src/lib.rs"] {
            assert!(walked.iter().any(|found| found == path), "{path} is missing");
        }
        assert!(!walked.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
