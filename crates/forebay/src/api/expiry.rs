//! When entries expire: asked, and told, of single entries. See `docs/internals/ttl.md`.

use std::time::Duration;

use forebay_base::expiry::NEVER;
use forebay_base::{Record, Result};

use crate::context::stop_guests;
use crate::read;
use crate::{Batch, Database, Snapshot, Table, Transaction};

/// A value, and when it expires, in milliseconds since 1970; `None` for never.
type Expiring = (Vec<u8>, Option<u64>);

fn expiring(value: Vec<u8>, expiry: u64) -> Expiring {
    (value, (expiry != NEVER).then_some(expiry))
}

impl Database {
    /// What time it is by which entries expire, in milliseconds since 1970. It is the machine's wall clock, and never
    /// goes back: where that is set back, time goes on from where it was, also after the database was closed and opened
    /// again. (After a crash, from where it was up to a minute before.)
    pub fn unix_milliseconds(&self) -> u64 {
        stop_guests();
        self.engine().context.env.clock.unix_milliseconds()
    }
}

impl Table {
    /// The value of a key, and when it expires, in milliseconds since 1970; `None` for never, and in a table without
    /// [`time_to_live`](crate::TableBuilder::time_to_live). Device reads: those of [`get`](Self::get).
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Option<u64>)>> {
        let (engine, mut value) = (&self.engine, Vec::new());
        let expiry = read::get_into(&engine.context, &self.latest(), self.id(), key.as_ref(), &mut value)?;
        Ok(expiry.map(|expiry| expiring(value, expiry)))
    }

    /// [`get_with_expiry`](Self::get_with_expiry) of several keys, all at a time; answers are in the order of the keys.
    /// Device reads: those of [`multi_get`](Self::multi_get).
    pub fn multi_get_with_expiry<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Expiring>>> {
        read::multi_get_with_expiry(&self.engine.context, &self.view(), self.id(), keys, expiring)
    }

    /// The same, until the values have more than so many bytes: of as many keys as that takes, each answer with the
    /// number of its key. So what a look at many keys holds is bounded, whatever they have.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let texts = db.table("texts").open()?;
    /// texts.put("a", "long text")?;
    /// texts.put("b", "another one")?;
    /// assert_eq!(texts.multi_get_with_expiry_within(&["a", "b", "c"], 1 << 20)?.len(), 3);
    /// let found = texts.multi_get_with_expiry_within(&["a", "b"], 0)?;
    /// assert_eq!(found, [(0, Some((b"long text".to_vec(), None)))]);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn multi_get_with_expiry_within<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        bytes_max: usize,
    ) -> Result<Vec<(usize, Option<Expiring>)>> {
        read::multi_get_within(&self.engine.context, &self.view(), self.id(), keys, bytes_max, expiring)
    }

    /// Gives an entry another expiry, in milliseconds since 1970, and leaves its value as it is. Says whether there is
    /// such an entry. A time that is past already makes the entry expire. Writes the value once more, at the database's
    /// default durability, if nobody else writes to the key meanwhile; else it looks again. If the write has reached the
    /// log and then returns an error, it may still turn out to have been kept. Device reads: those of a
    /// [`get`](Self::get).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use std::time::Duration;
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let sessions = db.table("sessions").time_to_live(Duration::MAX).open()?;
    /// sessions.put("ada", "token")?;
    /// let soon = db.unix_milliseconds() + 60_000;
    /// assert!(sessions.expire("ada", soon)?);
    /// assert_eq!(sessions.get_with_expiry("ada")?, Some((b"token".to_vec(), Some(soon))));
    /// assert!(sessions.persist("ada")?);
    /// assert!(!sessions.expire("bob", soon)?);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn expire(&self, key: impl AsRef<[u8]>, unix_milliseconds: u64) -> Result<bool> {
        self.takes_expiry()?;
        let key = key.as_ref();
        self.rewrite_entry(key, |batch, old| {
            if let Some((value, expiry)) = old
                && expiry != unix_milliseconds
            {
                batch.write_until(self, Record::put(key, value), unix_milliseconds);
            }
            old.is_some()
        })
    }

    /// Has an entry live forever: [`expire`](Self::expire) without an end.
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.expire(key, NEVER)
    }

    /// Sets a key that expires at a time: [`Batch::put_until`].
    pub fn put_until(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        unix_milliseconds: u64,
    ) -> Result<()> {
        let mut batch = Batch::new();
        batch.put_until(self, key, value, unix_milliseconds);
        self.commit(&batch)
    }

    /// Merges an operand into the entry that expires at a time: [`Batch::merge_until`].
    pub fn merge_until(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        unix_milliseconds: u64,
    ) -> Result<()> {
        let mut batch = Batch::new();
        batch.merge_until(self, key, operand, unix_milliseconds);
        self.commit(&batch)
    }

    /// Merges an operand into the entry that is there, whose expiry stays; where there is none, begins one that lives for
    /// this long. So the first operand says when the entry expires. Returns when that is, in milliseconds since 1970,
    /// `None` for never. Unlike [`merge`](Self::merge) it looks first, and looks again where somebody else writes to the
    /// key meanwhile. Device reads: those of a [`get`](Self::get).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use std::time::Duration;
    /// # use forebay::{Database, MergeRule, Options};
    /// struct Add;
    ///
    /// impl MergeRule for Add {
    ///     fn name(&self) -> &str {
    ///         "add/1"
    ///     }
    ///     fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
    ///         let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    ///         out.extend_from_slice(&number(newer).wrapping_add(number(older)).to_le_bytes());
    ///     }
    /// }
    ///
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let calls = db.table("calls").merge_rule(Add).time_to_live(Duration::MAX).open()?;
    /// let minute = Duration::from_secs(60);
    /// let end = calls.merge_with_ttl("10.0.0.1", 1_u64.to_le_bytes(), minute)?;
    /// assert_eq!(calls.merge_with_ttl("10.0.0.1", 1_u64.to_le_bytes(), minute)?, end);
    /// assert_eq!(calls.get("10.0.0.1")?, Some(2_u64.to_le_bytes().to_vec()));
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn merge_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Option<u64>> {
        self.takes_operands().and(self.takes_expiry())?;
        let (key, operand) = (key.as_ref(), operand.as_ref());
        let expiry = self.rewrite_entry(key, |batch, old| {
            let begun = || read::expiry_of(&self.engine.context, ttl);
            let expiry = old.map_or_else(begun, |(_, expiry)| expiry);
            batch.merge_until(self, key, operand, expiry);
            expiry
        })?;
        Ok((expiry != NEVER).then_some(expiry))
    }
}

