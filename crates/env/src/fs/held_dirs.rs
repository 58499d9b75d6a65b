//! Directories that stay open while a file of theirs is locked: whoever has one can make names in it durable, however few
//! descriptors are left by then. A sync that is not even tried would look like one that failed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use forebay_base::{Error, Result};

use crate::sync::{Arc, Mutex, Weak};

/// Those of one file system.
#[derive(Debug, Default)]
pub(super) struct HeldDirs(Mutex<Vec<Weak<HeldDir>>>);

/// One, which is open for as long as this is there.
#[derive(Debug)]
pub(super) struct HeldDir {
    path: PathBuf,
    dir: File,
}

impl HeldDirs {
    pub(super) fn hold(&self, path: &Path) -> Result<Arc<HeldDir>> {
        let dir = File::open(path).map_err(|e| Error::io("open directory", path, &e))?;
        let held = Arc::new(HeldDir { path: path.to_path_buf(), dir });
        let mut all = self.0.lock();
        all.retain(|held| held.strong_count() > 0);
        all.push(Arc::downgrade(&held));
        Ok(held)
    }

    pub(super) fn sync(&self, path: &Path) -> io::Result<()> {
        // The newest: another directory may have got its name since the others were opened.
        let held = self.0.lock().iter().rev().filter_map(Weak::upgrade).find(|held| held.path == path);
        match held {
            Some(held) => held.dir.sync_all(),
            None => File::open(path).and_then(|dir| dir.sync_all()),
        }
    }
}
