//! Directories that stay open while a file of theirs is locked: whoever has one can make names in it durable, however
//! few descriptors are left by then. A sync that is not even tried would look like one that failed.

use std::path::{Path, PathBuf};

use crate::sync::{Arc, Mutex, Weak};

/// Those of one file system, and what each is held by.
#[derive(Debug)]
pub(super) struct HeldDirs<T>(Mutex<Vec<Weak<HeldDir<T>>>>);

/// One, which is open for as long as this is there.
#[derive(Debug)]
pub(super) struct HeldDir<T> {
    path: PathBuf,
    pub(super) by: T,
}

impl<T> Default for HeldDirs<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> HeldDirs<T> {
    /// Notes one that was just opened.
    pub(super) fn hold(&self, path: &Path, by: T) -> Arc<HeldDir<T>> {
        let held = Arc::new(HeldDir { path: path.to_path_buf(), by });
        let mut all = self.0.lock();
        all.retain(|held| held.strong_count() > 0);
        all.push(Arc::downgrade(&held));
        held
    }

    /// The newest of this name: another directory may have got it since the others were opened.
    pub(super) fn find(&self, path: &Path) -> Option<Arc<HeldDir<T>>> {
        self.0.lock().iter().rev().filter_map(Weak::upgrade).find(|held| held.path == path)
    }
}
