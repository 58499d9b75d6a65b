//! A round: what all ready sockets have is one turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Loop;
use super::connection::{CHUNK_BYTES, Connection};
use super::requests::{arguments, guarded, note, run};
use super::rows::{plan_again, run_again};
use crate::commands;
use crate::resp::Wrong;
use crate::shared::Shared;
use crate::turn::{Plan, Turn};

/// So many requests of one connection are in one turn.
const REQUESTS_MAX: usize = 1024;
/// So many that send nothing more may wait for jobs.
const ENDED_MAX: usize = 8;
/// A round reads about this of all connections together; of others it reads in the next.
const ROUND_BYTES_MAX: usize = 8 << 20;
/// And does so many steps of handshakes, beside that: a flood of them holds up nobody who is in for long.
const HANDSHAKES_MAX: usize = 8;

/// What one connection asks in a turn: its requests that wait.
pub(super) struct Asked {
    number: usize,
    /// Where its replies of this turn begin.
    replies_from: usize,
    /// So many were done.
    done: usize,
    /// They have written what is to be on the disk.
    is_durable: bool,
    /// What waited is to be done again, and nothing else.
    pub(super) is_again: bool,
}

impl Asked {
    pub(super) fn new(number: usize, connection: &Connection) -> Self {
        Self {
            number,
            replies_from: connection.reply.bytes.len(),
            done: 0,
            is_durable: false,
            is_again: false,
        }
    }
}

impl Loop {
    /// Reads, answers and sends.
    pub(super) fn round(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        // A turn may end before all of them were asked: those come first in the next.
        self.turns += 1;
        ready.sort_by_key(|number| self.connections[*number].as_ref().map(|found| found.served_in));
        let mut asked = Vec::with_capacity(ready.len());
        let mut plan = Plan::default();
        let (mut left, mut left_handshakes) = (ROUND_BYTES_MAX, HANDSHAKES_MAX);
        for &number in &ready {
            let Some(connection) = &mut self.connections[number] else { continue };
            if connection.is_due_again() && !connection.is_over {
                asked.extend(plan_again(number, connection, &mut plan));
                continue;
            }
            if connection.is_over || connection.is_behind() || connection.waits() {
                continue;
            }
            let is_next = left > 0 && (connection.stream.is_open() || left_handshakes > 0);
            let reads = connection.may_read() && !self.is_ending && is_next;
            if reads {
                connection.served_in = self.turns;
            }
            let before = connection.stream.handshake_bytes;
            let is_there = !reads || connection.read(&mut self.chunk, &mut left);
            left_handshakes =
                left_handshakes.saturating_sub(usize::from(connection.stream.handshake_bytes != before));
            let one = take(number, connection, &self.shared, &mut plan);
            // What it has sent before it went is done, though nobody may read the answers.
            connection.is_ending |= !is_there;
            asked.push(one);
        }
        self.answer(&mut asked, &mut plan);
        for one in &asked {
            if let Some(connection) = &mut self.connections[one.number] {
                connection.forget(if one.is_again { 0 } else { one.done });
                // One that has ended would not be seen to be gone as it waits.
                connection.is_over |= connection.client.blocked.is_some() && connection.is_read_to_end;
                if let Some(work) = connection.client.work.take() {
                    let bell = self.doors[self.number].bell();
                    connection.job = Some(self.shared.jobs.submit(work, connection.reply.version, bell));
                    self.working.push(one.number);
                }
                if connection.is_paused {
                    self.paused.push(one.number);
                }
                if let held @ 1.. = std::mem::take(&mut connection.client.held_seconds) {
                    connection.held_until = Some(self.shared.uptime_seconds() + held);
                }
                connection.has_more |=
                    !connection.waiting.is_empty() || connection.job.is_some() || one.is_again;
                connection.is_over |= connection.is_refused();
                if !connection.has_more {
                    if let Some(Wrong(text)) = connection.wrong {
                        connection.reply.error(&format!("ERR {text}"));
                    }
                    connection.is_over |= connection.is_ending || connection.wrong.is_some();
                }
            }
        }
        asked.iter().for_each(|one| self.note_deadline(one.number));
        for number in ready {
            self.reply_to(number);
        }
        self.leave_jobs();
        self.shed();
    }

    /// Closes those that wait for a job and have gone. Who has only ended its side may still wait for the reply, but of such
    /// a few only: nobody is told whether they do.
    fn leave_jobs(&mut self) {
        let mut ended = 0;
        for number in self.working.clone() {
            let Some(connection) = &self.connections[number] else { continue };
            ended += usize::from(connection.job.is_some() && connection.is_read_to_end);
            if connection.job.is_some()
                && (connection.is_gone || connection.is_read_to_end && ended > ENDED_MAX)
            {
                self.close(number);
            }
        }
    }

    /// Closes those that hold most, while all hold more than they may.
    fn shed(&mut self) {
        while self.shared.buffers_bytes.load(Ordering::Relaxed) > self.shared.config.buffers_bytes_max {
            let bytes_of = |one: &Option<Connection>| one.as_ref().map_or(0, Connection::held_bytes);
            let largest =
                (0..self.connections.len()).max_by_key(|number| bytes_of(&self.connections[*number]));
            // Others may have more on another loop.
            match largest.filter(|number| bytes_of(&self.connections[*number]) > CHUNK_BYTES) {
                Some(number) => self.close(number),
                None => return,
            }
        }
    }

