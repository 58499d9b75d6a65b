//! Reading a database that another process writes.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::Ordering;

use crate::changes::last_seen;
use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::open::is_written;
use crate::{Database, Stats};

/// How long it takes until it is looked again whether there is an answer.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

impl Database {
    /// Where the database is open for [reading only](crate::Options::read_only): goes on to what another process has
    /// written since it was opened, or since the last call, and returns the number of the last record that is seen. It
    /// costs what has changed, unless the writer was opened anew, altered a table, rolled back, began a new manifest, or
    /// has tables of layout `range-merge`: then it costs what opening does. All handles to tables stay valid, and
    /// snapshots, scans and cursors show what they did.
    ///
    /// What is seen was the case at one moment: all batches up to that number and none behind it. Records of
    /// [`Durability::Memory`](crate::Durability::Memory) are in no file until the writer writes them there, and are not
    /// seen before. Nothing is seen of what the writer does until this is called again.
    ///
    /// **What is seen may be lost yet**: also records of [`Durability::Disk`](crate::Durability::Disk) are seen before
    /// they are durable, and a power loss, or a sync that fails, may take them. Then the next call goes back, and later
    /// records have their numbers. Up to [`durable_sequence`](Self::durable_sequence) nothing is taken back.
    ///
    /// Files that the writer lets go of stay on the disk for as long as this database may need them: until this is
    /// called, or it is closed, or its process ends. So whoever keeps a database open for reading should call it now
    /// and then. Snapshots and scans of before hold what they see, as everywhere.
    ///
    /// A database that is open for writing sees everything at once; there this does nothing.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// let db = Database::open("/db", Options::default().env(env.clone()))?;
    /// let table = db.table("t").open()?;
    /// table.put(b"a", b"1")?;
    ///
    /// // In another process.
    /// let reader = Database::open("/db", Options::default().read_only(true).env(env))?;
    /// let seen = reader.table("t").open()?;
    /// assert_eq!(seen.get(b"a")?.as_deref(), Some(&b"1"[..]));
    ///
    /// table.put(b"a", b"2")?;
    /// assert_eq!(seen.get(b"a")?.as_deref(), Some(&b"1"[..]));
    /// assert_eq!(reader.refresh()?, db.last_sequence());
    /// assert_eq!(seen.get(b"a")?.as_deref(), Some(&b"2"[..]));
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn refresh(&self) -> Result<u64> {
        refuse_guests()?;
        match &mut *self.refresher.lock() {
            Some(refresher) => refresher.refresh(self.engine()),
            None => {
                self.engine().context.check_open()?;
                Ok(self.last_sequence())
            }
        }
    }

    /// Where the database is open for [reading only](crate::Options::read_only): the numbers of the process that has it
    /// open to write, as its own [`stats`](Self::stats) gives them. `None` where no process has, or where it has not
    /// answered within this time. It answers within [`sync_interval`](crate::Options::sync_interval), or a second where
    /// that is longer.
    pub fn writer_stats(&self, patience: Duration) -> Result<Option<Stats>> {
        refuse_guests()?;
        let context = &self.engine().context;
        context.check_open()?;
        let Some(lease) = &context.lease else { return Ok(None) };
        if !is_written(&context.env, &context.dir)? {
            return Ok(None);
        }
        lease.ask()?;
        let end = context.env.clock.now().saturating_add(patience);
        let mut answer = Ok(None);
        let mut look = || {
            answer = lease.answer();
            !matches!(answer, Ok(None))
        };
        loop {
            let now = context.env.clock.now();
            if context.env.jobs.wait_until(end.min(now + LOOK_INTERVAL), &mut look) || now >= end {
                break;
            }
        }
        lease.end_ask();
        let parse = |answer: Vec<u8>| {
            let answer = match &context.encryption {
                Some(encryption) => encryption.decrypt_answer(&answer)?,
                None => answer,
            };
            let parsed = serde_json::from_slice(&answer);
            parsed
                .map_err(|error| Error::invalid(format!("the writer's numbers are not understood: {error}")))
        };
        answer?.map(parse).transpose()
    }

    /// From now on whoever asks for the numbers of this database is answered.
    pub(super) fn answer_readers(&self) {
        let engine = Arc::downgrade(self.engine());
        let answer = move || {
            let engine = engine.upgrade()?;
            let answer = serde_json::to_vec(&Stats::of(&engine)).ok()?;
            // It names tables and savepoints.
            match &engine.context.encryption {
                Some(encryption) => encryption.encrypt_answer(answer).ok(),
                None => Some(answer),
            }
        };
        let _ = self.engine().context.answer.set(Box::new(answer));
    }

    /// The number up to which what is seen is known to be durable.
    pub(super) fn seen_durable(&self) -> u64 {
        self.engine().seen_durable(self.seen_sequence())
    }

    /// The number of the last record that is seen, where nothing is written.
    pub(super) fn seen_sequence(&self) -> u64 {
        debug_assert!(self.engine().context.log.is_none(), "who writes knows its last record");
        let version_set = self.engine().versions.lock();
        last_seen(version_set.log.flushed.1, &self.engine().versions.view())
    }
}

impl Engine {
    /// The number up to which what is seen, up to this one, is known to be durable, where nothing is written.
    pub(super) fn seen_durable(&self, last: u64) -> u64 {
        self.context.seen_durable.load(Ordering::Relaxed).min(last)
    }
}
