//! [`Outgoing`]: what a turn has published. It goes out behind the commit, or nowhere.

use std::sync::Arc;

use super::Kind;
use super::outbox::{Message, Outbox};
use crate::commands::Refusal;
use crate::turn::Turn;

/// Who would get yet more of one turn is given up.
const DELIVERIES_MAX: usize = 1 << 21;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    deliveries: Vec<(Arc<Outbox>, Arc<Message>)>,
    bytes: usize,
}

impl Outgoing {
    pub(super) fn push(&mut self, outbox: &Arc<Outbox>, message: &Arc<Message>) {
        if self.deliveries.len() == DELIVERIES_MAX {
            return outbox.give_up();
        }
        self.deliveries.push((Arc::clone(outbox), Arc::clone(message)));
        self.bytes += size_of::<(Arc<Outbox>, Arc<Message>)>();
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn send(self) {
        self.deliveries.iter().for_each(|(outbox, message)| outbox.put(message));
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
