//! Writing a change stream, round by round: what was committed since the last one.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_layouts::TableOptions;
use forebay_store::manifest::{Lineage, TableEntry};

use super::STREAM;
use super::durable::make_durable;
use super::message::{BatchOf, Ending, Greeting, MAGIC, Message, REQUEST_BYTES_MAX, Round};
use super::messages::Messages;
use crate::changes::{Changes, Moment};
use crate::context::Context;
use crate::versions::{TableState, Versions};

/// So much is written at a time.
const WRITE_BYTES: usize = 64 << 10;
/// A follower hears from its source this often at least.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How soon a follower is told of a commit.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A stream of a database's changes, for a [`Follower`](crate::Follower): see
/// [`Database::stream_changes`](crate::Database::stream_changes).
///
/// It tells what is durable: each [round](Self::advance) syncs the log before it writes, if there is anything to sync.
/// After an error the stream is of no more use; what a follower has got of it is whole, and another stream goes on from
/// there.
///
/// While a round is written it holds what it tells: write buffers and log segments of that moment stay. So let a socket
/// have a timeout for writes, or one that is never read from holds them for as long as it likes.
pub struct ChangeStream<W> {
    versions: Arc<Versions>,
    out: W,
    /// What is not written yet, and where in the stream that begins.
    pending: Vec<u8>,
    written: u64,
    position: u64,
    lineage: Lineage,
    /// The tables that were told.
    told: Option<Vec<(u32, TableOptions)>>,
}

/// What has come since the last round.
struct News {
    changes: Changes,
    moment: Moment,
    /// The tables, if they are to be told.
    tables: Option<Vec<TableEntry>>,
    is_new: bool,
}

impl<W: Write> ChangeStream<W> {
    pub(crate) fn begin(versions: &Arc<Versions>, since: u64, out: W) -> Result<Self> {
        let lineage = match versions.context.log.is_some() {
            true => versions.begin_lineage()?,
            false => versions.lineage().ok_or_else(|| {
                Error::invalid(
                    "the database keeps no changes for followers yet; open it once to write with keep_changes (in a shell \
                     `--keep-changes SIZE`)",
                )
            })?,
        };
        let (versions, pending) = (Arc::clone(versions), MAGIC.to_vec());
        let greeting = Greeting { lineage: lineage.clone(), since };
        let mut stream = Self { versions, out, pending, written: 0, position: since, lineage, told: None };
        stream.send(&Message::Greeting(greeting))?;
        stream.flush()?;
        Ok(stream)
    }

    /// Writes what was committed since the last round, and that the source is there, if nothing was. Returns the number of
    /// the last record that was told by now.
    pub fn advance(&mut self) -> Result<u64> {
        let news = self.look()?;
        self.tell(news)?;
        Ok(self.position)
    }

