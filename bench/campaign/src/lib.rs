//! The campaign of benchmarks. It runs programs that were built, and the engine does not know it.
#![expect(
    clippy::disallowed_methods,
    reason = "it runs programs, and keeps what they tell, never a database"
)]

pub mod data;
pub mod figures;

use std::path::PathBuf;

/// The workspace's directory.
pub fn workspace_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(PathBuf::from).unwrap_or_default()
}
