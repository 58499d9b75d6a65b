//! What connections are told without having asked at that moment: messages of channels, and that it is their turn.
//!
//! 1. A connection that subscribes gets an [`Outbox`], which stands in the [`Hub`] under each name that it asked for.
//! 2. A turn that publishes finds the outboxes at once, and puts the message into them once its commit has succeeded.
//! 3. The outbox rings the [`Bell`] of the loop that has the connection. That loop moves messages behind the replies, as
//!    far as the socket takes them.
//!
//! **Invariant:** nobody who publishes waits for who listens. An outbox that holds too much is given up, and its
//! connection is closed.

mod expiries;
mod hub;
mod outbox;
mod outgoing;

pub(crate) use expiries::Expiries;
pub(crate) use hub::{Hub, Kind, Subscriptions};
pub(crate) use outbox::{Bell, Seat};
pub(crate) use outgoing::Outgoing;
