//! Databases of every format that was ever written open, and hold what was written.
//!
//! `cargo run -p forebay-torture -- golden crates/forebay/tests/golden/vN` writes those of the format of this build, and with
//! `--encrypted` those that are. A format
//! that changes gets a folder of its own; no folder is ever written again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_testkit::golden::{self, Files};

/// Every format there was.
const FORMATS: [&str; 8] = ["v1", "v2", "v3", "v4", "v5", "v6", "encrypted-v1", "encrypted-v2"];

#[test]
fn databases_of_every_format_open_and_hold_what_was_written() {
    for format in FORMATS {
        for state in ["closed", "crashed"] {
            println!("{format} {state}");
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format).join(state);
            let files = if format.starts_with("encrypted") { Files::Encrypted } else { Files::Plain };
            golden::check(&read(&folder), files).unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "fixtures are files of the repository")]
fn read(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into(), std::fs::read(entry.path()).unwrap())).collect()
}
