//! Counting references to files.
//!
//! **Invariant:** a file is retired only once nothing refers to it.

use forebay_layouts::{DataFile, WeakFile};

use super::VersionSet;

/// Files that nothing refers to any more, and that somebody may read all the same.
#[derive(Default)]
pub(crate) struct Retired {
    files: Vec<WeakFile>,
    /// This many there may be until it is worth looking which of them nobody reads any more.
    files_max: usize,
}

impl Retired {
    fn add(&mut self, file: &DataFile) {
        if self.files.len() >= self.files_max {
            self.files.retain(WeakFile::is_kept);
            self.files_max = 2 * self.files.len() + 16;
        }
        self.files.push(file.downgrade());
    }

    /// Those that somebody reads.
    pub(crate) fn kept(&self) -> Vec<WeakFile> {
        self.files.iter().filter(|file| file.is_kept()).cloned().collect()
    }
}

impl VersionSet {
    /// Counts what is referred to now in place of what was. More before fewer, so that no file is taken for unneeded in
    /// between.
    pub(crate) fn refer_instead(&mut self, before: Vec<DataFile>, now: Vec<DataFile>) {
        let more = now.into_iter().map(|file| (file, 1));
        self.refer(more.chain(before.into_iter().map(|file| (file, -1))).collect());
    }

    /// Counts all references from scratch: what edits have added and taken off comes to the same.
    #[cfg(invariants)]
    pub(super) fn check_references(&self, state: &crate::versions::State) {
        let mut counted = std::collections::BTreeMap::new();
        let kept = self.savepoints.values().flat_map(|savepoint| savepoint.files());
        state.files().chain(kept).for_each(|file| *counted.entry(file.id()).or_insert(0) += 1);
        let known = self.references.iter().map(|(&id, (_, count))| (id, *count));
        assert_eq!(counted, known.collect(), "files, and how often they are referred to");
    }

    /// Counts references; a file that nothing refers to is retired. Call once the edit is durable.
    pub(crate) fn refer(&mut self, references: Vec<(DataFile, i32)>) {
        for (file, by) in references {
            let (id, bytes) = (file.id(), file.bytes());
            debug_assert!(by < 0 || !file.is_retired(), "nothing refers to a file again once it is retired");
            let entry = self.references.entry(id).or_insert_with(|| (file.clone(), 0));
            if bytes > entry.0.bytes() {
                entry.0 = file;
            }
            entry.1 += by as i64;
            debug_assert!(entry.1 >= 0, "no reference to file {id} is given up twice");
            if entry.1 <= 0
                && let Some((file, _)) = self.references.remove(&id)
            {
                file.retire();
                self.retired.add(&file);
            }
        }
    }
}
