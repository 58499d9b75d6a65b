//! Replies, as version 2 or 3 of the protocol writes them.

use std::io::Write;

/// For a text that is longer memory is taken as it needs.
const LONG_BYTES_MIN: usize = 1 << 20;

/// What is to be sent to a connection.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    /// 2 or 3.
    pub(crate) version: u8,
}

impl Default for Reply {
    fn default() -> Self {
        Self { bytes: Vec::new(), version: 2 }
    }
}

impl Reply {
    fn line(&mut self, mark: u8, text: impl std::fmt::Display) {
        self.bytes.push(mark);
        // A vector takes all.
        let _ = write!(self.bytes, "{text}\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// An error is one line, whatever is in it.
    pub(crate) fn error(&mut self, text: &str) {
        let text: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        self.line(b'-', text);
    }

    pub(crate) fn int(&mut self, number: i64) {
        self.line(b':', number);
    }

    /// Yes or no.
    pub(crate) fn truth(&mut self, is_so: bool) {
        match self.version {
            3 => self.line(b'#', if is_so { 't' } else { 'f' }),
            _ => self.int(i64::from(is_so)),
        }
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.line(b'$', bytes.len());
        if bytes.len() > LONG_BYTES_MIN {
            // Doubled it would be counted twice.
            self.bytes.reserve_exact(bytes.len() + 2);
        }
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(if self.version == 3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No array, where one could be.
    pub(crate) fn null_array(&mut self) {
        self.bytes.extend_from_slice(if self.version == 3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub(crate) fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// What a message begins with that nobody has asked for.
    pub(crate) fn push_mark(&self) -> u8 {
        if self.version == 3 { b'>' } else { b'*' }
    }

    /// A message of so many words that stands between replies, or in their place.
    pub(crate) fn push(&mut self, length: usize) {
        self.line(self.push_mark(), length);
    }

    pub(crate) fn array(&mut self, length: usize) {
        self.line(b'*', length);
    }

    /// Pairs, of which each is two replies.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.version {
            3 => self.line(b'%', pairs),
            _ => self.line(b'*', 2 * pairs),
        }
    }

    /// Elements of which each is there once.
    pub(crate) fn set(&mut self, length: usize) {
        self.line(if self.version == 3 { b'~' } else { b'*' }, length);
    }

    /// A number with a point, as it is shown.
    pub(crate) fn double(&mut self, shown: &str) {
        match self.version {
            3 => self.line(b',', shown),
            _ => self.bulk(shown.as_bytes()),
        }
    }

    /// A text for people.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if self.version == 3 {
            self.line(b'=', text.len() + 4);
            let _ = write!(self.bytes, "txt:{text}\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }
}
