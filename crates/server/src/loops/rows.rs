//! Connections that wait for something to take: they are woken, or their time is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::round::Asked;
use super::{Loop, PAUSE};
use crate::commands::{self, Call};
use crate::turn::{Plan, Turn};

/// Whether a pause is over is looked at so often.
const PAUSED: Duration = Duration::from_millis(10);

impl Loop {
    /// Has commands go on that waited until a pause is over.
    pub(super) fn resume(&mut self) {
        let Self { connections, paused, ready, shared, .. } = self;
        paused.retain(|&number| {
            let Some(connection) = &mut connections[number] else { return false };
            let is_over = !shared.clients.pause.stops(true);
            connection.is_paused &= !is_over;
            ready.extend(is_over.then_some(number));
            !is_over
        });
    }

    /// How long the loop may sleep.
    pub(super) fn pause(&self) -> Duration {
        if !self.paused.is_empty() {
            return PAUSED;
        }
        let first = self.deadlines.first().map(|(at, _)| at.saturating_duration_since(Instant::now()));
        // The system counts in milliseconds, and would wake it before the moment.
        first.map_or(PAUSE, |until| (until + Duration::from_millis(1)).min(PAUSE))
    }

    /// Has those looked at that others have woken.
    pub(super) fn take_woken(&mut self) {
        for number in self.doors[self.number].bell().take() {
            if let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) {
                connection.is_woken = connection.client.blocked.is_some();
                match connection.heed(&self.shared) {
                    true => self.ready.push(number),
                    false => self.close(number),
                }
                if self.connections[number].is_some() {
                    self.note_deadline(number);
                }
            }
        }
    }

    /// Tells those whose time is over that there was nothing.
    pub(super) fn time_out(&mut self) {
        while let Some(&(at, number)) = self.deadlines.first()
            && at <= Instant::now()
        {
            self.deadlines.pop_first();
            let Some(connection) = &mut self.connections[number] else { continue };
            (connection.deadline, connection.is_woken) = (None, false);
            if connection.client.stop_waiting(&self.shared) {
                connection.tell(commands::time_out);
                connection.has_more = true;
                self.ready.push(number);
            }
        }
    }

    /// Closes those that are silent for too long, or whose users are gone, and listens again. Looks at all of them, so once a second.
    pub(super) fn look_around(&mut self) {
        let now = self.shared.uptime_seconds();
        if std::mem::replace(&mut self.looked_at, now) == now {
            return;
        }
        if std::mem::take(&mut self.is_deaf) {
            (0..self.listeners.len()).for_each(|listener| self.accept(listener));
        }
        let most = self.shared.config.silence_seconds_max;
        for number in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[number] else { continue };
            if connection.held_until.is_some_and(|until| until <= now) {
                connection.held_until = None;
                self.ready.push(number);
            }
            if connection.is_silent(now, most) || !connection.client.is_still_there(&self.shared) {
                self.close(number);
            }
        }
    }

    /// Notes until when a connection waits.
    pub(super) fn note_deadline(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let deadline = connection.client.blocked.as_ref().and_then(|blocked| blocked.deadline);
        let before = std::mem::replace(&mut connection.deadline, deadline);
        if before != deadline {
            if let Some(at) = before {
                self.deadlines.remove(&(at, number));
            }
            self.deadlines.extend(deadline.map(|at| (at, number)));
        }
    }
}

/// Tells the plan what a command needs that is done again.
pub(super) fn plan_again(number: usize, connection: &mut Connection, plan: &mut Plan) -> Option<Asked> {
    let Some(blocked) = &connection.client.blocked else {
        connection.is_woken = false;
        return None;
    };
    let arguments: Vec<&[u8]> = blocked.arguments.iter().map(Vec::as_slice).collect();
    if let Some(command) = commands::find(arguments[0]) {
        command.plan(&arguments, &connection.client, plan);
    }
    let mut asked = Asked::new(number, connection);
    asked.is_again = true;
    Some(asked)
}

/// Does it again. Returns how many replies there are to that.
pub(super) fn run_again(connection: &mut Connection, turn: &mut Turn<'_>) -> usize {
    connection.is_woken = false;
    let Connection { client, reply, .. } = connection;
    let Some(blocked) = &client.blocked else { return 0 };
    let waiting = Arc::clone(&blocked.arguments);
    let arguments: Vec<&[u8]> = waiting.iter().map(Vec::as_slice).collect();
    let before = reply.bytes.len();
    commands::run_again(&mut Call { arguments: &arguments, client, turn, reply });
    if client.is_hushed {
        reply.bytes.truncate(before);
    }
    usize::from(client.blocked.is_none())
}