impl Batch {
    /// Sets a key that expires at this time, in milliseconds since 1970: as [`put_with_ttl`](Self::put_with_ttl).
    pub fn put_until(
        &mut self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        unix_milliseconds: u64,
    ) {
        let record = Record::put(key.as_ref(), value.as_ref());
        self.write_until(table.as_ref(), record, unix_milliseconds);
    }

    /// Merges an operand into the entry of a key that expires at this time, in milliseconds since 1970; `u64::MAX` is
    /// never. Nothing is read for that: an entry is merged with operands that name its own expiry. One that names another
    /// is the first of a new entry, in place of the one that was there. For a table without a merge rule, or without
    /// [`time_to_live`](crate::TableBuilder::time_to_live), the commit fails.
    pub fn merge_until(
        &mut self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        unix_milliseconds: u64,
    ) {
        self.merge_at(table.as_ref(), key.as_ref(), operand.as_ref(), Some(unix_milliseconds));
    }
}

impl Snapshot {
    /// The value that a key had, and when it was to expire, in milliseconds since 1970; `None` for never.
    pub fn get_with_expiry(
        &self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, Option<u64>)>> {
        let mut value = Vec::new();
        let expiry = self.get_into(table.as_ref(), key.as_ref(), &mut value)?;
        Ok(expiry.map(|expiry| expiring(value, expiry)))
    }
}

impl Transaction {
    /// The value of a key, and when it expires, in milliseconds since 1970; `None` for never.
    pub fn get_with_expiry(
        &mut self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, Option<u64>)>> {
        self.seen()?.get_with_expiry(table, key)
    }

    /// Gives an entry another expiry, in milliseconds since 1970, and leaves its value as it is. Says whether there is
    /// such an entry.
    pub fn expire(
        &mut self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
        unix_milliseconds: u64,
    ) -> Result<bool> {
        let (table, key) = (table.as_ref(), key.as_ref());
        table.takes_expiry().and(table.takes_writes())?;
        let found = self.get_with_expiry(table, key)?;
        if let Some((value, _)) = &found {
            self.put_until(table, key, value, unix_milliseconds);
        }
        Ok(found.is_some())
    }

    /// Has an entry live forever: [`expire`](Self::expire) without an end.
    pub fn persist(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) -> Result<bool> {
        self.expire(table, key, NEVER)
    }
}
