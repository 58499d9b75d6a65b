//! Several commands as one: nobody comes between, and all that they write is in one batch.

use super::{Answer, Call, Command, Use, find};
use crate::shared::Shared;
use crate::turn::Plan;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "MULTI", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: multi },
    Command { name: "EXEC", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: exec },
    Command { name: "DISCARD", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: discard },
    Command { name: "WATCH", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: watch },
    Command { name: "UNWATCH", arity: 1, keys: (0, 0, 0), uses: Use::Nothing, run: unwatch },
];

/// They act at once, also between `MULTI` and `EXEC`.
const AT_ONCE: [&str; 6] = ["MULTI", "EXEC", "DISCARD", "WATCH", "QUIT", "RESET"];

/// Commands that wait may have so many bytes.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// What waits for `EXEC`, and what must not be written before it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    is_open: bool,
    is_spoilt: bool,
    commands: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    watched: Vec<Watched>,
}

/// A key that is watched.
#[derive(Debug)]
struct Watched {
    database: usize,
    key: Vec<u8>,
    /// How often it was written before, and whether it was there.
    writes: u64,
    is_there: bool,
}

impl Queue {
    /// Whether a command waits.
    pub(super) fn takes(&self, command: &Command) -> bool {
        self.is_open && !AT_ONCE.contains(&command.name)
    }

    pub(super) fn push(&mut self, arguments: &[&[u8]]) {
        self.bytes += arguments.iter().map(|argument| argument.len() + size_of::<Vec<u8>>()).sum::<usize>();
        if self.bytes > QUEUE_BYTES_MAX {
            (self.is_spoilt, self.commands) = (true, Vec::new());
        }
        if !self.is_spoilt {
            self.commands.push(arguments.iter().map(|argument| argument.to_vec()).collect());
        }
    }

    /// One of its commands was refused.
    pub(super) fn spoil(&mut self) {
        self.is_spoilt |= self.is_open;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// What a command needs that ends it.
    pub(super) fn plan(&self, name: &str, plan: &mut Plan) {
        if !["EXEC", "DISCARD", "UNWATCH", "RESET"].contains(&name) {
            return;
        }
        self.watched.iter().for_each(|watched| plan.lock(&watched.key));
        for command in &self.commands {
            let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            if let Some(found) = find(arguments[0]) {
                match found.uses {
                    Use::Nothing => {}
                    Use::Whole => plan.whole(),
                    // They are looked up one by one.
                    _ => found.keys_of(&arguments).for_each(|key| plan.lock(key)),
                }
            }
        }
    }

    /// Watches nothing any more, of a connection that has gone.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        for Watched { database, key, .. } in self.watched.drain(..) {
            shared.lock(Shared::stripe_of(&key)).unwatch(database, &key);
        }
    }
}

fn multi(call: &mut Call<'_, '_>) -> Answer {
    if call.client.queue.is_open {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.client.queue.is_open = true;
    call.reply.ok();
    Ok(())
}

/// Forgets the queue, and what is watched. Returns the queue, and what was watched.
fn close(call: &mut Call<'_, '_>) -> (Queue, Vec<Watched>) {
    let mut queue = std::mem::take(&mut call.client.queue);
    let watched = std::mem::take(&mut queue.watched);
    for Watched { database, key, .. } in &watched {
        if let Some(stripe) = call.turn.stripe(key) {
            stripe.unwatch(*database, key);
        }
    }
    (queue, watched)
}

fn discard(call: &mut Call<'_, '_>) -> Answer {
    if !call.client.queue.is_open {
        return Err("ERR DISCARD without MULTI".into());
    }
    close(call);
    call.reply.ok();
    Ok(())
}

/// Ends whatever is begun.
pub(super) fn reset(call: &mut Call<'_, '_>) {
    close(call);
}

fn exec(call: &mut Call<'_, '_>) -> Answer {
    if !call.client.queue.is_open {
        return Err("ERR EXEC without MULTI".into());
    }
    let mut is_changed = false;
    let watched = std::mem::take(&mut call.client.queue.watched);
    for Watched { database, key, writes, is_there } in &watched {
        let now = call.turn.stripe(key).map_or(0, |stripe| stripe.writes(*database, key));
        is_changed |= now != *writes || *is_there != call.turn.get(*database, key)?.is_some();
    }
    call.client.queue.watched = watched;
    let (queue, _) = close(call);
    if queue.is_spoilt {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    if is_changed {
        call.reply.null_array();
        return Ok(());
    }
    call.reply.array(queue.commands.len());
    for command in &queue.commands {
        let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Call { client, turn, reply, .. } = call;
        super::run(&mut Call { arguments: &arguments, client, turn, reply });
    }
    Ok(())
}

fn watch(call: &mut Call<'_, '_>) -> Answer {
    if call.client.queue.is_open {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let database = call.client.database;
    for key in &call.arguments[1..] {
        if call.client.queue.watched.iter().any(|watched| watched.database == database && watched.key == *key)
        {
            continue;
        }
        let is_there = call.turn.get(database, key)?.is_some();
        let Some(stripe) = call.turn.stripe(key) else { continue };
        let writes = stripe.watch(database, key);
        call.client.queue.watched.push(Watched { database, key: key.to_vec(), writes, is_there });
    }
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_, '_>) -> Answer {
    close(call);
    call.reply.ok();
    Ok(())
}
