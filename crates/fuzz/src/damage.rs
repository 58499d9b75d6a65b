//! What may become of bytes at rest, and of lengths that somebody made up.

use std::path::Path;

use forebay_base::Error;
use forebay_base::wire::put_varint;
use forebay_env::Rng;
use forebay_env::fs::MemoryFs;

use crate::draws::one_of;

/// What overflows, or asks for all memory there is, where it is taken for a length.
const EXTREMES: [u64; 9] = [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX >> 1, u64::MAX];

/// Damages bytes in one to three places; they may stay as they are.
pub(crate) fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(3) {
        match rng.index(8) {
            0 => bytes.truncate(rng.index(bytes.len() + 1)),
            1 => bytes.extend((0..rng.below(40)).map(|_| rng.next_u64() as u8)),
            2 => {
                let (start, end) = stretch(rng, bytes.len());
                bytes.drain(start..end);
            }
            3 => {
                let (start, end) = stretch(rng, bytes.len());
                let (copy, at) = (bytes[start..end].to_vec(), rng.index(bytes.len() + 1));
                bytes.splice(at..at, copy);
            }
            _ => damage_in_place(rng, bytes),
        }
    }
}

/// Damages bytes in one place, and leaves their length.
pub(crate) fn damage_in_place(rng: &mut Rng, bytes: &mut [u8]) {
    if bytes.is_empty() {
        return;
    }
    let (at, extreme) = (rng.index(bytes.len()), one_of(rng, &EXTREMES));
    let mut new = Vec::new();
    match rng.index(6) {
        0 => new.push(bytes[at] ^ 1 << rng.below(8)),
        1 => new.push(rng.next_u64() as u8),
        2 => put_varint(&mut new, extreme),
        3 => new.extend_from_slice(&extreme.to_le_bytes()[..4]),
        4 => new.extend_from_slice(&extreme.to_le_bytes()),
        _ => {
            let (start, end) = stretch(rng, bytes.len());
            new.extend_from_slice(&bytes[start..end]);
        }
    }
    let length = new.len().min(bytes.len() - at);
    bytes[at..at + length].copy_from_slice(&new[..length]);
}

/// A short piece of so many bytes, or a long one.
fn stretch(rng: &mut Rng, length: usize) -> (usize, usize) {
    let start = rng.index(length + 1);
    let longest = one_of(rng, &[8, 64, 5000]);
    (start, (start + rng.index(longest)).min(length))
}

/// A file's bytes.
pub(crate) fn bytes_of(fs: &MemoryFs, path: &Path) -> Vec<u8> {
    fs.snapshot_files().remove(path).expect("the file is there")
}

/// Asserts that an error says that a file here is damaged.
pub(crate) fn assert_named(error: &Error) {
    let named = match error {
        Error::Corruption { file, .. } | Error::NewerFormat { file, .. } => file.starts_with(DIR),
        _ => false,
    };
    assert!(named, "damage is not named: {error:?}");
}

/// Where all files are.
pub(crate) const DIR: &str = "/fuzz";
