//! Links the library that no crate brings along, and finds out the versions that two engines do not tell at run
//! time.

use std::fs::read_to_string;

fn main() -> Result<(), String> {
    println!("cargo:rustc-link-lib=kyotocabinet");
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = read_to_string("Cargo.lock").map_err(|error| format!("Cargo.lock: {error}"))?;
    let rocksdb = version(&lock, "librocksdb-sys")?;
    let (_, rocksdb) = rocksdb.split_once('+').ok_or("librocksdb-sys does not tell RocksDB's version")?;
    println!("cargo:rustc-env=ROCKSDB_VERSION={rocksdb}");
    println!("cargo:rustc-env=REDB_VERSION={}", version(&lock, "redb")?);
    println!("cargo:rustc-env=FJALL_VERSION={}", version(&lock, "fjall")?);
    Ok(())
}

/// A crate's version in the text of a lock file.
fn version<'a>(lock: &'a str, name: &str) -> Result<&'a str, String> {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.ok_or(format!("Cargo.lock does not tell the version of {name}"))
}
