//! What the adapters of C libraries have in common.

pub(crate) mod kernel;
pub(crate) mod writes;

use std::ffi::CString;
use std::path::Path;

use forebay_bench::Failure;

/// A path as C takes it.
pub(crate) fn path_text(path: &Path) -> Result<CString, Failure> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
