//! A database that follows another one: it takes in a change stream, and nothing else.
//!
//! **Invariant:** its records have the numbers that they have at the source, and it has all of them up to its last one. So
//! that number is its position, each commit is applied once, and nothing is kept beside.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, BuiltIn, Merging};
use forebay_base::{Combine, Error, Result, planted};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{RuleName, TableOptions};
use forebay_store::manifest::{Lineage, TableEntry};

use crate::api::applied::{Applied, StreamEnd, Told, Until};
use crate::api::builder::{NAME_BYTES_MAX, make_table};
use crate::api::database::drop_followed;
use crate::api::{Database, MergeRule, Operands, Table};
use crate::changes::{BatchOf, Ending, Greeting, HUNG_UP, Meeting, Message, Messages, Request, STREAM};
use crate::options::Options;
use crate::versions::TableState;

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
    db: Database,
    rules: BTreeMap<RuleName, Arc<dyn Combine>>,
    told: Told,
}

impl Follower {
    /// Opens the follower at `path`, or makes one there that has nothing yet. A database that has taken writes of its own
    /// is refused.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let db = Database::open(path, options.following())?;
        Ok(Self { db, rules: BTreeMap::new(), told: Told::default() })
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

    /// Makes it a database that takes writes of its own, and follows no more.
    pub fn promote(self) -> Result<Database> {
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

    /// Closes it in order.
    pub fn close(self) -> Result<()> {
        self.db.close()
    }

    fn take_in<R: Read>(&mut self, messages: &mut Messages<R>, until: Until) -> Result<Applied> {
        let mut applied = Applied {
            position: self.position(),
            batches: 0,
            at_milliseconds: None,
            end: StreamEnd::Finished,
        };
        let mut meeting = None;
        while let Some(message) = messages.next()? {
            match (message, meeting) {
                (Message::Greeting(greeting), _) => {
                    self.told = Told::default();
                    meeting = Some(self.meet(&greeting, applied.position)?);
                }
                (Message::End(Ending::Finished), _) => meeting = None,
                (Message::End(Ending::Gone { since, oldest, rolled_back }), _) => {
                    return Err(Error::ChangesGone { since, oldest, rolled_back });
                }
                (Message::Round(round), Some(_)) => {
                    if matches!(until, Until::Time(time) if round.at_milliseconds > time) {
                        return Ok(Applied { end: StreamEnd::Reached, ..applied });
                    }
                    applied.at_milliseconds = Some(round.at_milliseconds);
                    self.told.hear(round);
                }
                (Message::Batch(batch), Some(meeting)) => {
                    let last = batch.sequence + u64::from(batch.records) - 1;
                    if matches!(until, Until::Sequence(wanted) if last > wanted) {
                        return Ok(Applied { end: StreamEnd::Reached, ..applied });
                    }
                    refuse_other_way(meeting, last)?;
                    if last > applied.position || planted::is("batch-applied-twice") {
                        self.take_tables(messages)?;
                        applied.position = self.write(batch, applied.position, messages)?;
                        applied.batches += 1;
                    }
                }
                (Message::Mark(told), Some(_)) => {
                    self.end_round(told, applied.position, messages)?;
                    if until == Until::Sequence(applied.position) {
                        return Ok(Applied { end: StreamEnd::Reached, ..applied });
                    }
                }
                (Message::Request(_), _) | (_, None) => {
                    return Err(messages.damaged("the stream does not say first whose it is"));
                }
            }
        }
        debug_assert_eq!(applied.position, self.position(), "its last number is its position");
        if !messages.is_whole() {
            applied.end = StreamEnd::CutOff;
        }
        Ok(applied)
    }

    /// Goes on only where all that is here is a beginning of what the source has.
    fn meet(&self, greeting: &Greeting, position: u64) -> Result<Meeting> {
        let versions = &self.db.engine().versions;
        let mine = versions.lineage();
        let is_blank = versions.state().tables.values().next().is_none();
        let met = greeting.meet(mine.as_ref().unwrap_or(&Lineage::default()), position, is_blank)?;
        let lineage = Lineage { is_copy: true, ..greeting.lineage.clone() };
        if met == Meeting::Onward && mine.as_ref() != Some(&lineage) {
            versions.set_lineage(lineage)?;
        }
        Ok(met)
    }

    /// Sees to it that the tables are here that were told last, before a record of theirs comes.
    fn take_tables<R: Read>(&mut self, messages: &Messages<R>) -> Result<()> {
        if !std::mem::replace(&mut self.told.is_taken, true) {
            let taken = self.take_all(messages);
            self.told.is_taken = taken.is_ok();
            taken?;
        }
        Ok(())
    }

    fn take_all<R: Read>(&self, messages: &Messages<R>) -> Result<()> {
        let versions = &self.db.engine().versions;
        // Of tables below it that are not here it is known that they were dropped.
        let known_below = versions.lock().next_table;
        for entry in &self.told.tables {
            let of_stream = |error: Error| error.read_from(messages.name());
            let read = forebay_layouts::read_options(&entry.version, &entry.options).map_err(of_stream)?;
            match versions.state().tables.get(&entry.id) {
                Some(table) => self.keep_up(table, entry, read)?,
                None if entry.id < known_below => {}
                None => self.make(entry, read)?,
            }
        }
        versions.use_up_tables(self.told.next_table)
    }

    /// Makes a table that the source has.
    fn make(&self, entry: &TableEntry, (options, rule): (TableOptions, RuleName)) -> Result<()> {
        let engine = self.db.engine();
        if entry.name.len() > NAME_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the source has a table whose name is longer than {NAME_BYTES_MAX} bytes"
            )));
        }
        let is_built_in = |of: &str| BuiltIn::of(of).is_some();
        let is_known = rule == RuleName::None
            || self.rules.contains_key(&rule)
            || rule.state_type().is_some_and(is_built_in);
        if !is_known {
            return Err(unknown_rule(&entry.name, &rule));
        }
        if let Some(older) = engine.versions.state().table_named(&entry.name) {
            // It was dropped there, and another one made since.
            drop_followed(engine, older.id)?;
        }
        let (options, version) = (options.encode(&rule), forebay_layouts::empty(&options)?);
        let entry = TableEntry { options, version, ..entry.clone() };
        let table = make_table(engine, &mut engine.versions.lock(), entry)?;
        debug_assert!(table.version.records() == 0, "it begins empty");
        engine.memory.note_layout(table.options.layout);
        self.provide(&table);
        Ok(())
    }

    /// A table that is here is the source's, and takes all that the source's does. Its layout is its own affair.
    fn keep_up(
        &self,
        table: &TableState,
        entry: &TableEntry,
        (options, rule): (TableOptions, RuleName),
    ) -> Result<()> {
        if table.name != entry.name || *table.rule.name() != rule {
            return Err(Error::invalid(format!(
                "table {} is `{}` with {} at the source, and `{}` with {} here; make the follower anew",
                table.id,
                entry.name,
                rule.describe(),
                table.name,
                table.rule.name().describe()
            )));
        }
        if table.rule.known().is_none() {
            return Err(unknown_rule(&entry.name, &rule));
        }
        if options.layout.is_ordered() && !table.order.is_lexical() {
            // Its ranges may be deleted from now on.
            Table::new(self.db.engine(), table).set_layout(options.layout)?;
        }
        Ok(())
    }

    /// Writes a batch behind this record. Returns the number of its last.
    fn write<R: Read>(&self, batch: BatchOf, position: u64, messages: &Messages<R>) -> Result<u64> {
        let BatchOf { sequence, records, payload } = batch;
        if sequence != position + 1 && !planted::is("batch-applied-twice") {
            return Err(messages.damaged(format!(
                "a commit begins with record {sequence}, and the follower has those up to {position}"
            )));
        }
        let written = self.db.engine().writer.write_followed(payload, records)?;
        debug_assert!(
            planted::is("batch-applied-twice")
                || written.is_none_or(|last| last == position + u64::from(records)),
            "a record has the number that it has at the source"
        );
        written.ok_or_else(|| messages.damaged(format!("the commit of record {sequence} is malformed")))
    }

    /// All of a round is applied: tables go that the source had dropped by then. A round of before says nothing of now.
    fn end_round<R: Read>(&mut self, told: u64, position: u64, messages: &Messages<R>) -> Result<()> {
        if told > position {
            return Err(
                messages.damaged(format!("commits up to {told} were told, and {position} is the last"))
            );
        }
        if told < position {
            return Ok(());
        }
        self.take_tables(messages)?;
        let (engine, told) = (self.db.engine(), &self.told);
        let state = engine.versions.state();
        let is_gone = |id: u32| {
            id < told.next_table && told.tables.binary_search_by_key(&id, |table| table.id).is_err()
        };
        let gone: Vec<u32> = state.tables.values().map(|table| table.id).filter(|&id| is_gone(id)).collect();
        gone.into_iter().try_for_each(|id| drop_followed(engine, id).map(drop))
    }
}

/// An earlier stream is the follower's history up to where that has gone on without it.
fn refuse_other_way(meeting: Meeting, last: u64) -> Result<()> {
    match meeting {
        Meeting::Earlier(end) if last > end => Err(Error::invalid(format!(
            "the stream goes on after record {end}, and the follower's history has gone another way there: it is the stream \
             of a source that was left"
        ))),
        _ => Ok(()),
    }
}

fn unknown_rule(table: &str, name: &RuleName) -> Error {
    let call = if name.state_type().is_some() { "Follower::aggregator" } else { "Follower::merge_rule" };
    Error::invalid(format!(
        "table `{table}` has {}, whose code is the user's own and is not here; bring it by {call} before it follows",
        name.describe()
    ))
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follower(up to {})", self.position())
    }
}
