//! A database that follows another one: it takes in a change stream, and nothing else.
//!
//! **Invariant:** its records have the numbers that they have at the source, and it has all of them up to its last one. So
//! that number is its position, each commit is applied once, and nothing is kept beside.

mod beside;
mod tables;
mod taking;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Merging};
use forebay_base::{Combine, Error, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::RuleName;

use crate::api::applied::{Applied, StreamEnd, Until};
use crate::api::{Database, MergeRule, Operands};
use crate::changes::{HUNG_UP, Messages, Request, STREAM};
use crate::options::Options;
use crate::versions::TableState;

pub use beside::Beside;
use beside::Step;

/// A database that follows another one.
///
/// It takes in what [`Database::stream_changes`] of its source writes, each commit whole and once, with the number that it
/// has there. It can be read meanwhile by [`database`](Self::database); writes are refused. A follower begins empty, where
/// the source has kept all its changes from the start, or as a [checkpoint](Database::checkpoint) or a
/// [backup](crate::Backups) of it. After a crash it goes on from its [position](Self::position). Opened by
/// [`Database::open`], or [promoted](Self::promote), it is a database like any other, and follows no more.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Database, Follower, Options};
/// let source = Database::open("/source", Options::default().keep_changes(64 << 20).env(env.clone()))?;
/// let users = source.table("users").open()?;
/// users.put("ada", "1815")?;
///
/// let mut follower = Follower::open("/follower", Options::default().env(env))?;
/// let mut stream = source.stream_changes(follower.position(), Vec::new())?;
/// stream.advance()?;
/// let applied = follower.apply(&stream.finish()?[..])?;
/// assert_eq!(applied.position, source.last_sequence());
///
/// let promoted = follower.promote()?;
/// assert_eq!(promoted.table("users").open()?.get("ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Follower {
    db: Arc<Database>,
    /// Who reads it meanwhile, and wants to see no step half done.
    beside: Option<Arc<dyn Beside>>,
    rules: BTreeMap<RuleName, Arc<dyn Combine>>,
    /// Of tables below this number it knows whether they are: it has made them, or met their records, or heard of them.
    known_below: u32,
    /// The highest number that streams have told of, and a time by which that was committed.
    heard: (u64, u64),
}

