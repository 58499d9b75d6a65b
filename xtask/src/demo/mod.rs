//! The demonstration.

pub mod input;

/// Runs it.
pub fn run(_file: Option<&std::path::Path>) -> Result<(), String> {
    Err("not yet".into())
}
