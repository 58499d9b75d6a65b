//! Reading a segment's file ahead of who checks its frames, on a thread of its own. Under a stepper, of short files, and
//! where there is one core, nobody does.
//!
//! **Invariant:** what comes are the file's bytes from its front, none twice and none left out, and an error comes in its
//! place. Once this is dropped the thread has ended.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use forebay_base::Result;
use forebay_env::{File, Handle, Jobs};

/// Free bytes before those of each piece: what is left of the one before is put there.
pub(super) const HEADROOM_BYTES: usize = 64 << 10;
const PIECE_BYTES: usize = 512 << 10;
/// This many wait at most.
const PIECES: usize = 3;
/// Shorter files are not worth a thread, and in little memory there are no longer ones.
const FILE_BYTES_MIN: usize = 16 << 20;

const _: () = assert!(
    FILE_BYTES_MIN >= (PIECES + 2) * (HEADROOM_BYTES + PIECE_BYTES),
    "few of its pieces are in memory"
);

/// See the module.
pub(super) struct Ahead {
    ready: Option<Receiver<Result<Vec<u8>>>>,
    used: Sender<Vec<u8>>,
    thread: Option<Handle>,
}

impl Ahead {
    /// From the front of a file of this many bytes.
    pub(super) fn start(jobs: &Jobs, file: &Arc<dyn File>, len: usize) -> Option<Self> {
        if len < FILE_BYTES_MIN || jobs.is_stepper() || jobs.parallelism() < 2 {
            return None;
        }
        let (pieces, ready) = mpsc::sync_channel(PIECES);
        let (used, spare) = mpsc::channel();
        let file = Arc::clone(file);
        let thread = jobs.fork("forebay-ahead", move || read(&*file, len, &pieces, &spare));
        if thread.refused().is_some() {
            return None;
        }
        Some(Self { ready: Some(ready), used, thread: Some(thread) })
    }

    /// What comes next, behind [`HEADROOM_BYTES`]; `None` where there is no more.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.ready.as_ref().and_then(|ready| ready.recv().ok()).transpose()
    }

    /// Takes the memory of a piece back.
    pub(super) fn give_back(&self, piece: Vec<u8>) {
        if piece.capacity() == HEADROOM_BYTES + PIECE_BYTES {
            // A thread that has ended needs none.
            drop(self.used.send(piece));
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Who waits for room sees that nobody reads any more.
        self.ready = None;
        self.thread.take().into_iter().for_each(Handle::join);
    }
}

fn read(file: &dyn File, len: usize, pieces: &SyncSender<Result<Vec<u8>>>, spare: &Receiver<Vec<u8>>) {
    let mut at = 0;
    while at < len {
        let wanted = PIECE_BYTES.min(len - at);
        let mut piece = spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(HEADROOM_BYTES + PIECE_BYTES));
        piece.resize(HEADROOM_BYTES + wanted, 0);
        let got = file.read_at(at as u64, &mut piece[HEADROOM_BYTES..]);
        let is_last = got.as_ref().map_or(true, |&got| got < wanted);
        at += wanted;
        let sent = pieces.send(got.map(|got| {
            piece.truncate(HEADROOM_BYTES + got);
            piece
        }));
        if is_last || sent.is_err() {
            return;
        }
    }
}
