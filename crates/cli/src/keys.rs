//! Keys and values between the shell and the database: as they are, or in hexadecimal; and in JSON, which
//! holds only Unicode.

use std::borrow::Cow;
use std::io::{self, Write};

/// How keys and values are written on the command line, on standard input and on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    /// Their bytes.
    Plain,
    /// Two hexadecimal digits a byte.
    Hex,
}

impl Notation {
    /// What `--hex` chooses.
    pub(crate) fn from_flag(hex: bool) -> Self {
        if hex { Self::Hex } else { Self::Plain }
    }

    /// The bytes that `text` stands for.
    pub(crate) fn parse(self, text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        match self {
            Self::Plain => Ok(Cow::Borrowed(text)),
            Self::Hex => from_hex(text).map(Cow::Owned),
        }
    }

    /// Writes `bytes`.
    pub(crate) fn write(self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Plain => out.write_all(bytes),
            Self::Hex => write_hex(bytes, out),
        }
    }

    /// Writes `"name":"bytes"`; bytes that are no Unicode text as `"name_hex":"6279746573"`.
    pub(crate) fn write_json(self, name: &str, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        match (self, std::str::from_utf8(bytes)) {
            (Self::Plain, Ok(text)) => {
                write!(out, "\"{name}\":")?;
                serde_json::to_writer(out, text).map_err(io::Error::from)
            }
            (Self::Plain, Err(_)) => {
                write!(out, "\"{name}_hex\":\"")?;
                write_hex(bytes, out)?;
                out.write_all(b"\"")
            }
            (Self::Hex, _) => {
                write!(out, "\"{name}\":\"")?;
                write_hex(bytes, out)?;
                out.write_all(b"\"")
            }
        }
    }
}

fn from_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("{:?} has an odd number of hexadecimal digits", String::from_utf8_lossy(text)));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    text.chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| format!("{:?} is not hexadecimal", String::from_utf8_lossy(text)))
}

fn write_hex(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .try_for_each(|byte| out.write_all(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(Notation::Hex.parse(b"00fFa5").unwrap(), [0x00, 0xff, 0xa5].as_slice());
        assert_eq!(Notation::Hex.parse(b"").unwrap(), b"".as_slice());
        assert!(Notation::Hex.parse(b"123").is_err());
        assert!(Notation::Hex.parse(b"zz").is_err());
        assert_eq!(written(|out| Notation::Hex.write(&[0x00, 0xff, 0xa5], out)), "00ffa5");
    }

    #[test]
    fn json_loses_no_byte() {
        let json = |notation: Notation, bytes: &[u8]| written(|out| notation.write_json("key", bytes, out));
        assert_eq!(json(Notation::Plain, "é\"\n".as_bytes()), "\"key\":\"é\\\"\\n\"");
        assert_eq!(json(Notation::Plain, b"\xff"), "\"key_hex\":\"ff\"");
        assert_eq!(json(Notation::Hex, b"a"), "\"key\":\"61\"");
    }
}
