//! Links the C libraries, and finds out the versions that two engines do not tell at run time.

use std::fs::read_to_string;

const ROCKSDB_VERSION: &str = "/usr/include/rocksdb/version.h";

fn main() -> Result<(), String> {
    for library in ["rocksdb", "leveldb", "kyotocabinet"] {
        println!("cargo:rustc-link-lib={library}");
    }
    println!("cargo:rerun-if-changed={ROCKSDB_VERSION}");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rustc-env=ROCKSDB_VERSION={}", rocksdb()?);
    println!("cargo:rustc-env=FJALL_VERSION={}", fjall()?);
    Ok(())
}

/// The header and the library come from one package.
fn rocksdb() -> Result<String, String> {
    let header = read_to_string(ROCKSDB_VERSION)
        .map_err(|error| format!("{ROCKSDB_VERSION}: {error}; `make rivals` installs it"))?;
    let part = |name: &str| {
        let line = header.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
        line.map(str::trim).ok_or(format!("{ROCKSDB_VERSION} does not tell {name}"))
    };
    Ok(format!("{}.{}.{}", part("ROCKSDB_MAJOR")?, part("ROCKSDB_MINOR")?, part("ROCKSDB_PATCH")?))
}

fn fjall() -> Result<String, String> {
    let lock = read_to_string("Cargo.lock").map_err(|error| format!("Cargo.lock: {error}"))?;
    let mut lines = lock.lines().skip_while(|line| *line != "name = \"fjall\"");
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    Ok(version.ok_or("Cargo.lock does not tell fjall's version")?.trim_matches('"').to_string())
}
