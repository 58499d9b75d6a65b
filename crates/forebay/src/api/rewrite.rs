//! Writing files anew that no merge would come to.

use std::str::FromStr;

use forebay_base::{Error, Result};

use crate::Table;

/// Which files of a table are written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rewrite {
    /// All.
    All,
    /// Those of an encrypted database that are encrypted by another data key than the newest.
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
    /// once no snapshot or savepoint holds them. It reads and writes the table once or twice, by one thread.
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
        self.engine.background.rewrite(self.id(), |file, below| match (what, newest) {
            (Rewrite::All, _) => file.id() < below,
            (Rewrite::OlderKeys, None) => false,
            // One of which that cannot be read is told of by whoever reads the rest.
            (Rewrite::OlderKeys, Some(newest)) => {
                let encrypted = context.env.fs.encrypted_as(&file.path());
                encrypted.map_or(true, |encrypted| encrypted.is_some_and(|(key, _)| key != newest))
            }
        })
    }
}
