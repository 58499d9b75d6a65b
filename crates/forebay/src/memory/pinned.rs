//! What snapshots and scans alone still hold in memory goes to files without a name, once it takes more than its share.

use forebay_env::Attic;
use forebay_layouts::WeakFile;
use forebay_store::{Owner, names};

use crate::memory::MemoryShares;

impl MemoryShares {
    /// Moves the oldest buffer that only snapshots and scans still see out of memory, unless the others fit their
    /// share. Says whether it has.
    pub(crate) fn move_pinned_buffer(&self) -> bool {
        let share = self.context.buffers().total_bytes();
        self.versions.forget_flushed_buffers();
        if self.context.pool.held_bytes() <= share {
            return false;
        }
        self.versions.oldest_pinned_buffer().is_some_and(|buffer| {
            // A crash before it loses its name leaves what the next open removes.
            let path = names::log(&self.context.dir, buffer.segment()).with_extension("log.tmp");
            // Where it fails, as on a full disk, they stay where they are until the next try.
            buffer.move_to(&*self.context.env.fs, &path).unwrap_or(false)
        })
    }

    /// Moves lists that are in memory for snapshots and scans alone to a file, once all that are there take more than
    /// their share.
    pub(crate) fn move_pinned_lists(&self) {
        let context = &self.context;
        if context.metrics.memory.now(Owner::Resident) <= context.division().resident_room().bytes {
            return;
        }
        let retired = self.versions.lock().retired.kept();
        let lists = || retired.iter().filter_map(WeakFile::list).filter(|list| list.is_in_memory());
        let Some(first) = lists().next() else { return };
        let bytes = lists().map(|list| list.bytes()).sum();
        // A crash before it loses its name leaves what the next open removes.
        let path = names::list(&context.dir, first.id()).with_extension("list.tmp");
        // Where it fails, as on a full disk, they stay where they are until the next try.
        if let Ok(Some(mut attic)) = Attic::make(&*context.env.fs, &path, bytes) {
            lists().all(|list| list.move_to(&mut attic).is_ok());
        }
    }
}
