//! fjall: a log-structured merge tree in Rust.

use std::path::Path;
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use forebay_bench::{Batch, Durability, Engine, Failure, Kind, Setup, Writer};

use crate::sync::{Pace, SyncWhen};
use crate::{text, wait};

const MIB: u64 = 1 << 20;

pub(crate) struct Fjall;

/// What is told to it.
struct Options {
    memtable_bytes: u64,
    cache_bytes: u64,
    table_bytes: u64,
    worker_threads: usize,
    filter_bits_per_key: Option<u32>,
    journal: Journal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journal {
    /// What is in the journal's own buffer is lost with the process.
    Buffered,
    /// In the kernel when a write returns.
    Written,
}

impl Options {
    fn new(setup: &Setup) -> Self {
        // One is being filled, and writers are halted at four that wait to be written out.
        let memtable_bytes = (setup.memory_bytes / 8).max(MIB);
        Self {
            memtable_bytes,
            cache_bytes: setup.memory_bytes.saturating_sub(5 * memtable_bytes).max(MIB),
            // The first level is four times as large: as much as comes down to it at once.
            table_bytes: memtable_bytes.clamp(8 * MIB, 64 * MIB),
            worker_threads: setup.background_threads,
            filter_bits_per_key: setup.filter_bits_per_key,
            journal: match setup.durability {
                Durability::Memory => Journal::Buffered,
                Durability::Os | Durability::Disk => Journal::Written,
            },
        }
    }

    fn keyspace(&self) -> KeyspaceCreateOptions {
        let options = KeyspaceCreateOptions::default()
            .manual_journal_persist(self.journal == Journal::Buffered)
            .max_memtable_size(self.memtable_bytes)
            .data_block_compression_policy(CompressionPolicy::disabled())
            .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(self.table_bytes)));
        match self.filter_bits_per_key {
            None => options,
            Some(bits) => {
                let bloom = BloomConstructionPolicy::BitsPerKey(bits as f32);
                options.filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)))
            }
        }
    }
}

impl Kind for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn version(&self) -> String {
        env!("FJALL_VERSION").to_string()
    }

    fn options(&self, setup: &Setup) -> String {
        let options = Options::new(setup);
        let filter = match options.filter_bits_per_key {
            Some(bits) => format!("{bits} bits a key"),
            None => "0.0001 false positives in level 0, 10 bits a key below, which are its own".to_string(),
        };
        let told = [
            ("cache_size", options.cache_bytes.to_string()),
            ("compaction_strategy", "leveled".to_string()),
            ("data_block_compression_policy", "none".to_string()),
            ("filter_policy", filter),
            ("manual_journal_persist", (options.journal == Journal::Buffered).to_string()),
            ("max_memtable_size", options.memtable_bytes.to_string()),
            (
                "note.journal_flush",
                "syncs the journal at every flush of a memtable; it cannot be told".to_string(),
            ),
            ("table_target_size", options.table_bytes.to_string()),
            ("worker_threads", options.worker_threads.to_string()),
        ];
        text::lines(told.map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let options = Options::new(setup);
        let database = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .worker_threads(options.worker_threads)
            .open()?;
        let keyspace = database.keyspace("records", || options.keyspace())?;
        Ok(Box::new(Open { database, keyspace, pace: Pace::new(setup), journal: options.journal }))
    }
}

struct Open {
    database: Database,
    keyspace: Keyspace,
    pace: Pace,
    journal: Journal,
}

impl Open {
    /// How far a batch's journal goes before it returns.
    fn persist_mode(&self) -> Option<PersistMode> {
        match (self.pace.next(), self.journal) {
            (SyncWhen::Now, _) => Some(PersistMode::SyncData),
            (SyncWhen::Later, Journal::Written) => Some(PersistMode::Buffer),
            (SyncWhen::Later, Journal::Buffered) => None,
        }
    }

    /// A single write has put its journal into the kernel by itself.
    fn sync_when_due(&self) -> Result<(), Failure> {
        if self.pace.next() == SyncWhen::Now {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl Open {
    fn write(&self, batch: Batch<'_>) -> Result<(), Failure> {
        if batch.len() == 1 {
            for (key, value) in batch.iter() {
                self.keyspace.insert(key, value)?;
            }
            return self.sync_when_due();
        }
        let mode = self.persist_mode();
        let mut writes = self.database.batch().durability(mode);
        for (key, value) in batch.iter() {
            writes.insert(&self.keyspace, key, value);
        }
        Ok(writes.commit()?)
    }
}

/// One of several writers.
struct Beside<'a>(&'a Open);

impl Writer for Beside<'_> {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.0.write(batch)
    }
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.write(batch)
    }

    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        Some(Box::new(Beside(self)))
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        if keys.len() == key_bytes {
            self.keyspace.remove(keys)?;
            return self.sync_when_due();
        }
        let mode = self.persist_mode();
        let mut writes = self.database.batch().durability(mode);
        for key in keys.chunks_exact(key_bytes) {
            writes.remove(&self.keyspace, key);
        }
        Ok(writes.commit()?)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.keyspace.get(key)?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        for entry in self.keyspace.range(from..).take(limit) {
            let (key, value) = entry.into_inner()?;
            each(&key, &value);
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.keyspace.rotate_memtable_and_wait()?;
        let mut quiet_polls = 0;
        // A compaction that is asked for and not begun cannot be seen; it begins within milliseconds.
        wait::until(|| {
            let is_busy = self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0;
            quiet_polls = if is_busy { 0 } else { quiet_polls + 1 };
            Ok(quiet_polls > wait::POLLS_PER_SECOND / 10)
        })?;
        // Its workers look for compactions once or twice a flush, and rest with whatever is then still due.
        let tree = &self.keyspace.tree;
        let mut before = None;
        while before != Some(tree.current_version().id()) {
            before = Some(tree.current_version().id());
            tree.compact(self.keyspace.config.compaction_strategy.clone(), self.database.visible_seqno())?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.database.persist(PersistMode::Buffer)?;
        Ok(())
    }
}
