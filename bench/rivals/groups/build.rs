//! Compiles the C++ tables, links TBB, and finds out the version of Sparsehash, which is headers only.

fn main() -> Result<(), pkg_config::Error> {
    println!("cargo:rerun-if-changed=src/engines/tables/tables.cc");
    let sparsehash = pkg_config::probe_library("libsparsehash")?;
    println!("cargo:rustc-env=SPARSEHASH_VERSION={}", sparsehash.version);
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").force_frame_pointer(false);
    build.file("src/engines/tables/tables.cc").compile("forebay-tables");
    pkg_config::probe_library("tbb")?;
    Ok(())
}
