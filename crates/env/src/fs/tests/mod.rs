//! Tests of every file system twin. Seeds are fixed and part of each failure's message.

mod behaviour;
mod behind;
mod bounded;
mod crash_data;
mod crash_names;
mod faulty;
mod memory;
mod random;
mod traced;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use forebay_base::{Error, Result};

use super::{Access, File, FileSystem, RealFs};
use crate::sync::Arc;

/// A directory of the machine's own, gone at the end.
pub(super) struct TempDir(pub(super) PathBuf);

impl TempDir {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("forebay-env-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(unique);
        RealFs::new().create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// What a test may compare across file systems: the answer, or what kind of failure.
fn answer<T>(result: Result<T>) -> Result<T, String> {
    result.map_err(|error| match error {
        Error::Io { kind, .. } => format!("{kind:?}"),
        Error::Locked { .. } => "locked".to_owned(),
        other => format!("unexpected: {other}"),
    })
}

fn read_all(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open_read(path, Access::Buffered)?;
    let mut bytes = vec![0; file.len()? as usize];
    let count = file.read_at(0, &mut bytes)?;
    assert_eq!(count, bytes.len());
    Ok(bytes)
}

/// Makes a file of these bytes, its data synced.
fn put(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> Result<Arc<dyn File>> {
    let file = fs.create(path, Access::Buffered)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    Ok(file)
}
