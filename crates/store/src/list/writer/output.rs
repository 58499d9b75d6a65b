//! Where the pages of a list go: to the file, chunk by chunk, each of which is written behind whoever fills the next.
//!
//! **Invariant:** one write at most is on its way, and none when the file is synced. What the system may still read is
//! neither changed nor freed. A file of which a write failed is never finished.

use std::mem;
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result};
use forebay_env::fs::Behind;
use forebay_env::{AlignedBuf, File};

use crate::list::store::ListStore;
use crate::metrics::Cause;

pub(super) struct Output {
    store: Arc<ListStore>,
    cause: Cause,
    file: Arc<dyn File>,
    /// What is not yet on its way.
    chunk: AlignedBuf,
    filled_bytes: usize,
    /// Where in the file it begins.
    begun_bytes: u64,
    /// The chunk before it.
    behind: Option<Behind<(AlignedBuf, Result<()>)>>,
    /// Why a write failed.
    failure: Option<Error>,
}

impl Output {
    /// To a new file, from buffers of this many bytes in all.
    pub(super) fn new(
        store: &Arc<ListStore>,
        file: Arc<dyn File>,
        cause: Cause,
        buffers_bytes: usize,
    ) -> Self {
        // One is written while the other one is filled.
        let chunk_bytes = buffers_bytes / 2;
        debug_assert!(chunk_bytes > 0 && chunk_bytes.is_multiple_of(BLOCK_BYTES), "direct I/O wants blocks");
        let chunk = AlignedBuf::zeroed(chunk_bytes);
        Self {
            store: Arc::clone(store),
            cause,
            file,
            chunk,
            filled_bytes: 0,
            begun_bytes: 0,
            behind: None,
            failure: None,
        }
    }

    /// Bytes of the file so far.
    pub(super) fn bytes(&self) -> u64 {
        self.begun_bytes + self.filled_bytes as u64
    }

    /// Appends this many bytes, if they fit into the chunk: `fill` is to set them all.
    pub(super) fn fill<T>(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> T) -> Result<Option<T>> {
        let filled = self.filled_bytes;
        let Some(room) = self.chunk.get_mut(filled..filled + bytes) else { return Ok(None) };
        let filled = fill(room);
        self.took(bytes)?;
        Ok(Some(filled))
    }

