//! Reading a change stream, message by message.
//!
//! **Invariant:** a message is given whole and as it was written, or there is an error that says where; bytes that end
//! early are no error. Memory grows with what has really come.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result};

use super::message::{Decoded, HEAD_BYTES, Head, MAGIC, Message, VERSION};

/// What a socket says whose other end is gone, or silent for longer than it may be.
pub(crate) const HUNG_UP: [ErrorKind; 6] = [
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::BrokenPipe,
    ErrorKind::NotConnected,
    ErrorKind::TimedOut,
    ErrorKind::WouldBlock,
];

/// The messages of a stream, or of several that stand one behind the other.
pub(crate) struct Messages<R> {
    from: R,
    name: PathBuf,
    /// Where this stream begins, and how much of it was read.
    start: u64,
    at: u64,
    /// Whether a round, or a stream, was told to its end, and nothing behind it was begun.
    is_whole: bool,
}

impl<R: Read> Messages<R> {
    /// Of bytes that errors call by this name.
    pub(crate) fn new(from: R, name: &Path) -> Self {
        Self { from, name: name.to_path_buf(), start: 0, at: 0, is_whole: false }
    }

    /// Whether nothing is missing that would belong to what was read: the bytes end behind a round, or behind a stream.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What errors call the bytes.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Damage to what was read last, or to what is read next.
    pub(crate) fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::corruption(&self.name, self.start + self.at, reason)
    }

    /// The next message; `None` where the bytes end, be it amid one.
    pub(crate) fn next(&mut self) -> Result<Option<Message>> {
        if self.at == 0 && !self.begin()? {
            return Ok(None);
        }
        debug_assert!(self.at >= MAGIC.len() as u64, "messages stand behind what tells that it is a stream");
        let mut head = [0; HEAD_BYTES];
        let got = self.fill(&mut head)?;
        self.is_whole &= got == 0;
        if got < HEAD_BYTES {
            return Ok(None);
        }
        let head = Head::decode(&head, self.at).ok_or_else(|| self.damaged("no message stands here"))?;
        if head.is_too_long() {
            return Err(self.damaged("the message is longer than any of its kind"));
        }
        let Some(body) = self.body(head.body_bytes as usize)? else { return Ok(None) };
        if !head.fits(&body, self.at) {
            return Err(self.damaged("the message's checksum does not match"));
        }
        let message = match Message::decode(head.kind, &body) {
            Some(Decoded::Message(message)) => message,
            Some(Decoded::Newer(version)) => {
                return Err(Error::NewerFormat { file: self.name.clone(), version, known: VERSION });
            }
            None => return Err(self.damaged("the message is malformed")),
        };
        self.at += (HEAD_BYTES + body.len()) as u64;
        self.is_whole = matches!(message, Message::Mark(_) | Message::End(_));
        if let Message::End(_) = &message {
            // Another may stand behind it.
            (self.start, self.at) = (self.start + self.at, 0);
        }
        Ok(Some(message))
    }

    /// Reads what a stream begins with. `false` where there is none.
    fn begin(&mut self) -> Result<bool> {
        let mut magic = [0; MAGIC.len()];
        let got = self.fill(&mut magic)?;
        self.is_whole &= got == 0;
        if magic[..got] != MAGIC[..got] {
            return Err(self.damaged("this is no change stream"));
        }
        if got > 0 {
            self.at = got as u64;
        }
        Ok(got == MAGIC.len())
    }

    fn body(&mut self, bytes: usize) -> Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        while body.len() < bytes {
            let (from, step) = (body.len(), (bytes - body.len()).min(STEP_BYTES));
            body.resize(from + step, 0);
            if self.fill(&mut body[from..])? < step {
                return Ok(None);
            }
        }
        debug_assert_eq!(body.len(), bytes, "a body is as long as its head says");
        Ok(Some(body))
    }

    /// Reads on until all of this is there, or nothing more is. Returns how much is.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < bytes.len() {
            match self.from.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(more) => got += more.min(bytes.len() - got),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Whoever sends is gone.
                Err(error) if HUNG_UP.contains(&error.kind()) => break,
                Err(error) => return Err(Error::io("read", &self.name, &error)),
            }
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::manifest::{Lineage, TableEntry};

    use super::super::message::{BatchOf, Ending, Greeting, Request, Round};
    use super::*;

    fn messages() -> Vec<Message> {
        let mut lineage = Lineage { database: 77, is_copy: true, ..Lineage::default() };
        [(5, 0), (6, 900)].into_iter().for_each(|(id, from)| lineage.begin(id, from));
        let table = |id| TableEntry {
            id,
            name: format!("table {id}"),
            options: vec![1, 2, 3],
            version: vec![4; 30],
            files: Vec::new(),
        };
        let round = Round { at_milliseconds: 1 << 40, next_table: 9, tables: Some(vec![table(1), table(7)]) };
        vec![
            Message::Request(Request { position: 12 }),
            Message::Greeting(Greeting { lineage, since: 12 }),
            Message::Round(round),
            Message::Batch(BatchOf { sequence: 13, records: 2, payload: vec![8; 40] }),
            Message::Mark(14),
            Message::Round(Round { tables: None, ..Round::default() }),
            Message::Mark(14),
            Message::Greeting(Greeting::default()),
            Message::End(Ending::Gone { since: 14, oldest: 20, rolled_back: Some(19) }),
        ]
    }

    fn written(messages: &[Message]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for message in messages {
            let place = bytes.len() as u64;
            message.encode(place, &mut bytes);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<Message>, Result<bool>) {
        let (mut from, mut found) = (Messages::new(bytes, Path::new("s")), Vec::new());
        loop {
            match from.next() {
                Ok(Some(message)) => found.push(message),
                Ok(None) => return (found, Ok(from.is_whole())),
                Err(error) => return (found, Err(error)),
            }
        }
    }

    #[test]
    fn messages_come_back_also_of_streams_one_behind_the_other() {
        let bytes = written(&messages());
        let (found, is_whole) = read(&bytes);
        assert_eq!((found, is_whole.unwrap()), (messages(), true));
        let (found, is_whole) = read(&[&bytes[..], &bytes].concat());
        assert_eq!((found.len(), is_whole.unwrap()), (2 * messages().len(), true));
        assert!(!read(&[]).1.unwrap(), "where nothing is, nothing has ended");
    }

    #[test]
    fn what_is_cut_off_is_no_damage_and_each_flipped_byte_is() {
        let bytes = written(&messages());
        let borders: Vec<usize> =
            (0..=messages().len()).map(|count| written(&messages()[..count]).len()).collect();
        for end in 0..=bytes.len() {
            let (found, is_whole) = read(&bytes[..end]);
            let is_told = matches!(found.last(), Some(Message::Mark(_) | Message::End(_)));
            assert!(messages().starts_with(&found), "cut at {end}");
            assert_eq!(is_whole.unwrap(), is_told && borders.contains(&end), "cut at {end}");
            let twice = [&bytes[..], &bytes[..end.min(MAGIC.len() - 1)]].concat();
            assert_eq!(read(&twice).1.unwrap(), end == 0, "nothing, or the beginning of another");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let (found, error) = read(&damaged);
            assert!(messages().starts_with(&found), "byte {at}");
            let Err(Error::Corruption { offset, .. }) = error else { panic!("byte {at}: {error:?}") };
            assert!(offset <= at as u64, "byte {at}: {offset}");
        }
    }

    /// Whoever sends may be anybody: its sums are right, and nothing is made for what it says will come.
    #[test]
    fn no_message_but_a_commit_is_very_long() {
        for (message, kind) in
            [(Message::Mark(1), 4), (Message::Round(Round::default()), 2), (Message::Mark(1), 3)]
        {
            let mut bytes = written(&[message]);
            let (head, place) = (&mut bytes[MAGIC.len()..], MAGIC.len() as u64);
            head[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
            head[12] = kind;
            let sum =
                forebay_base::checksum::checksum(u64::from_le_bytes(*MAGIC), place, &head[4..HEAD_BYTES]);
            head[..4].copy_from_slice(&sum.to_le_bytes());
            match read(&bytes).1 {
                Ok(is_whole) => assert!(kind == 3 && !is_whole, "a commit may be"),
                Err(error) => assert!(kind != 3 && error.to_string().contains("longer than any"), "{error}"),
            }
        }
        // Numbers of tables that leave no room for another.
        let round = Round { next_table: u32::MAX - 1, ..Round::default() };
        let mut bytes = written(&[Message::Round(round.clone())]);
        assert_eq!(read(&bytes).0, [Message::Round(round)]);
        let body = MAGIC.len() + HEAD_BYTES;
        bytes[body + 8] = 0xff;
        let (seed, place) = (u64::from_le_bytes(*MAGIC), MAGIC.len() as u64);
        let sum = forebay_base::checksum::checksum(seed, place, &bytes[body..]);
        bytes[MAGIC.len() + 4..MAGIC.len() + 8].copy_from_slice(&sum.to_le_bytes());
        let sum = forebay_base::checksum::checksum(seed, place, &bytes[MAGIC.len() + 4..body]);
        bytes[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&sum.to_le_bytes());
        assert!(read(&bytes).1.unwrap_err().to_string().contains("malformed"));
    }

    #[test]
    fn a_newer_stream_is_not_called_damaged() {
        let mut bytes = written(&messages()[1..2]);
        let body = MAGIC.len() + HEAD_BYTES;
        bytes[body] = 9;
        let place = MAGIC.len() as u64;
        let sum = forebay_base::checksum::checksum(u64::from_le_bytes(*MAGIC), place, &bytes[body..]);
        bytes[MAGIC.len() + 4..MAGIC.len() + 8].copy_from_slice(&sum.to_le_bytes());
        let head = &bytes[MAGIC.len() + 4..body];
        let sum = forebay_base::checksum::checksum(u64::from_le_bytes(*MAGIC), place, head);
        bytes[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&sum.to_le_bytes());
        assert!(matches!(read(&bytes).1, Err(Error::NewerFormat { version: 9, known: 1, .. })));
    }
}
