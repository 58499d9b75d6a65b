//! Items: byte strings one after the other, each behind its length in four bytes, little-endian; -1 is for none. So keys,
//! values, texts and writes cross to Java and back, many at a time. `dev.forebay.Items` is the other half.

use forebay::{Error, Result};

/// Appends an item.
pub(crate) fn push(out: &mut Vec<u8>, item: Option<&[u8]>) {
    let length = item.map_or(-1, |item| item.len() as i32);
    debug_assert!(item.is_none() || length >= 0, "keys and values are shorter than 2 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(item.unwrap_or_default());
}

/// Texts as items.
pub(crate) fn of<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut out = Vec::new();
    texts.into_iter().for_each(|text| push(&mut out, Some(text.as_ref())));
    out
}

/// What reads them.
pub(crate) struct Items<'a>(pub(crate) &'a [u8]);

impl<'a> Items<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes).ok_or_else(broken)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| broken())
    }

    /// A byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// A number of eight bytes.
    pub(crate) fn number(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// An item that may be none.
    pub(crate) fn optional(&mut self) -> Result<Option<&'a [u8]>> {
        match i32::from_le_bytes(self.array()?) {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| broken())?).map(Some),
        }
    }

    /// An item.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        self.optional()?.ok_or_else(broken)
    }

    /// An item that is a text.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        str::from_utf8(self.bytes()?).map_err(|_| Error::invalid("a text is not UTF-8"))
    }
}

/// Java's half writes what this one reads: only threads that use one batch at once can make it something else.
pub(crate) fn broken() -> Error {
    Error::invalid("a batch is not what was written into it: use it from one thread at a time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_read_and_every_other_end_is_an_error() {
        let mut out = of(["ada", ""]);
        push(&mut out, None);
        out.extend_from_slice(&7_i64.to_le_bytes());
        let mut items = Items(&out);
        assert_eq!((items.text().unwrap(), items.bytes().unwrap()), ("ada", &b""[..]));
        assert_eq!((items.optional().unwrap(), items.number().unwrap()), (None, 7));
        assert!(items.is_empty() && items.byte().is_err());
        for end in 0..out.len() {
            let mut items = Items(&out[..end]);
            let read = items.text().and_then(|_| items.bytes()).and_then(|_| items.optional());
            assert!(read.and_then(|_| items.number()).is_err(), "{end}");
        }
        assert!(Items(&(-2_i32).to_le_bytes()).optional().is_err());
        assert!(Items(&i32::MAX.to_le_bytes()).optional().is_err());
    }
}
