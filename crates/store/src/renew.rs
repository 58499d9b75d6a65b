//! Making durable what was read from a file and is perhaps in the system's memory only.

use forebay_base::{Error, Result};
use forebay_env::File;

/// How much is in memory at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Writes the first bytes of a file over themselves, and syncs it. A sync alone is not enough: after one that failed
/// the system takes what it could not write for written. A crash meanwhile changes nothing, as nothing else is written
/// than what is there; nor does it in a file's other names; and no room is needed, where the file system writes in
/// place: btrfs, ZFS, and shared blocks of XFS take new ones.
pub fn renew(file: &dyn File, bytes: u64) -> Result<()> {
    let mut piece = vec![0; bytes.min(PIECE_BYTES) as usize];
    let mut at = 0;
    while at < bytes {
        let wanted = (bytes - at).min(PIECE_BYTES) as usize;
        if file.read_at(at, &mut piece[..wanted])? < wanted {
            return Err(Error::corruption(
                file.path(),
                at,
                "the file is shorter than when it was read before",
            ));
        }
        file.write_at(at, &piece[..wanted])?;
        at += wanted as u64;
    }
    debug_assert_eq!(at, bytes, "all of it is written again");
    file.sync()
}
