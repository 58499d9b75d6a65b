//! Project chores. They read the source tree and run the built command; the engine does not know them.
#![expect(
    clippy::disallowed_methods,
    reason = "chores read source files and time programs, never a database"
)]

pub mod demo;
pub mod tidy;
mod tool;

use std::path::PathBuf;

/// The workspace's directory.
pub fn workspace_root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