    /// Appends bytes through the chunk, so that writes are long and aligned.
    pub(super) fn emit(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = &mut self.chunk[self.filled_bytes..];
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            self.took(now.len())?;
            bytes = later;
        }
        Ok(())
    }

    fn took(&mut self, bytes: usize) -> Result<()> {
        self.filled_bytes += bytes;
        if self.filled_bytes < self.chunk.len() {
            return Ok(());
        }
        let other = self.wait()?.unwrap_or_else(|| AlignedBuf::zeroed(self.chunk.len()));
        let chunk = mem::replace(&mut self.chunk, other);
        let (file, offset, bytes) = (Arc::clone(&self.file), self.begun_bytes, self.filled_bytes);
        self.behind = Some(self.store.fs.helpers().begin(move || {
            let written = file.write_at(offset, &chunk[..bytes]);
            (chunk, written)
        }));
        self.count();
        Ok(())
    }

    /// Writes the chunk at once.
    fn write(&mut self) -> Result<()> {
        debug_assert!(self.filled_bytes.is_multiple_of(BLOCK_BYTES), "direct I/O wants whole blocks");
        self.file.write_at(self.begun_bytes, &self.chunk[..self.filled_bytes])?;
        self.count();
        Ok(())
    }

    fn count(&mut self) {
        let bytes = mem::take(&mut self.filled_bytes) as u64;
        self.store.metrics.list_bytes_written[self.cause as usize].add(bytes);
        self.store.disk.wrote(bytes);
        self.begun_bytes += bytes;
    }

    /// Waits for the write that is on its way, and gives its buffer back.
    fn wait(&mut self) -> Result<Option<AlignedBuf>> {
        let Some(behind) = self.behind.take() else { return Ok(None) };
        let (chunk, written) = match behind.wait() {
            Some((chunk, written)) => (Some(chunk), written),
            None => (None, Err(Error::bug("a write behind a list panicked"))),
        };
        written.inspect_err(|error| self.failure = Some(error.clone())).map(|()| chunk)
    }

    /// Writes what is left, and makes the file's bytes durable.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.wait()?;
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        if self.filled_bytes > 0 {
            self.write()?;
        }
        debug_assert!(self.behind.is_none(), "a sync covers all that was written");
        if self.store.in_memory {
            // It has grown by doubling.
            self.file.set_len(self.begun_bytes)?;
        }
        self.file.sync()
    }

    /// Sees to it that nothing is written any more. Returns how much was.
    pub(super) fn give_up(&mut self) -> u64 {
        // Whoever gives up knows why, or does not ask.
        let _ = self.wait();
        self.begun_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use forebay_base::Order;
    use forebay_base::codec::Codec;
    use forebay_env::fs::{FaultyFs, MemoryFs, RealFs, TracedFs};
    use forebay_env::{Access, FileSystem};

    use super::*;
    use crate::list::tests::store_in;

    const BUFFERS_BYTES: usize = 4 * BLOCK_BYTES;

    fn output(fs: Arc<dyn FileSystem>, dir: &Path) -> Output {
        let store = store_in(fs, dir, Order::Lexical, Codec::None);
        let file = store.fs.create(&dir.join("list"), Access::Direct).unwrap();
        Output::new(&store, file, Cause::Merge, BUFFERS_BYTES)
    }

    /// A directory of the machine's, for one test.
    fn dir(of: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("forebay-{of}-{}", std::process::id()));
        RealFs::new().create_dir_all(&dir).unwrap();
        dir
    }

    fn remove(dir: &Path) {
        let fs = RealFs::new();
        fs.remove(&dir.join("list")).unwrap();
        fs.remove_dir(dir).unwrap();
    }

    /// Bytes that are nowhere the same.
    fn some_bytes(blocks: usize) -> Vec<u8> {
        (0..blocks * BLOCK_BYTES / 4).flat_map(|index| (index as u32).to_le_bytes()).collect()
    }

    #[test]
    fn what_is_written_behind_is_all_there() {
        let (dir, fs) = (dir("written-behind"), RealFs::new() as Arc<dyn FileSystem>);
        for blocks in [1, 2, 3, 4, 5, 64, 129] {
            let (mut output, bytes) = (output(Arc::clone(&fs), &dir), some_bytes(blocks));
            // In pieces that end anywhere.
            bytes.chunks(1000).for_each(|piece| output.emit(piece).unwrap());
            assert_eq!(output.bytes(), bytes.len() as u64);
            output.finish().unwrap();
            let mut found = vec![0; bytes.len() + 1];
            let file = fs.open_read(&dir.join("list"), Access::Buffered).unwrap();
            assert_eq!(file.read_at(0, &mut found).unwrap(), bytes.len());
            assert!(found[..bytes.len()] == bytes, "{blocks} blocks");
        }
        remove(&dir);
    }

    #[test]
    fn a_write_that_failed_behind_is_told_before_the_file_is_synced() {
        let dir = dir("failed-behind");
        let inners: [Arc<dyn FileSystem>; 2] = [RealFs::new(), MemoryFs::new()];
        for inner in inners {
            inner.create_dir_all(&dir).unwrap();
            for failed in 1..=6 {
                let faulty = FaultyFs::new(Arc::clone(&inner));
                let traced = TracedFs::new(Arc::clone(&faulty) as Arc<dyn FileSystem>);
                let mut output = output(Arc::clone(&traced) as Arc<dyn FileSystem>, &dir);
                faulty.rule(&format!("write list #{failed} io-error")).unwrap();
                let told = output.emit(&some_bytes(11)).and_then(|()| output.finish());
                assert!(told.is_err(), "write {failed} of 6");
                // Only the last chunk is not yet given away, and can be written again.
                assert!(failed == 6 || output.finish().is_err(), "write {failed} of 6");
                assert_eq!(traced.counts().syncs, 0, "write {failed} of 6");
                output.give_up();
            }
        }
        remove(&dir);
    }
}
