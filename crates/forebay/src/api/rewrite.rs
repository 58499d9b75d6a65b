//! Writing files anew that no merge would come to.

use std::str::FromStr;

use forebay_base::{Error, Result};
use forebay_layouts::DataFile;

use crate::Table;

/// Which files of a table are written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rewrite {
    /// All.
    All,
    /// Those of an encrypted database that are encrypted by another data key than the newest. What is being ingested
    /// meanwhile, or sorted into another order, may come in by an older one all the same: look at
    /// [`encryption_stats`](crate::Database::encryption_stats) afterwards.
    OlderKeys,
}

impl FromStr for Rewrite {
    type Err = Error;

    /// `all` or `older-keys`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "all" => Ok(Self::All),
            "older-keys" => Ok(Self::OlderKeys),
            _ => Err(Error::invalid(format!("`{text}` tells no files to rewrite; `all` or `older-keys` do"))),
        }
    }
}

impl Table {
    /// [Compacts](Self::compact), and then writes anew what is left of files that were there: lists of which nothing is to
    /// be merged any more a compaction leaves as they are. So what [`alter`](crate::TableBuilder::alter) changes of
    /// compression and filters, and a new data key, comes to all that the table has. Old files go
    /// once no snapshot or savepoint holds them. It reads and writes the table once or twice, by one thread; meanwhile lists
    /// that are written to it wait to be merged, and writers may have to wait for that.
    ///
    /// The [metadata](crate::Aggregator::commit) of commits, which no table has that can be opened, are written anew along
    /// with any. What is damaged is left as it is, and so told of once all else is done.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Codec, Database, Options, Rewrite};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let table = db.table("t").codec(Codec::None).open()?;
    /// table.put("a", "1")?;
    /// table.compact()?;
    /// db.table("t").codec(Codec::Lz4).alter()?;
    /// table.rewrite(Rewrite::All)?;
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn rewrite(&self, what: Rewrite) -> Result<()> {
        let context = &self.engine.context;
        let newest = context.encryption.as_ref().map(|encryption| encryption.newest());
        let is_wanted = |file: &DataFile, below: u64| match (what, newest) {
            (Rewrite::All, _) => file.id() < below,
            (Rewrite::OlderKeys, None) => false,
            // One of which that cannot be read is told of by whoever reads the rest.
            (Rewrite::OlderKeys, Some(newest)) => {
                let encrypted = context.env.fs.encrypted_as(&file.path());
                encrypted.map_or(true, |encrypted| encrypted.is_some_and(|(key, _)| key != newest))
            }
        };
        let rewrite = |id: u32| self.engine.background.rewrite(id, is_wanted);
        let hidden = self.engine.versions.state().table_named("").map(|table| table.id);
        let own = rewrite(self.id());
        own.and(hidden.filter(|&id| id != self.id()).map_or(Ok(()), rewrite))
    }
}