impl Follower {
    /// Opens the follower at `path`, or makes one there that has nothing yet. A database that has taken writes of its own
    /// is refused.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let db = Arc::new(Database::open(path, options.following())?);
        let known_below = db.engine().versions.lock().next_table;
        Ok(Self { db, beside: None, rules: BTreeMap::new(), known_below, heard: (0, 0) })
    }

    /// Brings the code of a merge rule, for tables that merge by it: without it they are refused.
    #[must_use = "the follower has the rule from here on"]
    pub fn merge_rule(self, rule: impl MergeRule) -> Self {
        let name = RuleName::Operands(rule.name().to_string());
        self.with_rule(name, Arc::new(Operands(rule)))
    }

    /// Brings the code of an aggregation function of your own, as [`merge_rule`](Self::merge_rule) does that of a rule.
    /// Those of [`aggregate`](crate::aggregate) are known.
    #[must_use = "the follower has the function from here on"]
    pub fn aggregator<A: Aggregate>(self, function: A) -> Self {
        let state_type = function.state_type().as_str().to_string();
        let code: Arc<dyn Combine> = Arc::new(Merging(Arc::new(function)));
        self.with_rule(RuleName::DeletableStates(state_type.clone()), Arc::clone(&code))
            .with_rule(RuleName::States(state_type), code)
    }

    fn with_rule(mut self, name: RuleName, code: Arc<dyn Combine>) -> Self {
        self.rules.insert(name, code);
        let state = self.db.engine().versions.state();
        state.tables.values().for_each(|table| self.provide(table));
        self
    }

    /// Gives a table the code of its rule, if it was brought.
    fn provide(&self, table: &TableState) {
        if let Some(code) = self.rules.get(table.rule.name()).filter(|_| table.rule.known().is_none()) {
            table.rule.provide(Arc::clone(code), &table.name);
            self.db.engine().background.flush_again();
        }
    }

    /// The database, to be read.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// The same for other threads, also beyond the end of the follower: see [`promote_shared`](Self::promote_shared).
    pub fn share(&self) -> Arc<Database> {
        Arc::clone(&self.db)
    }

    /// Has each step taken by way of one who may have it wait, and is told what it was.
    #[must_use = "the follower takes its steps so from here on"]
    pub fn beside(self, beside: Arc<dyn Beside>) -> Self {
        Self { beside: Some(beside), ..self }
    }

    /// The number of the last record that it has: streams begin behind it.
    pub fn position(&self) -> u64 {
        self.db.last_sequence()
    }

    /// Applies a stream to its end. Where it comes over a pipe or a socket, that is when whoever writes it is done. Returns
    /// once all that was applied survives a power loss.
    ///
    /// On an error what came before is applied, and nothing of the commit that it is about. Damage names the place in the
    /// stream. Streams that stand one behind the other, as in an archive, are applied one after the other, and what they
    /// have in common once.
    pub fn apply(&mut self, stream: impl Read) -> Result<Applied> {
        self.apply_until(stream, Until::End)
    }

    /// As [`apply`](Self::apply), up to a moment.
    pub fn apply_until(&mut self, stream: impl Read, until: Until) -> Result<Applied> {
        self.apply_named(stream, until, Path::new(STREAM))
    }

    /// As [`apply_until`](Self::apply_until), of a stream that errors call by this name, such as that of its file.
    pub fn apply_named(&mut self, stream: impl Read, until: Until, name: &Path) -> Result<Applied> {
        let mut messages = Messages::new(BufReader::new(stream), name);
        let outcome = self.take_in(&mut messages, until);
        // What was applied before an error stays, too.
        self.db.sync()?;
        outcome
    }

    /// Asks a source for what it has, over a socket or whatever else goes both ways, and applies that, until the source
    /// ends or is gone: the other end of [`ChangeServer::serve`](crate::ChangeServer::serve). A source says each second at
    /// least that it is there: a socket whose reads end after a few seconds in vain tells of one that is not.
    pub fn follow(&mut self, stream: impl Read + Write) -> Result<Applied> {
        self.follow_until(stream, Until::End)
    }

    /// As [`follow`](Self::follow), up to a moment.
    pub fn follow_until(&mut self, mut stream: impl Read + Write, until: Until) -> Result<Applied> {
        let request = Request { position: self.position() }.stream();
        match stream.write_all(&request).and_then(|()| stream.flush()) {
            Ok(()) => self.apply_until(stream, until),
            Err(error) if HUNG_UP.contains(&error.kind()) => Ok(Applied {
                position: self.position(),
                batches: 0,
                at_milliseconds: None,
                end: StreamEnd::CutOff,
            }),
            Err(error) => Err(Error::io("write", Path::new(STREAM), &error)),
        }
    }

    /// Makes it a database that takes writes of its own, and follows no more. One that is [shared](Self::share) is
    /// refused, and has changed nothing: [`promote_shared`](Self::promote_shared) takes it.
    pub fn promote(mut self) -> Result<Database> {
        let is_alone = Arc::get_mut(&mut self.db).is_some();
        if !is_alone {
            return Err(Error::invalid("the follower is shared with other threads; call promote_shared"));
        }
        let promoted = self.promote_shared()?;
        Arc::into_inner(promoted).ok_or_else(|| Error::bug("somebody shares what was not shared"))
    }

    /// As [`promote`](Self::promote), where other threads have the database: for them, too, it takes writes from here on.
    pub fn promote_shared(self) -> Result<Arc<Database>> {
        let engine = self.db.engine();
        let mut lineage = engine.versions.lineage().unwrap_or_default();
        lineage.is_copy = false;
        if !lineage.lines.is_empty() {
            lineage.begin((engine.context.env.entropy)(), self.position());
        }
        engine.versions.set_lineage(lineage)?;
        engine.context.follows.store(false, Ordering::Release);
        Ok(self.db)
    }

    /// Closes it in order. One that is [shared](Self::share) is made durable, and closed by the last who has it.
    pub fn close(self) -> Result<()> {
        match Arc::try_unwrap(self.db) {
            Ok(db) => db.close(),
            Err(db) => db.sync(),
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follower(up to {})", self.position())
    }
}
