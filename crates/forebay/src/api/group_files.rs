//! [`GroupFiles`]: groups for which an aggregator's memory has no room, in a WB tree of their own: a private database,
//! without a log and without syncs, which goes with the aggregator.
//!
//! **Invariant:** the tree's order is that of the aggregator: its hashes have the same seed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_aggregate::{
    ExpectedGroups, GroupsView, HASH_SEED, SpillTarget, SpillTerms, SpilledGroups, Unpublished,
};
use forebay_base::record::Shape;
use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::Expected;
use forebay_env::Env;
#[cfg(feature = "encryption")]
use forebay_env::encryption::{Key, OneKey};
use forebay_env::fs::UnsyncedFs;

use crate::memory::Memory;
use crate::open::Made;
use crate::options::BACKGROUND_THREADS_MAX;
use crate::read::{self, States};
use crate::versions::{Finished, View};
use crate::{Database, Options, Table};

/// The directory of the database, in that which was given.
const DIRECTORY: &str = "groups";
/// Nothing is written to it but lists: its write buffers are as short as can be.
const WRITE_BUFFER_BYTES: u64 = 4 << 10;
/// Of a database's memory this part is for write buffers, which this one does not have.
const MEMORY_PARTS: u64 = 2;

/// Where an aggregator in memory goes on once that is full: in files of a directory. It can be read there at any moment,
/// with about one device read a lookup, and finalising costs what was added since. Who is shown all of them reads each
/// list once, from front to back; nothing is written anew for that but what memory had.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("forebay-doc-groups-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).ok();
/// use forebay::GroupFiles;
/// use forebay::aggregate::{AggregatorOptions, CompressedAggregator, functions::Count};
///
/// let options = AggregatorOptions::default().memory_limit(64 << 20).spill_to(GroupFiles::new(&dir));
/// let words = CompressedAggregator::new(Count, options)?;
/// words.add(b"ebb", ())?;
/// # drop(words);
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), forebay::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroupFiles {
    directory: PathBuf,
    env: Env,
    #[cfg(feature = "encryption")]
    is_encrypted: bool,
}

impl GroupFiles {
    /// In this directory, which is the aggregator's own for as long as it lives. Nothing is left there.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::in_env(Env::real(), directory)
    }

    /// The same in another environment than the machine's own.
    pub fn in_env(env: Env, directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            env,
            #[cfg(feature = "encryption")]
            is_encrypted: false,
        }
    }

    /// Encrypts them by a key that is in memory alone, and so gone with the aggregator.
    #[cfg(feature = "encryption")]
    pub fn encrypted(mut self) -> Self {
        self.is_encrypted = true;
        self
    }
}

impl SpillTarget for GroupFiles {
    fn open(&self, terms: SpillTerms) -> Result<Box<dyn SpilledGroups>> {
        let Env { fs, clock, .. } = self.env.clone();
        fs.create_dir_all(&self.directory)?;
        // The seed of the tree's hashes is drawn when it is made.
        let env = Env { fs: UnsyncedFs::new(fs), clock, jobs: terms.jobs, entropy: Arc::new(|| HASH_SEED) };
        let options = Options::default()
            .memory_limit((terms.memory_bytes as u64).saturating_mul(MEMORY_PARTS))
            .write_buffer(WRITE_BUFFER_BYTES)
            .write_buffers(2)
            .background_threads(terms.threads.clamp(1, BACKGROUND_THREADS_MAX))
            .never_idle()
            .env(env);
        #[cfg(feature = "encryption")]
        let options = match self.is_encrypted {
            true => options.encryption(Arc::new(OneKey::new("in memory", Key::draw(&self.env)?))),
            false => options,
        };
        let directory = self.directory.join(DIRECTORY);
        let database = Database::open(&directory, options)?;
        if database.made() == Made::Nothing {
            return Err(Error::invalid(format!(
                "{} has groups of another aggregator already; give each a directory of its own",
                directory.display()
            )));
        }
        let builder = database.table("groups").node_bytes(terms.spill_bytes as u64);
        match builder.merging_states(terms.state_type, terms.rule).open() {
            Ok(table) => Ok(Box::new(Groups { table, database: Some(database) })),
            // Or the next try would find the groups of another.
            Err(error) => database.take_back().and(Err(error)),
        }
    }
}

/// Groups in files.
struct Groups {
    table: Table,
    /// Until it goes.
    database: Option<Database>,
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl SpilledGroups for Groups {
    fn write<'s>(
        &'s self,
        groups: Box<dyn forebay_base::merge::Cursor + Send>,
        expected: ExpectedGroups,
    ) -> Result<Box<dyn Unpublished + 's>> {
        let ExpectedGroups { groups: records, bytes, lengths } = expected;
        debug_assert!(records > 0 || groups.prefix().is_none(), "no more groups come than are expected");
        let shape = lengths
            .map_or(Shape::Variable, |(key_bytes, value_bytes)| Shape::Fixed { key_bytes, value_bytes });
        let expected = Expected { range: Range::all(), bytes, records, shape };
        let written = self.table.engine.relayout.write_states(self.table.id(), groups, expected)?;
        Ok(Box::new(Written { groups: self, written: Some(written) }))
    }

    fn view(&self) -> Result<Arc<dyn GroupsView>> {
        Ok(Arc::new(Seen { table: self.table.clone(), view: self.table.engine.versions.view() }))
    }

    fn memory_bytes(&self) -> usize {
        Memory::of(&self.table.engine.versions).total as usize
    }

    fn device_reads(&self) -> u64 {
        self.table.engine.context.metrics.page_reads.get()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // What cannot be removed is only space lost; there is nobody to tell.
        let _ = self.database.take().map(Database::take_back);
    }
}

/// Groups as they were at a moment.
struct Seen {
    table: Table,
    view: View,
}

impl GroupsView for Seen {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        read::get(&self.table.engine.context, &self.view, self.table.id(), key)
    }

    fn cursor(&self, behind: Option<&[u8]>) -> Result<Box<dyn forebay_base::merge::Cursor + Send>> {
        let versions = &self.table.engine.versions;
        Ok(Box::new(States::new(versions, self.view.clone(), self.table.id(), behind)?))
    }
}

/// A list that nobody sees yet.
struct Written<'g> {
    groups: &'g Groups,
    written: Option<Finished>,
}

impl Unpublished for Written<'_> {
    fn publish(mut self: Box<Self>) -> Result<()> {
        let written = self.written.take();
        debug_assert!(written.is_some(), "it is published once");
        written.map_or(Ok(()), |written| self.groups.table.engine.relayout.publish(written))
    }

    /// An edit of the tree waits for others, and memory is shared anew.
    fn before(&self) -> Option<Arc<dyn GroupsView>> {
        self.groups.view().ok()
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.written.iter().for_each(Finished::discard);
    }
}