    /// The same, where anything was committed, or tables have come, gone, or got other options. Else nothing is written.
    /// Returns whether anything was.
    pub fn advance_if_new(&mut self) -> Result<bool> {
        let news = self.look()?;
        if news.is_new {
            self.tell(news)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// What has come since the last round, which is durable from here on.
    fn look(&mut self) -> Result<News> {
        let context = &self.versions.context;
        if context.is_closing() {
            return Err(Error::closed());
        }
        let (changes, moment) = Changes::begin(&self.versions, self.position)?;
        if self.position < moment.whole_after {
            let gone = Ending::Gone {
                since: self.position,
                oldest: moment.oldest,
                rolled_back: Some(moment.rolled_back).filter(|&number| self.position < number),
            };
            return Err(self.end_with(gone, moment.gone(self.position)));
        }
        if self.position > moment.last {
            return Err(self.end_with(Ending::Behind(moment.last), moment.ahead(self.position)));
        }
        let tables = self.news_of(&moment)?;
        let is_new = moment.last > self.position || tables.is_some();
        if is_new {
            make_durable(&self.versions.context, &moment)?;
        }
        Ok(News { changes, moment, tables, is_new })
    }

    fn tell(&mut self, News { mut changes, moment, tables, .. }: News) -> Result<()> {
        let context = Arc::clone(&self.versions.context);
        if moment.lineage.lines != self.lineage.lines {
            // Whoever has not got what came in beside the log is refused by it.
            self.lineage = moment.lineage.clone();
            self.send(&Message::Greeting(Greeting { lineage: moment.lineage, since: self.position }))?;
        }
        let at_milliseconds = context.env.clock.unix_milliseconds();
        let round = Round { at_milliseconds, next_table: moment.next_table, tables };
        drop(moment.state);
        self.send(&Message::Round(round))?;
        loop {
            let mut batch = None;
            let last = changes.next_whole(&mut |header, payload| {
                batch = Some(BatchOf {
                    sequence: header.sequence,
                    records: header.records,
                    payload: payload.to_vec(),
                });
            })?;
            let (Some(last), Some(batch)) = (last, batch) else { break };
            debug_assert!(last > self.position, "batches follow each other");
            self.send(&Message::Batch(batch))?;
            self.position = last;
        }
        debug_assert!(
            context.log.as_ref().is_none_or(|log| log.durable_sequence() >= self.position),
            "what is told is durable"
        );
        self.send(&Message::Mark(self.position))?;
        self.flush()
    }

    /// Waits until something was committed since the last round, or tables have come or gone, for a second at most. `false`
    /// once the database is closed. Where it is open for reading only nothing comes but by
    /// [`refresh`](crate::Database::refresh).
    pub fn wait(&self) -> bool {
        let Context { env, log, .. } = &*self.versions.context;
        let is_closing = || self.versions.context.is_closing();
        let told = self.told.as_ref().map(|told| (told.len(), told.last().map(|(id, _)| *id)));
        let has_other_tables = || told.is_some_and(|told| told != self.versions.state().tables.ends());
        let has_records = || log.as_ref().is_some_and(|log| log.last_sequence() > self.position);
        let is_news = || has_records() || has_other_tables();
        let deadline = env.clock.now() + HEARTBEAT;
        while !is_news() && !is_closing() && env.clock.now() < deadline {
            let look = (env.clock.now() + LOOK_INTERVAL).min(deadline);
            env.jobs.wait_until(look, &mut || is_closing());
        }
        !is_closing()
    }

    /// Tells that there is no more, and gives back what was written to.
    pub fn finish(mut self) -> Result<W> {
        self.send(&Message::End(Ending::Finished))?;
        self.flush()?;
        Ok(self.out)
    }

    /// The number of the last record that was told.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What tables there are, if that was not told before, or not of this lineage.
    fn news_of(&mut self, Moment { state, lineage, .. }: &Moment) -> Result<Option<Vec<TableEntry>>> {
        let now = || state.tables.values().map(|table| (table.id, table.options));
        let is_told = self.told.as_ref().is_some_and(|told| told.iter().copied().eq(now()));
        if is_told && lineage.lines == self.lineage.lines {
            return Ok(None);
        }
        self.told = Some(now().collect());
        state.tables.values().map(|table| as_made(table)).collect::<Result<_>>().map(Some)
    }

    /// Tells a follower of an error.
    fn end_with(&mut self, ending: Ending, error: Error) -> Error {
        // What it is told of first counts.
        let _ = self.send(&Message::End(ending)).and_then(|()| self.flush());
        error
    }

    fn send(&mut self, message: &Message) -> Result<()> {
        let place = self.written + self.pending.len() as u64;
        debug_assert!(place >= MAGIC.len() as u64, "a stream begins with what tells that it is one");
        message.encode(place, &mut self.pending);
        if self.pending.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.pending);
        written.map_err(|error| Error::io("write", Path::new(STREAM), &error))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        // A long commit leaves each stream that told it no longer than others do.
        self.pending.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write()?;
        self.out.flush().map_err(|error| Error::io("write", Path::new(STREAM), &error))
    }
}

impl<W> std::fmt::Debug for ChangeStream<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangeStream(up to {})", self.position)
    }
}

/// A table as it was made, without anything in it.
fn as_made(table: &TableState) -> Result<TableEntry> {
    Ok(TableEntry {
        id: table.id,
        name: table.name.clone(),
        options: table.options.encode(table.rule.name()),
        version: forebay_layouts::empty(&table.options)?,
        files: Vec::new(),
    })
}

/// Reads what a follower asks for that [follows](crate::Follower::follow) over a socket: the number of its last record. For
/// who answers by streams of their own, and of no more bytes than such a request has; [`ChangeServer::serve`](crate::ChangeServer::serve) does both.
pub fn requested_position(from: impl Read) -> Result<u64> {
    let mut messages = Messages::new(from.take(REQUEST_BYTES_MAX), Path::new("the follower's request"));
    match messages.next()? {
        Some(Message::Request(request)) => Ok(request.position),
        _ => Err(messages.damaged("this is no request of a follower")),
    }
}

/// Reads what a follower asks for, and tells it that, and what comes, until the database is closed or the follower goes.
pub(crate) fn serve<S: Read + Write>(versions: &Arc<Versions>, mut stream: S) -> Result<()> {
    let position = requested_position(&mut stream)?;
    let mut changes = ChangeStream::begin(versions, position, stream)?;
    while !versions.context.is_closing() {
        match changes.advance() {
            // What it says then is that.
            Err(_) if versions.context.is_closing() => break,
            told => told?,
        };
        changes.wait();
    }
    changes.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;

    use super::*;
    use crate::{Database, Options};

    /// Each of many streams kept the memory of the longest commit that it had told.
    #[test]
    fn a_long_commit_leaves_a_stream_little_memory() {
        let options = Options::default().memory_limit(64 << 20).keep_changes(1 << 30).env(Env::memory(1));
        let db = Database::open("/db", options).unwrap();
        let mut stream = db.stream_changes(0, Vec::new()).unwrap();
        db.table("t").open().unwrap().put("key", vec![7; 8 << 20]).unwrap();
        stream.advance().unwrap();
        let (told, held) = (stream.out.len(), stream.pending.capacity());
        assert!(told > 8 << 20 && held <= 2 * WRITE_BYTES, "{held} bytes are held, {told} were told");
    }
}