    /// Gives connections the replies that they have waited for.
    pub(super) fn collect(&mut self) {
        let Self { connections, working, syncing, ready, .. } = self;
        syncing.retain(|&number| {
            let is_over = connections[number].as_mut().is_none_or(Connection::release);
            ready.extend(is_over.then_some(number));
            !is_over
        });
        working.retain(|&number| {
            let Some(connection) = &mut connections[number] else { return false };
            let Some(job) = &connection.job else { return false };
            let Some(reply) = job.take() else { return true };
            connection.tell(|own| own.bytes.extend_from_slice(&reply));
            connection.job = None;
            ready.push(number);
            false
        });
    }

    /// Sends a connection its replies, and closes it if that was all.
    fn reply_to(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        if connection.is_given() && !self.is_ending {
            return self.give(number);
        }
        if connection.is_over {
            // Others wait behind it.
            connection.client.stop_waiting(&self.shared);
        }
        if connection.held_until.is_some() {
            return connection.count(&self.shared);
        }
        let was_behind = connection.is_behind();
        let has_all = connection.take_messages(&self.shared);
        let is_there = connection.send(&self.shared) && has_all;
        connection.count(&self.shared);
        let is_over = connection.is_over || connection.client.is_leaving;
        if !is_there || is_over && !connection.has_replies() {
            self.close(number);
        } else if !is_over
            && !connection.is_behind()
            && (connection.is_due_again()
                || connection.client.waiting_bytes() > 0
                || !connection.waits() && (connection.is_readable || connection.has_more || was_behind))
        {
            self.ready.push(number);
        }
    }

    /// Does what was asked, in one turn.
    fn answer(&mut self, asked: &mut [Asked], plan: &mut Plan) {
        let shared = Arc::clone(&self.shared);
        if asked.iter().all(|one| {
            !one.is_again
                && self.connections[one.number].as_ref().is_none_or(|found| found.waiting.is_empty())
        }) {
            return;
        }
        let mut turn = Turn::begin(&shared, plan);
        for one in asked.iter_mut() {
            if let Some(connection) = &mut self.connections[one.number] {
                let begin = Instant::now();
                one.done = match one.is_again {
                    true => guarded(&mut turn, |turn| run_again(connection, turn)).unwrap_or(1),
                    false => run(connection, &mut turn, &mut self.sampler),
                };
                one.is_durable = turn.takes_durable();
                note(&shared, begin, connection, one.done);
                connection.served_in = self.turns;
                shared.commands.fetch_add(one.done as u64, Ordering::Relaxed);
                if turn.is_over() {
                    break;
                }
            }
        }
        let has_written = turn.changes() > 0;
        let finished = turn.finish();
        // A turn that has written nothing says nothing.
        let is_failing = self.shared.is_failing.load(Ordering::Relaxed);
        if is_failing != finished.is_err() && (!is_failing || has_written) {
            self.shared.is_failing.store(!is_failing, Ordering::Relaxed);
        }
        let waits_for_disk = finished.is_ok() && asked.iter().any(|one| one.is_durable);
        let synced = waits_for_disk.then(|| {
            let durable = asked.iter().filter(|one| one.is_durable && one.done > 0);
            let waited_for =
                durable.filter_map(|one| Some(self.connections[one.number].as_ref()?.waited_for));
            shared.syncs.submit(self.doors[self.number].bell(), waited_for)
        });
        for one in asked.iter().filter(|one| one.done > 0) {
            let Some(connection) = &mut self.connections[one.number] else { continue };
            match (&finished, &synced) {
                (Err(error), _) => connection.fail(one.replies_from, one.done, error),
                (_, Some((synced, sync))) if one.is_durable => {
                    connection.hold(one.replies_from, one.done, Arc::clone(synced));
                    connection.waited_for = *sync;
                    self.syncing.push(one.number);
                }
                _ => {}
            }
        }
    }
}

/// Takes the requests that are whole, and tells the plan what they need.
fn take(number: usize, connection: &mut Connection, shared: &Shared, plan: &mut Plan) -> Asked {
    let limits = connection.limits(shared);
    // What one may ask behind a password depends on that.
    let most = if connection.client.is_known { REQUESTS_MAX } else { 1 };
    connection.has_more = connection.wrong.is_none();
    while connection.waiting.len() < most && connection.has_more {
        match connection.requests.next(limits) {
            Ok(Some(spans)) => connection.waiting.push(spans),
            Ok(None) => connection.has_more = false,
            Err(wrong) => (connection.wrong, connection.has_more) = (Some(wrong), false),
        }
    }
    if !connection.client.is_known {
        // Nobody looks anything up, or waits for locks, for who is refused. What lets one in has no keys.
        return Asked::new(number, connection);
    }
    for spans in &connection.waiting {
        let arguments = arguments(&connection.requests, spans);
        if let Some(command) = commands::find(arguments[0]).filter(|found| found.takes(arguments.len())) {
            command.plan(&arguments, &connection.client, plan);
        }
    }
    Asked::new(number, connection)
}
