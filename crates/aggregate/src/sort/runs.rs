//! The runs of one owner, which are merged into fewer, and in the end into one.

use std::path::PathBuf;

use forebay_base::combine::Depth;
use forebay_base::merge::{Collapse, Direction, LoserTree};
use forebay_base::{Combine, Order, Record, Result};
use forebay_env::FileSystem;
use forebay_env::sync::Arc;

use super::run::{BLOCK_BYTES, Run, RunCursor, RunWriter};

/// More runs than this are not merged at once, whatever the memory.
const FAN_IN_MAX: usize = 512;

/// See the module.
pub(super) struct Runs<R> {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
    pub(super) order: Order,
    rule: R,
    fan_in: usize,
    runs: Vec<Arc<Run>>,
    /// What is known of them.
    bytes: usize,
    made: u64,
}

impl<R: Combine + Clone> Runs<R> {
    /// None yet; they are merged in half of this memory.
    pub(super) fn new(
        fs: Arc<dyn FileSystem>,
        directory: PathBuf,
        order: Order,
        rule: R,
        memory_max: usize,
    ) -> Result<Self> {
        fs.create_dir_all(&directory)?;
        let fan_in = (memory_max / 2 / BLOCK_BYTES).clamp(2, FAN_IN_MAX);
        Ok(Self { fs, directory, order, rule, fan_in, runs: Vec::new(), bytes: 0, made: 0 })
    }

    pub(super) fn all(&self) -> &[Arc<Run>] {
        &self.runs
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn writer(&mut self) -> Result<RunWriter> {
        self.made += 1;
        let path = self.directory.join(format!("run-{}", self.made));
        RunWriter::new(Arc::clone(&self.fs), path)
    }

    pub(super) fn add(&mut self, run: Run) {
        self.bytes += run.memory_bytes();
        self.runs.push(Arc::new(run));
    }

    /// Makes one run of the shortest, where there are so many that all could not be merged soon. What `keep` refuses is
    /// left out.
    pub(super) fn tend(&mut self, keep: &mut Keep<'_>) -> Result<()> {
        if self.runs.len() < 2 * self.fan_in {
            return Ok(());
        }
        self.runs.sort_by_key(|run| run.bytes());
        self.merge(self.fan_in, keep)
    }

    /// Makes one run of all.
    pub(super) fn merge_all(&mut self, keep: &mut Keep<'_>) -> Result<()> {
        while self.runs.len() > 1 {
            // The shortest first: the longest, perhaps the last result, is merged as rarely as can be.
            self.runs.sort_by_key(|run| run.bytes());
            // The first merge takes just so many that all others are full.
            let full = (self.runs.len() - 1) % (self.fan_in - 1).max(1);
            let count = if full == 0 { self.fan_in } else { full + 1 };
            self.merge(count.min(self.runs.len()), keep)?;
        }
        Ok(())
    }

    /// Makes one run of the first `count`.
    fn merge(&mut self, count: usize, keep: &mut Keep<'_>) -> Result<()> {
        debug_assert!((2..=self.runs.len()).contains(&count), "a merge leaves fewer runs");
        let mut writer = self.writer()?;
        let cursors = self.runs[..count].iter().map(|run| RunCursor::new(run, self.order, None));
        let tree = LoserTree::new(cursors.collect::<Result<_>>()?, Direction::Forward);
        let mut merge = Collapse::new(tree, self.rule.clone(), Depth::Partial);
        merge.run(usize::MAX, |prefix, record| {
            if keep(record) { writer.push(prefix, record.key, record.value) } else { Ok(()) }
        })?;
        self.runs.splice(..count, [Arc::new(writer.finish()?)]);
        self.bytes = self.runs.iter().map(|run| run.memory_bytes()).sum();
        Ok(())
    }
}

/// Whether a merged state is kept.
pub(super) type Keep<'k> = dyn FnMut(&Record<'_>) -> bool + 'k;
