//! Writing a change stream, round by round: what was committed since the last one.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_layouts::TableOptions;
use forebay_store::manifest::{Lineage, TableEntry};

use super::STREAM;
use super::message::{BatchOf, Ending, Greeting, MAGIC, Message, Round};
use super::messages::Messages;
use crate::changes::{Changes, Moment};
use crate::context::{Context, closed};
use crate::versions::{State, TableState, Versions};

/// So much is written at a time.
const WRITE_BYTES: usize = 64 << 10;
/// A follower hears from its source this often at least.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How soon a follower is told of a commit.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A stream of a database's changes, for a [`Follower`](crate::Follower): see
/// [`Database::stream_changes`](crate::Database::stream_changes).
///
/// It tells what is durable: each [round](Self::advance) syncs the log before it writes. After an error the stream is of
/// no more use; what a follower has got of it is whole, and another stream goes on from there.
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

impl<W: Write> ChangeStream<W> {
    pub(crate) fn begin(versions: &Arc<Versions>, since: u64, out: W) -> Result<Self> {
        if versions.context.log.is_some() {
            versions.begin_lineage()?;
        }
        let (_, Moment { lineage, .. }) = Changes::begin(versions, 0)?;
        if lineage.lines.is_empty() {
            return Err(Error::invalid(
                "the database keeps no changes for followers yet; open it once to write with keep_changes (in a shell \
                 `--keep-changes SIZE`)",
            ));
        }
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
        let context = Arc::clone(&self.versions.context);
        if context.is_closing() {
            return Err(closed());
        }
        let (mut changes, moment) = match Changes::begin(&self.versions, self.position) {
            Ok((_, moment)) if self.position < moment.whole_after => {
                return Err(self.end_with(moment.gone(self.position)));
            }
            Err(error) => return Err(self.end_with(error)),
            begun => begun?,
        };
        if moment.lineage.lines != self.lineage.lines {
            return Err(self.end_with(Error::invalid(
                "another line of the database's history begins here, as entries were ingested; begin the stream anew",
            )));
        }
        if let Some(log) = &context.log {
            log.sync_to(u64::MAX)?;
        }
        let at_milliseconds = context.env.clock.unix_milliseconds();
        let tables = self.news_of(&moment.state)?;
        let round = Round { at_milliseconds, next_table: moment.next_table, tables };
        drop(moment);
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
        self.flush()?;
        Ok(self.position)
    }

    /// Waits until something was committed since the last round, for a second at most. `false` once the database is
    /// closed.
    pub fn wait(&self) -> bool {
        let Context { env, log, .. } = &*self.versions.context;
        let is_closing = || self.versions.context.is_closing();
        let is_news = || log.as_ref().is_some_and(|log| log.last_sequence() > self.position);
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

    /// What tables there are, if that was not told before.
    fn news_of(&mut self, state: &State) -> Result<Option<Vec<TableEntry>>> {
        let now = || state.tables.values().map(|table| (table.id, table.options));
        if self.told.as_ref().is_some_and(|told| told.iter().copied().eq(now())) {
            return Ok(None);
        }
        self.told = Some(now().collect());
        state.tables.values().map(|table| as_made(table)).collect::<Result<_>>().map(Some)
    }

    /// Tells a follower of an error, as far as it concerns it.
    fn end_with(&mut self, error: Error) -> Error {
        let ending = match error {
            Error::ChangesGone { since, oldest, rolled_back } => Ending::Gone { since, oldest, rolled_back },
            _ => Ending::Finished,
        };
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
/// who answers by streams of their own; [`ChangeServer::serve`](crate::ChangeServer::serve) does both.
pub fn requested_position(from: impl Read) -> Result<u64> {
    let mut messages = Messages::new(from, Path::new("the follower's request"));
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
