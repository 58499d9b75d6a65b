//! A provider of the key that stands in a file of the machine's.

use std::path::{Path, PathBuf};

use forebay_base::{Error, Result};
use zeroize::Zeroizing;

use super::keys::{Key, KeyProvider};
use super::{KEY_BYTES, NAME_BYTES_MAX};
use crate::fs::{Access, FileSystem as _, RealFs};

/// More than a key takes, and what people put behind it.
const READ_BYTES: usize = 2 * KEY_BYTES + 64;

const _: () = assert!(READ_BYTES > 2 * KEY_BYTES + 2, "a file that is longer is told from one that is not");

/// The key that stands in a file: as its 32 bytes, or as 64 hexadecimal digits, and a newline if need be. It is read
/// whenever it is asked for. Whatever name a database knows its key by, it is this one; a new database knows it by the
/// file's name.
#[derive(Clone, Debug)]
pub struct KeyInFile {
    path: PathBuf,
}

impl KeyInFile {
    /// That of the file at `path`, which is not read yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_path_buf() }
    }
}

impl KeyProvider for KeyInFile {
    fn current(&self) -> Result<String> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        let mut name = name.into_owned();
        while name.len() > NAME_BYTES_MAX {
            name.pop();
        }
        Ok(name)
    }

    fn key(&self, _name: &str) -> Result<Key> {
        let file = RealFs::new().open_read(&self.path, Access::Buffered)?;
        let mut bytes = Zeroizing::new([0; READ_BYTES]);
        let got = file.read_at(0, &mut *bytes)?;
        key_of(&bytes[..got]).ok_or_else(|| {
            Error::invalid(format!(
                "{} has no key: that is {KEY_BYTES} bytes as they are, or {} hexadecimal digits",
                self.path.display(),
                2 * KEY_BYTES
            ))
        })
    }
}

fn key_of(bytes: &[u8]) -> Option<Key> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() == KEY_BYTES {
        key.copy_from_slice(bytes);
        return Some(Key::new(*key));
    }
    let digits = bytes.trim_ascii();
    if digits.len() != 2 * KEY_BYTES || bytes.len() == READ_BYTES {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(Key::new(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bytes_or_digits() {
        let is = |bytes: &[u8], key: Option<[u8; KEY_BYTES]>| {
            let found = key_of(bytes).map(|key| *key.bytes());
            assert_eq!(found, key, "{}", bytes.escape_ascii());
        };
        let digits = "00ff".repeat(16);
        let mut known = [0; KEY_BYTES];
        known.iter_mut().skip(1).step_by(2).for_each(|byte| *byte = 255);
        is(&[7; KEY_BYTES], Some([7; KEY_BYTES]));
        for text in [digits.clone(), digits.to_uppercase(), format!("{digits}\n"), format!(" {digits}\r\n")] {
            is(text.as_bytes(), Some(known));
        }
        let cut = &digits[1..];
        for text in
            ["", "secret", cut, &format!("x{cut}"), &format!("{digits}0"), &format!("{digits} {digits}")]
        {
            is(text.as_bytes(), None);
        }
        is(&[7; KEY_BYTES + 1], None);
        let long = "n".repeat(300);
        assert_eq!(KeyInFile::new(format!("/keys/{long}")).current().unwrap().len(), NAME_BYTES_MAX);
        assert_eq!(KeyInFile::new("/keys/of 2026").current().unwrap(), "of 2026");
        assert!(KeyInFile::new("/no/such/file").key("").unwrap_err().to_string().contains("/no/such/file"));
    }
}
