//! A round: what all ready sockets have is one turn.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::Loop;
use super::connection::Connection;
use crate::commands::{self, Call};
use crate::resp::{Requests, Spans, Wrong};
use crate::shared::Shared;
use crate::turn::{Plan, Turn};

/// So many requests of one connection are in one turn.
const REQUESTS_MAX: usize = 1024;
/// Memory for elements of containers, beyond which a turn writes out what it has in between.
const ELEMENTS_BYTES_MAX: usize = 16 << 20;

/// What one connection asks in a turn: its requests that wait.
struct Asked {
    number: usize,
    /// Where its replies of this turn begin.
    replies_from: usize,
    /// So many were done, of so many that may be.
    done: usize,
    most: usize,
}

fn arguments<'r>(requests: &'r Requests, spans: &Spans) -> SmallVec<[&'r [u8]; 8]> {
    spans.iter().map(|span| requests.argument(*span)).collect()
}

impl Loop {
    /// Reads, answers and sends.
    pub(super) fn round(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        let mut asked = Vec::with_capacity(ready.len());
        let mut plan = Plan::default();
        for &number in &ready {
            let Some(connection) = &mut self.connections[number] else { continue };
            if connection.is_over || connection.is_behind() {
                continue;
            }
            let is_there = connection.read(&mut self.chunk);
            let one = take(number, connection, &self.shared, &mut plan);
            // What it has sent before it went is done, though nobody may read the answers.
            connection.is_ending |= !is_there;
            asked.push(one);
        }
        self.answer(&mut asked, &mut plan);
        for one in &asked {
            if let Some(connection) = &mut self.connections[one.number] {
                connection.waiting.drain(..one.done);
                connection.requests.forget(&mut connection.waiting);
                connection.has_more = !connection.waiting.is_empty() || one.done == one.most;
                if !connection.has_more {
                    if let Some(Wrong(text)) = connection.wrong {
                        connection.reply.error(&format!("ERR {text}"));
                    }
                    connection.is_over |= connection.is_ending || connection.wrong.is_some();
                }
            }
        }
        for number in ready {
            self.reply_to(number);
        }
    }

    /// Sends a connection its replies, and closes it if that was all.
    fn reply_to(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let was_behind = connection.is_behind();
        let is_there = connection.send(&self.shared);
        let fits = connection.count(&self.shared);
        let is_over = connection.is_over || connection.client.is_leaving;
        if !is_there || !fits || is_over && !connection.has_replies() {
            self.close(number);
        } else if !is_over
            && !connection.is_behind()
            && (connection.is_readable || connection.has_more || was_behind)
        {
            self.ready.push(number);
        }
    }

    /// Does what was asked, in one turn.
    fn answer(&mut self, asked: &mut [Asked], plan: &mut Plan) {
        let shared = std::sync::Arc::clone(&self.shared);
        if asked
            .iter()
            .all(|one| self.connections[one.number].as_ref().is_none_or(|found| found.waiting.is_empty()))
        {
            return;
        }
        let finished = Turn::begin(&shared, plan).and_then(|mut turn| {
            for one in asked.iter_mut() {
                if let Some(connection) = &mut self.connections[one.number] {
                    run(connection, &mut turn, &mut one.done)?;
                    shared.commands.fetch_add(one.done as u64, Ordering::Relaxed);
                }
            }
            turn.finish()
        });
        // Nobody knows then what of it was kept.
        if let Err(error) = finished {
            for one in asked {
                if let Some(connection) = &mut self.connections[one.number] {
                    one.done = one.done.max(1).min(connection.waiting.len());
                    connection.reply.bytes.truncate(one.replies_from);
                    (0..one.done).for_each(|_| connection.reply.error(&format!("ERR {error}")));
                }
            }
        }
    }
}

/// Takes the requests that are whole, and tells the plan what they need.
fn take(number: usize, connection: &mut Connection, shared: &Shared, plan: &mut Plan) -> Asked {
    let limits = connection.limits(shared);
    // What one may ask behind a password depends on that.
    let most = if connection.client.is_known { REQUESTS_MAX } else { 1 };
    while connection.waiting.len() < most && connection.wrong.is_none() {
        match connection.requests.next(limits) {
            Ok(None) => break,
            Ok(Some(spans)) => connection.waiting.push(spans),
            Err(wrong) => connection.wrong = Some(wrong),
        }
    }
    if !connection.client.is_known {
        // Nobody looks anything up, or waits for locks, for who is refused. What lets one in has no keys.
        return Asked { number, replies_from: connection.reply.bytes.len(), done: 0, most };
    }
    for spans in &connection.waiting {
        let arguments = arguments(&connection.requests, spans);
        if let Some(command) = commands::find(arguments[0]).filter(|found| found.takes(arguments.len())) {
            command.plan(&arguments, &connection.client, plan);
        }
    }
    Asked { number, replies_from: connection.reply.bytes.len(), done: 0, most }
}

/// Does a connection's requests in order, until it has to read, and counts them.
fn run(connection: &mut Connection, turn: &mut Turn<'_>, done: &mut usize) -> forebay::Result<()> {
    for at in 0..connection.waiting.len() {
        if connection.client.is_leaving || connection.is_behind() {
            break;
        }
        let Connection { requests, waiting, reply, client, .. } = connection;
        let arguments = arguments(requests, &waiting[at]);
        commands::run(&mut Call { arguments: &arguments, client, turn, reply });
        *done += 1;
        if turn.elements_bytes() > ELEMENTS_BYTES_MAX {
            turn.write_out()?;
        }
    }
    Ok(())
}
