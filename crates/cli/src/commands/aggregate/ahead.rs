//! Unpacks ahead, on threads of their own: one that reads and, where members of gzip data say how long they are, as
//! those do that `bgzip` writes, several that unpack members beside each other.
//!
//! **Invariant:** blocks come in their order, and no more than a few of them wait; a reader that goes away ends all
//! threads at the next block.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::Scope;

use flate2::bufread::GzDecoder;
use forebay_env::sync::Mutex;

use crate::input::unpack::{Packer, behind_gzip};

const BLOCK_BYTES: usize = 128 << 10;
/// Blocks that wait, and those for each thread that unpacks members.
const BLOCKS: usize = 3;
/// How many packed bytes are unpacked together.
const MEMBERS_BYTES: usize = 64 << 10;
/// What a member begins with that says how long it is: in an extra field `BC`, the only one.
const HEAD_BYTES: usize = 18;
/// What stands behind a member's packed bytes.
const FOOT_BYTES: usize = 8;

/// See the module.
pub(super) struct Ahead {
    ready: Receiver<Part>,
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

/// A block that is ready, or will be.
type Part = Receiver<io::Result<Vec<u8>>>;

/// Members to be unpacked, and memory to do so.
struct Job {
    packed: Vec<u8>,
    spare: Vec<u8>,
    done: SyncSender<io::Result<Vec<u8>>>,
}

impl Ahead {
    /// Unpacks data, of which messages speak by this name, by so many threads at most.
    pub(super) fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        packer: Packer,
        from: impl Read + Send + 'scope,
        name: String,
        threads: usize,
    ) -> Self {
        let (parts, ready) = mpsc::sync_channel(BLOCKS + threads);
        let (used, spare) = mpsc::channel();
        scope.spawn(move || {
            let mut dealer = Dealer { scope, parts, spare, jobs: None, threads };
            if let Err(error) = dealer.deal(packer, from, &name) {
                dealer.give(Err(error));
            }
        });
        Self { ready, used, block: Vec::new(), at: 0 }
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            // Behind the last block, or an error, there is nothing.
            let Ok(part) = self.ready.recv() else { return Ok(0) };
            let lost = |_| io::Error::other("a thread that unpacks panicked");
            let used = mem::replace(&mut self.block, part.recv().map_err(lost)??);
            self.at = 0;
            // A thread that has ended needs no more blocks.
            drop(self.used.send(used));
        }
        let read = (&self.block[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}

/// Who reads what is packed.
struct Dealer<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    parts: SyncSender<Part>,
    spare: Receiver<Vec<u8>>,
    /// What threads unpack, once there are some.
    jobs: Option<SyncSender<Job>>,
    threads: usize,
}

impl<'scope> Dealer<'scope, '_> {
    fn deal(&mut self, packer: Packer, from: impl Read + Send + 'scope, name: &str) -> io::Result<()> {
        let mut from = BufReader::with_capacity(BLOCK_BYTES, from);
        let mut head = Vec::new();
        if packer != Packer::Gzip || !take_member(&mut from, &mut head)? {
            return self.read_all(packer.unpack(Cursor::new(head).chain(from), name)?);
        }
        let mut packed = head;
        loop {
            let length = packed.len();
            let is_member = take_member(&mut from, &mut packed)?;
            let rest = if is_member { Vec::new() } else { packed.split_off(length) };
            if is_member && packed.len() < MEMBERS_BYTES {
                continue;
            }
            if !self.unpack(mem::take(&mut packed)) {
                return Ok(());
            }
            if !is_member {
                return self.read_all(behind_gzip(Cursor::new(rest).chain(from), name)?);
            }
        }
    }

    /// Reads what is unpacked here to its end.
    fn read_all(&self, mut from: Box<dyn Read + Send + '_>) -> io::Result<()> {
        loop {
            let mut block = self.spare.try_recv().unwrap_or_default();
            block.resize(BLOCK_BYTES, 0);
            match from.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(bytes) => block.truncate(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if !self.give(Ok(block)) {
                return Ok(());
            }
        }
    }

    /// Gives a block, or why there is none. `false` where nobody wants it.
    fn give(&self, block: io::Result<Vec<u8>>) -> bool {
        let (done, part) = mpsc::sync_channel(1);
        done.send(block).is_ok() && self.parts.send(part).is_ok()
    }

    /// Has members unpacked. `false` where nobody wants that.
    fn unpack(&mut self, packed: Vec<u8>) -> bool {
        let (done, part) = mpsc::sync_channel(1);
        if packed.is_empty() {
            return true;
        }
        let spare = self.spare.try_recv().unwrap_or_default();
        let jobs = self.jobs.get_or_insert_with(|| unpackers(self.scope, self.threads));
        self.parts.send(part).is_ok() && jobs.send(Job { packed, spare, done }).is_ok()
    }
}

/// Threads that unpack members.
fn unpackers<'scope>(scope: &'scope Scope<'scope, '_>, threads: usize) -> SyncSender<Job> {
    let (jobs, next) = mpsc::sync_channel::<Job>(threads);
    let next = Arc::new(Mutex::new(next));
    for _ in 0..threads {
        let next = Arc::clone(&next);
        scope.spawn(move || {
            loop {
                let job = next.lock().recv();
                let Ok(Job { packed, spare, done }) = job else { return };
                // Who wants it may be gone.
                drop(done.send(unpacked(&packed, spare)));
            }
        });
    }
    jobs
}

