//! [`Outgoing`]: what a turn has published. It goes out behind the commit, or nowhere.

use std::sync::Arc;

use super::Kind;
use super::hub::Listeners;
use super::outbox::Message;
use crate::commands::Refusal;
use crate::turn::Turn;

/// Beyond so many deliveries a turn publishes nothing more: the loop does nothing else while it makes them,
const DELIVERIES_MAX: usize = 1 << 23;
/// and beyond so many steps of patterns.
const STEPS_MAX: usize = 1 << 30;
/// What can be told in parts is told in such.
const PART_DELIVERIES: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    messages: Vec<(Listeners, Arc<Message>)>,
    deliveries: usize,
    steps: usize,
    bytes: usize,
}

impl Outgoing {
    pub(super) fn push(&mut self, listeners: &Listeners, message: Arc<Message>) {
        self.deliveries += listeners.len();
        self.bytes += size_of::<(Listeners, Arc<Message>)>();
        self.messages.push((Arc::clone(listeners), message));
    }

    /// Adds what messages take, and the steps of patterns that were held against their names.
    pub(super) fn add(&mut self, bytes: usize, steps: usize) {
        (self.bytes, self.steps) = (self.bytes + bytes, self.steps + steps);
    }

    /// Whether the turn may publish nothing more.
    pub(super) fn is_full(&self) -> bool {
        self.deliveries > DELIVERIES_MAX || self.steps > STEPS_MAX
    }

    /// Whether it is a good part of something larger.
    pub(crate) fn is_part(&self) -> bool {
        self.deliveries > PART_DELIVERIES
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn send(self) {
        for (listeners, message) in &self.messages {
            listeners.values().for_each(|outbox| outbox.put(message));
        }
    }
}

impl Turn<'_> {
    /// Finds who is to get a message once the turn is committed. Returns how many those are.
    pub(crate) fn publish(&mut self, kind: Kind, name: &[u8], text: &[u8]) -> Result<usize, Refusal> {
        let shared = self.shared;
        let room = (&shared.buffers_bytes, shared.config.buffers_bytes_max);
        let (count, work) = shared.hub.publish(&mut self.outgoing, room, kind, (name, text))?;
        self.worked(work);
        Ok(count)
    }
}
