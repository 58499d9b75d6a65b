//! Reads ahead on a thread of its own, where making the bytes costs something, as unpacking does.
//!
//! **Invariant:** no more than a few blocks wait; a reader that goes away ends the thread at its next block.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

const BLOCK_BYTES: usize = 128 << 10;
const BLOCKS: usize = 3;

/// See the module.
pub(super) struct Ahead {
    ready: Receiver<io::Result<Vec<u8>>>,
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    pub(super) fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut from: impl Read + Send + 'scope,
    ) -> Self {
        let (blocks, ready) = mpsc::sync_channel(BLOCKS);
        let (used, spare) = mpsc::channel::<Vec<u8>>();
        scope.spawn(move || {
            loop {
                let mut block = spare.try_recv().unwrap_or_default();
                block.resize(BLOCK_BYTES, 0);
                let read = from.read(&mut block);
                let is_last = match &read {
                    Ok(bytes) => *bytes == 0,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => true,
                };
                let block = read.map(|bytes| {
                    block.truncate(bytes);
                    block
                });
                if blocks.send(block).is_err() || is_last {
                    return;
                }
            }
        });
        Self { ready, used, block: Vec::new(), at: 0 }
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            // The last block is empty, and behind it, or an error, there is nothing.
            let Ok(block) = self.ready.recv() else { return Ok(0) };
            let used = std::mem::replace(&mut self.block, block?);
            self.at = 0;
            // A thread that has ended needs no more blocks.
            drop(self.used.send(used));
        }
        let read = (&self.block[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}
