//! [`CachedFs`]: another file system for whoever will soon read again what it writes: nothing goes around the system's
//! page cache.

use std::path::Path;

use forebay_base::Result;

use super::{Access, File, FileSystem};
use crate::fs::forward::forward_fs;
use crate::sync::Arc;

/// See the module.
pub struct CachedFs {
    inner: Arc<dyn FileSystem>,
}

impl CachedFs {
    /// `inner`, through the page cache.
    pub fn new(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self { inner })
    }

    fn access(access: Access) -> Access {
        if access == Access::Direct { Access::Buffered } else { access }
    }
}

impl FileSystem for CachedFs {
    forward_fs! { maps_files exists list rename remove shorten link_count absolute identity hard_link create_dir_all create_dir remove_dir sync_dir lock read_many free_bytes helpers process_files_max }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.create(path, Self::access(access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open(path, Self::access(access))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.inner.open_read(path, Self::access(access))
    }

    fn stored(&self) -> Option<&dyn FileSystem> {
        self.inner.stored()
    }

    fn stored_bytes(&self, path: &Path, bytes: u64) -> u64 {
        self.inner.stored_bytes(path, bytes)
    }

    fn encrypted_as(&self, path: &Path) -> Result<Option<(u32, u32)>> {
        self.inner.encrypted_as(path)
    }
}
