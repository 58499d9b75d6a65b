//! Inputs that are packed, as their first bytes tell whatever they are called: gzip and zstd data are unpacked.
//!
//! Gzip data may have several members. Zeros behind them are padding, as for gzip(1); other bytes are passed over, and
//! said to be.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use crate::failure::Failure;

/// How much of packed data is read at once.
const PACKED_BYTES: usize = 64 << 10;
/// How many bytes tell what packs data.
pub(crate) const MAGIC_BYTES: usize = 6;

/// What packs data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packer {
    Nothing,
    Gzip,
    Zstd,
}

impl Packer {
    /// What packs data that begin so; a failure where that is known and cannot be unpacked.
    pub(crate) fn of(head: &[u8], name: &str) -> Result<Self, Failure> {
        let refuse = |packer: &str| {
            Err(Failure::work(format!(
                "cannot read {name}: it is packed by {packer}, which is not read; unpack it first"
            )))
        };
        match head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => refuse("xz"),
            // Of a block, or of the end of data without one.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41] | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72] => {
                refuse("bzip2")
            }
            [0x04, 0x22, 0x4d, 0x18, ..] => refuse("lz4"),
            [0x1f, 0x9d, ..] => refuse("compress"),
            [b'P', b'K', 3, 4, ..] => refuse("zip"),
            _ => Ok(Self::Nothing),
        }
    }

    /// Unpacks data, of which messages speak by this name.
    pub(crate) fn unpack<'a>(
        self,
        from: impl Read + Send + 'a,
        name: &str,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Self::Nothing => Box::new(from),
            Self::Gzip => Box::new(Members {
                member: Some(GzDecoder::new(BufReader::with_capacity(PACKED_BYTES, from))),
                name: name.into(),
            }),
            Self::Zstd => Box::new(zstd::Decoder::new(from)?),
        })
    }
}

/// Unpacks what stands behind a member of gzip data.
pub(crate) fn behind_gzip<'a>(
    from: impl BufRead + Send + 'a,
    name: &str,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut members = Members { member: None, name: name.into() };
    members.member = members.next(from)?;
    Ok(Box::new(members))
}

/// The members of gzip data, one behind the other.
struct Members<R> {
    /// The one that is read; nothing at the end.
    member: Option<GzDecoder<R>>,
    name: String,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            self.member = match self.member.take() {
                Some(ended) => self.next(ended.into_inner())?,
                None => None,
            };
        }
        Ok(0)
    }
}

impl<R: BufRead> Members<R> {
    /// The member that comes behind another, if one does.
    fn next(&self, mut from: R) -> io::Result<Option<GzDecoder<R>>> {
        loop {
            let bytes = from.fill_buf()?;
            match bytes.iter().position(|byte| *byte != 0) {
                None if bytes.is_empty() => return Ok(None),
                None => {
                    let zeros = bytes.len();
                    from.consume(zeros);
                }
                Some(zeros) if bytes[zeros] == 0x1f => {
                    from.consume(zeros);
                    return Ok(Some(GzDecoder::new(from)));
                }
                Some(zeros) => {
                    from.consume(zeros);
                    let passed = io::copy(&mut from, &mut io::sink())?;
                    tell!("forebay: {}: {passed} bytes behind the gzip data are passed over", self.name);
                    return Ok(None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        let packer = Packer::of(bytes, "test").unwrap();
        packer.unpack(bytes, "test")?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn members_padding_and_what_follows_are_as_for_gzip() {
        let (one, other) = (gzip(b"one "), gzip(b"other"));
        assert_eq!(unpacked(&[&one[..], &other].concat()).unwrap(), "one other");
        assert_eq!(unpacked(&[&one[..], &[0; 600], &other, &[0; 70_000]].concat()).unwrap(), "one other");
        assert_eq!(unpacked(&[&one[..], b"trailing"].concat()).unwrap(), "one ");
        assert!(unpacked(&one[..one.len() - 3]).is_err());
        assert_eq!(unpacked(b"as it is").unwrap(), "as it is");
        let zstd = zstd::encode_all(&b"packed"[..], 1).unwrap();
        assert_eq!(unpacked(&[zstd.clone(), zstd].concat()).unwrap(), "packedpacked");
        assert!(Packer::of(b"BZh91AY&", "x").is_err() || Packer::of(b"BZh91A", "x").is_err());
    }
}
