//! Finding a root where no version tells of one, or where the one it tells of is damaged.

use forebay_base::checksum::{append, checksum};
use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result};
use forebay_env::{Access, AlignedBuf, File};

use crate::file::TreeFile;
use crate::root::{ROOT_BYTES, Root, Version};
use crate::store::TreeStore;

/// The last root of a file that ends at or below an offset and whose append is whole, if there is one.
///
/// A crash may leave a root of which other parts are lost; therefore all that was appended with it is read and
/// compared. What was appended before was durable by then.
///
/// A root that was whole once and is damaged now looks like one that was never finished. So whoever goes back to an
/// earlier one has to know by other means that nothing is lost which somebody was told is safe.
pub fn last_root(store: &TreeStore, file_id: u64, below: u64) -> Result<Option<Version>> {
    let file = store.files.named(store, file_id);
    let handle = store.fs.open_read(file.path(), Access::Direct).map_err(Error::or_missing)?;
    let mut chunk = AlignedBuf::zeroed(STEP_BYTES);
    let mut end = handle.len()?.min(below) / ROOT_BYTES * ROOT_BYTES;
    while end > 0 {
        let start = end.saturating_sub(STEP_BYTES as u64);
        let bytes = &mut chunk[..(end - start) as usize];
        file.read_at(&*handle, start, bytes)?;
        for (number, block) in bytes.chunks(ROOT_BYTES as usize).enumerate().rev() {
            let root_at = start + number as u64 * ROOT_BYTES;
            let Some(digest) = Root::digest_of(block, file_id, root_at) else { continue };
            let root = Root::decode(block, file.path(), root_at, store.options.order)?;
            if is_whole(&file, &*handle, &root, root_at)? {
                return Ok(Some(Version { file_id, root_at, digest }));
            }
        }
        end = start;
    }
    Ok(None)
}

/// Whether all that was appended with a root is there.
fn is_whole(file: &TreeFile, handle: &dyn File, root: &Root, root_at: u64) -> Result<bool> {
    const {
        assert!(
            (STEP_BYTES as u64).is_multiple_of(ROOT_BYTES),
            "roots stand at the same places of each piece"
        )
    };
    let mut chunk = AlignedBuf::zeroed(STEP_BYTES.min((root_at - root.append_at) as usize));
    let mut sum = checksum(file.id(), root.append_at, &[]);
    let mut at = root.append_at;
    while at < root_at {
        let length = chunk.len().min((root_at - at) as usize);
        file.read_at(handle, at, &mut chunk[..length])?;
        sum = append(sum, &chunk[..length]);
        at += length as u64;
    }
    Ok(sum == root.append_sum)
}
