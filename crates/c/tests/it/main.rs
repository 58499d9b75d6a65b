//! The C face as its users meet it: headers that agree with the code, and an installation that C programs are built
//! against. Where the machine has no C compiler, tests that need one say so and pass.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads sources and runs compilers"
)]

mod headers;
mod installation;
mod programs;

use std::path::{Path, PathBuf};

// So that the library is built before the tests run.
use forebay_c as _;

/// The crate's folder.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of a folder and below that end so, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}
