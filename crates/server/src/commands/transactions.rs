//! Several commands as one: nobody comes between, and all that they write is in one batch.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

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
/// Keys that are watched may take so many.
const WATCHED_BYTES_MAX: usize = 4 << 20;

/// What waits for `EXEC`, and what must not be written before it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    is_open: bool,
    is_spoilt: bool,
    commands: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    /// By their databases.
    watched: HashMap<(usize, Vec<u8>), Watched>,
    watched_bytes: usize,
}

/// Of a key that is watched: how often it was written before, and whether it was there.
#[derive(Debug)]
struct Watched {
    writes: u64,
    is_there: bool,
}

impl Queue {
    /// Whether a command waits.
    pub(super) fn takes(&self, command: &Command) -> bool {
        self.is_open && !AT_ONCE.contains(&command.name)
    }

    pub(super) fn push(&mut self, arguments: &[&[u8]]) {
        if self.is_spoilt {
            return;
        }
        // Small texts take what an allocator gives at least.
        let taken = |argument: &&[u8]| argument.len().max(16) + size_of::<Vec<u8>>();
        self.bytes += arguments.iter().map(taken).sum::<usize>() + size_of::<Vec<Vec<u8>>>();
        match self.bytes > QUEUE_BYTES_MAX {
            true => self.spoil(),
            false => self.commands.push(arguments.iter().map(|argument| argument.to_vec()).collect()),
        }
    }

    /// One of its commands was refused: none of them will be done.
    pub(super) fn spoil(&mut self) {
        if self.is_open {
            (self.is_spoilt, self.commands, self.bytes) = (true, Vec::new(), 0);
        }
    }

    /// How many commands wait, if it is open, and how many keys are watched.
    pub(super) fn counts(&self) -> (Option<usize>, usize) {
        (self.is_open.then_some(self.commands.len()), self.watched.len())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.watched_bytes
    }

    /// What a command of this client needs that ends it.
    pub(super) fn plan(&self, name: &str, client: u64, plan: &mut Plan) {
        if !["EXEC", "DISCARD", "UNWATCH", "RESET"].contains(&name) {
            return;
        }
        if plan.takes_watched(client) {
            self.watched.keys().for_each(|(_, key)| plan.lock(key));
        }
        if name != "EXEC" || !plan.takes_queue(client) {
            return;
        }
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
        shared.watched.fetch_sub(self.watched.len(), Ordering::SeqCst);
        for ((database, key), _) in self.watched.drain() {
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

/// Forgets the queue, and what is watched, and returns both.
fn close(call: &mut Call<'_, '_>) -> Queue {
    let queue = std::mem::take(&mut call.client.queue);
    for (database, key) in queue.watched.keys() {
        if let Some(stripe) = call.turn.stripe(key) {
            stripe.unwatch(*database, key);
        }
    }
    call.turn.shared.watched.fetch_sub(queue.watched.len(), Ordering::SeqCst);
    queue
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
    // While they are watched their writes are counted.
    let Call { client, turn, .. } = &mut *call;
    let writes = |(database, key): &(usize, Vec<u8>)| {
        turn.stripe(key).map_or(0, |stripe| stripe.writes(*database, key))
    };
    let writes: Vec<u64> = client.queue.watched.keys().map(writes).collect();
    // Whatever comes of it, the transaction is over.
    let queue = close(call);
    if queue.is_spoilt {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    for (((database, key), then), writes) in queue.watched.iter().zip(writes) {
        if writes != then.writes || then.is_there != call.turn.get(*database, key)?.is_some() {
            call.reply.null_array();
            return Ok(());
        }
    }
    call.reply.array(queue.commands.len());
    call.turn.begin_transaction(call.reply.bytes.len());
    for command in &queue.commands {
        let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Call { client, turn, reply, .. } = call;
        super::run(&mut Call { arguments: &arguments, client, turn, reply });
    }
    call.turn.end_transaction();
    Ok(())
}

fn watch(call: &mut Call<'_, '_>) -> Answer {
    if call.client.queue.is_open {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let database = call.client.database;
    for key in &call.arguments[1..] {
        let watched = (database, key.to_vec());
        if call.client.queue.watched.contains_key(&watched) {
            continue;
        }
        let bytes = key.len() + size_of::<((usize, Vec<u8>), Watched)>();
        if call.client.queue.watched_bytes + bytes > WATCHED_BYTES_MAX {
            return Err("ERR too many keys are watched; EXEC, DISCARD and UNWATCH end that".into());
        }
        let is_there = call.turn.get(database, key)?.is_some();
        let Some(stripe) = call.turn.stripe(key) else { continue };
        let writes = stripe.watch(database, key);
        call.turn.shared.watched.fetch_add(1, Ordering::SeqCst);
        call.client.queue.watched_bytes += bytes;
        call.client.queue.watched.insert(watched, Watched { writes, is_there });
    }
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_, '_>) -> Answer {
    close(call);
    call.reply.ok();
    Ok(())
}
