//! Opening LMDB, which maps its file into memory: the one step that its crate cannot promise to be safe.

use std::path::Path;

use forebay_bench::Failure;
use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};

pub(super) fn open(dir: &Path, flags: EnvFlags, map_bytes: usize) -> Result<Env<WithoutTls>, Failure> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes);
    // SAFETY: without syncs a power loss may damage the file, but no benchmark goes on after one. The directory
    // is this run's own, so nobody else changes the file while it is mapped.
    unsafe { Ok(options.flags(flags).open(dir)?) }
}
