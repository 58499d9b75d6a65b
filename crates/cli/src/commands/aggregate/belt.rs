//! Cells on their way to bytes: encoded by threads of their own, and written in order by whoever makes them.
//!
//! **Invariant:** what is written is the same with any number of threads: batches are handed out in turn, and taken back
//! in the same turn. Each thread has one at most.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::Scope;

use forebay::Error;

use super::cells::Cells;
use super::sheet::{Encoded, Encoder};

/// See the module.
pub(super) struct Belt<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    encoder: &'env Encoder,
    /// Those that work, and how many there may be.
    threads: Vec<Thread>,
    threads_max: usize,
    sent: usize,
}

/// A thread, and what it is at work on.
struct Thread {
    cells: SyncSender<Cells>,
    done: Receiver<(Result<Encoded, Error>, Cells)>,
    is_busy: bool,
}

impl<'scope, 'env> Belt<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        encoder: &'env Encoder,
        threads_max: usize,
    ) -> Self {
        Self { scope, encoder, threads: Vec::new(), threads_max, sent: 0 }
    }

    /// Has cells encoded, after all before them, and leaves empty ones in their place. `write` is given what is ready.
    pub(super) fn send(
        &mut self,
        cells: &mut Cells,
        write: &mut impl FnMut(Encoded) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.threads_max == 0 {
            let encoded = self.encoder.encode(cells)?;
            cells.clear();
            return write(encoded);
        }
        let at = self.sent % self.threads_max;
        if self.threads.len() == at {
            self.threads.push(self.spawn());
        }
        self.sent += 1;
        let spare = self.threads[at].take(write)?;
        let thread = &mut self.threads[at];
        let empty = spare.unwrap_or_else(|| cells.like());
        // A thread goes away with this only.
        thread.is_busy = thread.cells.send(std::mem::replace(cells, empty)).is_ok();
        Ok(())
    }

    /// Writes what is on its way, and these last cells.
    pub(super) fn finish(
        mut self,
        mut cells: Cells,
        write: &mut impl FnMut(Encoded) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let count = self.threads.len();
        for at in 0..count {
            self.threads[(self.sent + at) % count].take(write)?;
        }
        if cells.rows() == 0 { Ok(()) } else { write(self.encoder.encode(&mut cells)?) }
    }

    fn spawn(&self) -> Thread {
        let (cells, ready) = mpsc::sync_channel::<Cells>(1);
        let (finished, done) = mpsc::sync_channel(1);
        let encoder = self.encoder;
        self.scope.spawn(move || {
            for mut cells in ready {
                let encoded = encoder.encode(&mut cells);
                cells.clear();
                if finished.send((encoded, cells)).is_err() {
                    return;
                }
            }
        });
        Thread { cells, done, is_busy: false }
    }
}

impl Thread {
    /// Waits for what it is at work on, and writes that; gives back the cells.
    fn take(&mut self, write: &mut impl FnMut(Encoded) -> Result<(), Error>) -> Result<Option<Cells>, Error> {
        if !std::mem::take(&mut self.is_busy) {
            return Ok(None);
        }
        let lost = |_| Error::Panicked("a thread that writes groups panicked".into());
        let (encoded, cells) = self.done.recv().map_err(lost)?;
        write(encoded?)?;
        Ok(Some(cells))
    }
}
