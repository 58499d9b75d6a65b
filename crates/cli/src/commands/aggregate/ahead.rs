//! Unpacks ahead, on threads of their own: one that reads and, where members of gzip data say how long they are, as
//! those do that `bgzip` writes, several that unpack members beside each other.
//!
//! **Invariant:** blocks come in their order, and no more than a few of them wait, none of which is long, however much
//! is packed into how little; a reader that goes away ends all threads at the next block.

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
/// Members are unpacked together until they have this many packed bytes, or say that they hold this many.
const MEMBERS_BYTES: usize = 64 << 10;
const UNPACKED_BYTES: usize = 256 << 10;
/// The most that a member may say it holds, to be unpacked beside others: more than `bgzip` puts into one is unpacked
/// as it comes.
const MEMBER_BYTES_MAX: usize = 64 << 10;
/// The most threads that unpack members: each has a block of memory, or two.
const UNPACKERS_MAX: usize = 8;
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

/// Members to be unpacked, how much they say they hold, and memory for that.
struct Job {
    packed: Vec<u8>,
    said: usize,
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
        let threads = threads.min(UNPACKERS_MAX);
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
            // Behind the last block there is nothing.
            let Ok(part) = self.ready.recv() else { return Ok(0) };
            let lost = |_| io::Error::other("a thread that unpacks panicked");
            let block = part.recv().map_err(lost).and_then(|block| block);
            // Behind an error there is nothing, either: blocks that are ready are not for it.
            let block = block.inspect_err(|_| self.ready = mpsc::sync_channel(0).1)?;
            let used = mem::replace(&mut self.block, block);
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
        let mut packed = Vec::new();
        let first = if packer == Packer::Gzip { take_member(&mut from, &mut packed)? } else { None };
        let Some(mut said) = first else {
            return self.read_all(packer.unpack(Cursor::new(packed).chain(from), name)?);
        };
        loop {
            let length = packed.len();
            let member = take_member(&mut from, &mut packed)?;
            let rest = if member.is_some() { Vec::new() } else { packed.split_off(length) };
            said += member.unwrap_or(0);
            if member.is_some() && packed.len() < MEMBERS_BYTES && said < UNPACKED_BYTES {
                continue;
            }
            if !self.unpack(mem::take(&mut packed), mem::take(&mut said)) {
                return Ok(());
            }
            if member.is_none() {
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

    /// Has members unpacked, which say how much they hold. `false` where nobody wants that.
    fn unpack(&mut self, packed: Vec<u8>, said: usize) -> bool {
        let (done, part) = mpsc::sync_channel(1);
        if packed.is_empty() {
            return true;
        }
        let spare = self.spare.try_recv().unwrap_or_default();
        let jobs = self.jobs.get_or_insert_with(|| unpackers(self.scope, self.threads));
        self.parts.send(part).is_ok() && jobs.send(Job { packed, said, spare, done }).is_ok()
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
                let Ok(Job { packed, said, spare, done }) = job else { return };
                // Who wants it may be gone.
                drop(done.send(unpacked(&packed, said, spare)));
            }
        });
    }
    jobs
}

/// What members hold, which say that it is so much. It takes the memory of that, whatever they hold.
fn unpacked(mut packed: &[u8], said: usize, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    bytes.clear();
    bytes.reserve_exact(said + 1);
    while !packed.is_empty() {
        let mut member = GzDecoder::new(packed).take((said + 1 - bytes.len()) as u64);
        member.read_to_end(&mut bytes)?;
        if bytes.len() > said {
            let reason = "a member of the gzip data holds more than it says";
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        packed = member.into_inner().into_inner();
    }
    Ok(bytes)
}

/// Appends the next member, if it says how long it is and is all there, and returns how much it says it holds; else
/// appends some of what is there. So it does with one that says it holds more than a member may.
fn take_member(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let start = bytes.len();
    from.by_ref().take(HEAD_BYTES as u64).read_to_end(bytes)?;
    let length = match bytes[start..] {
        [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, low, high] => {
            usize::from(u16::from_le_bytes([low, high])) + 1
        }
        _ => return Ok(None),
    };
    if length < HEAD_BYTES + FOOT_BYTES {
        return Ok(None);
    }
    from.by_ref().take((length - HEAD_BYTES) as u64).read_to_end(bytes)?;
    let said = bytes.last_chunk().map_or(usize::MAX, |said| u32::from_le_bytes(*said) as usize);
    Ok((bytes.len() - start == length && said <= MEMBER_BYTES_MAX).then_some(said))
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
    fn blocks_are_short_however_much_is_packed_into_a_member() {
        let bytes_max = UNPACKED_BYTES + MEMBER_BYTES_MAX + 1;
        for (length, count) in
            [(MEMBER_BYTES_MAX, 600), (MEMBER_BYTES_MAX + 1, 600), (1 << 20, 40), (0, 9000)]
        {
            let packed = member(&vec![b'0'; length]).repeat(count);
            thread::scope(|scope| {
                let mut from = Ahead::spawn(scope, Packer::Gzip, &packed[..], "test".into(), 3);
                let (mut some, mut whole) = (vec![0; bytes_max], 0);
                loop {
                    let read = from.read(&mut some).unwrap();
                    assert!(from.block.capacity() <= bytes_max, "{length}: {}", from.block.capacity());
                    whole += read;
                    if read == 0 {
                        break;
                    }
                }
                assert_eq!(whole, length * count);
            });
        }
    }

    #[test]
    fn no_more_is_unpacked_than_a_member_says_it_holds() {
        let mut lying = member(&[b'0'; 60_000]);
        let at = lying.len() - 4;
        lying[at..].copy_from_slice(&10_u32.to_le_bytes());
        let error = unpacked(&lying, 10, Vec::new()).unwrap_err();
        assert!(error.to_string().contains("more than it says"), "{error}");
        assert!(read(&lying).is_err());
    }

    #[test]
    fn nothing_comes_behind_an_error() {
        let mut members: Vec<Vec<u8>> = texts(300).iter().map(|text| member(text)).collect();
        let length = members[0].len();
        members[0][length / 2] ^= 0x55;
        let packed = members.concat();
        thread::scope(|scope| {
            let mut from = Ahead::spawn(scope, Packer::Gzip, &packed[..], "test".into(), 3);
            let mut some = [0; 100];
            assert!(from.read(&mut some).is_err());
            assert_eq!(from.read(&mut some).unwrap(), 0);
        });
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