/// What members hold.
fn unpacked(mut packed: &[u8], mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    bytes.clear();
    while !packed.is_empty() {
        let mut member = GzDecoder::new(packed);
        member.read_to_end(&mut bytes)?;
        packed = member.into_inner();
    }
    Ok(bytes)
}

/// Appends the next member, if it says how long it is and is all there; else some of what is there.
fn take_member(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let start = bytes.len();
    from.by_ref().take(HEAD_BYTES as u64).read_to_end(bytes)?;
    let length = match bytes[start..] {
        [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, low, high] => {
            usize::from(u16::from_le_bytes([low, high])) + 1
        }
        _ => return Ok(false),
    };
    if length < HEAD_BYTES + FOOT_BYTES {
        return Ok(false);
    }
    from.by_ref().take((length - HEAD_BYTES) as u64).read_to_end(bytes)?;
    Ok(bytes.len() - start == length)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use flate2::{Compression, GzBuilder};

    use super::*;

    /// A member that says how long it is.
    fn member(text: &[u8]) -> Vec<u8> {
        let gzip = GzBuilder::new().extra(&b"BC\x02\0\0\0"[..]);
        let mut gzip = gzip.write(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        let mut member = gzip.finish().unwrap();
        let length = u16::try_from(member.len() - 1).unwrap();
        member[HEAD_BYTES - 2..HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        member
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn read(packed: &[u8]) -> io::Result<Vec<u8>> {
        thread::scope(|scope| {
            let mut text = Vec::new();
            let mut from = Ahead::spawn(scope, Packer::Gzip, packed, "test".into(), 3);
            from.read_to_end(&mut text).map(|_| text)
        })
    }

    /// Numbers, of which each thousand is a text that packs into less than a member can be.
    fn texts(count: usize) -> Vec<Vec<u8>> {
        let text = |part: usize| (0..1000).map(|at| format!("{} ", part * at)).collect::<String>();
        (0..count).map(|part| text(part).into_bytes()).collect()
    }

    #[test]
    fn members_come_in_order_whatever_they_say() {
        let texts = texts(300);
        let whole = texts.concat();
        let members: Vec<Vec<u8>> = texts.iter().map(|text| member(text)).collect();
        assert!(members.concat().len() > 5 * MEMBERS_BYTES, "it is to be several parts");
        assert_eq!(read(&members.concat()).unwrap(), whole);
        // As bgzip ends files.
        assert_eq!(read(&[members.concat(), member(b"")].concat()).unwrap(), whole);
        let plain: Vec<Vec<u8>> = texts.iter().map(|text| gzip(text)).collect();
        assert_eq!(read(&plain.concat()).unwrap(), whole);
        let mixed = [&members[..200], &plain[200..]].concat().concat();
        assert_eq!(read(&mixed).unwrap(), whole);
        assert_eq!(read(&[mixed, vec![0; 600]].concat()).unwrap(), whole);
        assert_eq!(read(&[members.concat(), b"trailing".to_vec()].concat()).unwrap(), whole);
    }

    #[test]
    fn what_is_cut_or_damaged_is_an_error() {
        let members: Vec<Vec<u8>> = texts(300).iter().map(|text| member(text)).collect();
        let packed = members.concat();
        for cut in [10, HEAD_BYTES + 2, packed.len() / 2, packed.len() - 1] {
            assert!(read(&packed[..cut]).is_err(), "cut at {cut}");
        }
        let mut damaged = packed.clone();
        damaged[packed.len() / 2] ^= 0x55;
        assert!(read(&damaged).is_err());
    }

    /// All threads end.
    #[test]
    fn a_reader_may_go_away() {
        let packed = texts(300).iter().map(|text| member(text)).collect::<Vec<_>>().concat();
        thread::scope(|scope| {
            let mut from = Ahead::spawn(scope, Packer::Gzip, &packed[..], "test".into(), 3);
            let mut some = [0; 100];
            from.read_exact(&mut some).unwrap();
        });
    }
}
