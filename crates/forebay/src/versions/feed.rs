//! What a database says of its feed of changes, while it is open: each change of that is an edit of its own.
//!
//! **Invariant:** two databases of one lineage, both of whose last records lie in a line of both, have the same records
//! up to the lower one. So a line ends where one of them takes in what the feed does not tell: an ingest.

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;
use forebay_store::manifest::{Edit, Feed, Line, Lineage};

use crate::versions::{VersionSetGuard, Versions};

impl Versions {
    /// Which history the records are of. `None` where nobody has asked for that so far.
    pub(crate) fn lineage(&self) -> Option<Lineage> {
        Some(self.lock().feed.lineage.clone()).filter(|lineage| !lineage.lines.is_empty())
    }

    /// The same; where nobody has asked so far, it begins here.
    pub(crate) fn begin_lineage(&self) -> Result<Lineage> {
        let mut version_set = self.lock();
        version_set.tell_feed()?;
        if version_set.feed.lineage.lines.is_empty() {
            self.context.refuse_followers()?;
            let mut feed = version_set.feed.clone();
            let state = self.state();
            // The log has all there ever was where nothing is flushed, and nothing came in beside it.
            let is_whole = version_set.log.flushed.1 == 0 && state.files().next().is_none();
            let last = self.context.log()?.last_sequence();
            let (database, id) = (self.context.superblock.database_id, (self.context.env.entropy)());
            feed.lineage.found(database, id, last, is_whole);
            version_set.say(feed)?;
        }
        debug_assert!(
            !version_set.feed.lineage.lines.is_empty(),
            "a history has a line once somebody has asked"
        );
        Ok(version_set.feed.lineage.clone())
    }

    /// From now on the records are of this history.
    pub(crate) fn set_lineage(&self, lineage: Lineage) -> Result<()> {
        let mut version_set = self.lock();
        version_set.tell_feed()?;
        let feed = Feed { lineage, ..version_set.feed.clone() };
        version_set.say(feed)
    }

    /// How much of the log is kept from now on.
    pub(crate) fn keep_changes(&self, bytes: u64) -> Result<()> {
        if bytes > 0 && self.context.refuse_followers().is_ok() {
            self.begin_lineage()?;
        }
        {
            let mut version_set = self.lock();
            version_set.tell_feed()?;
            let feed = Feed { keep_bytes: bytes, ..version_set.feed.clone() };
            version_set.say(feed)?;
        }
        self.trim_log()
    }

    /// Says what there was no room to say when the database was opened: before anything else comes in.
    pub(crate) fn tell_feed(&self) -> Result<()> {
        match self.owes_feed.load(Ordering::Relaxed) {
            true => self.lock().tell_feed(),
            false => Ok(()),
        }
    }

    /// Table ids below this one are used up, whoever has used them.
    pub(crate) fn use_up_tables(&self, next_table: u32) -> Result<()> {
        let mut version_set = self.lock();
        version_set.tell_feed()?;
        if version_set.next_table < next_table {
            debug_assert!(self.context.refuse_followers().is_err(), "who makes tables counts them");
            let feed = version_set.feed.clone();
            version_set.append(&Edit::Feed(feed, next_table))?;
            version_set.next_table = next_table;
        }
        Ok(())
    }
}

impl VersionSetGuard<'_> {
    /// The same as [`Versions::tell_feed`].
    pub(crate) fn tell_feed(&mut self) -> Result<()> {
        if let Some(feed) = self.owed_feed.clone() {
            self.say(feed)?;
            self.set.owed_feed = None;
            self.versions.owes_feed.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    fn say(&mut self, feed: Feed) -> Result<()> {
        debug_assert!(
            feed.lineage.lines.is_sorted_by_key(|line| line.from),
            "lines follow each other: {:?}",
            feed.lineage
        );
        if feed != self.feed {
            self.append(&Edit::Feed(feed.clone(), self.next_table))?;
            self.set.feed = feed;
        }
        Ok(())
    }

    /// Something comes in that the feed does not tell: who has followed so far cannot go on.
    pub(super) fn part_lineage(&mut self) -> Result<()> {
        self.tell_feed()?;
        if self.feed.lineage.lines.is_empty() {
            return Ok(());
        }
        let mut feed = self.feed.clone();
        let context = &self.versions.context;
        let line = Line { id: (context.env.entropy)(), from: context.log()?.last_sequence() };
        (feed.lineage.lines, feed.lineage.is_whole) = (vec![line], false);
        self.say(feed)
    }
}
