//! A server that speaks the Redis protocol, over a database of Forebay.
//!
//! 1. A *loop* is a thread that has some of the connections ([`loops`]). Its *turn* begins with what all sockets have that
//!    are ready.
//! 2. Requests are cut out of the bytes ([`resp`]). Those of one turn are done in the order in which they came, by the
//!    functions that [`commands`] lists.
//! 3. A *turn* ([`turn`]) locks the keys of its requests, looks all of them up at once that are read, and keeps what is
//!    written in memory, where the turn's later requests see it. At its end there is one batch and one commit.
//! 4. Only then are replies sent, in the order of the requests; those to who asks for the disk behind a sync ([`syncs`])
//!    that many share.
//!
//! What takes long is done by [`jobs`], and answered when it is done. What nobody has asked for at that moment, such as
//! messages of channels, comes by [`pushes`], and each commit to who follows by [`feeds`].
//!
//! Hashes, sets, sorted sets and lists are *containers*: the key holds a header, and elements stand in an ordered table
//! of their own ([`elements`]). What is left of dropped ones a thread deletes ([`sweep`]).
//!
//! A server may follow another one, and be followed ([`replication`]).
//!
//! So a hundred connections that each wait for the disk share one sync, and a counter that is hot is written once a turn.

#![expect(clippy::disallowed_methods, reason = "a server: sockets, threads and timers are the machine's own")]

mod acl;
mod clients;
mod commands;
mod config;
mod elements;
mod feeds;
mod glob;
mod held;
mod jobs;
mod key_counts;
mod loops;
mod moment;
mod observe;
pub mod parsers;
mod pushes;
mod replication;
mod resp;
mod shared;
mod stripe;
mod sweep;
mod syncs;
mod tls;
mod turn;
mod value;

pub use config::{Config, Teller, Watchers};
pub use loops::{Server, Stopper};
pub use replication::{Source, SourceTls};
pub use tls::{Certificates, TlsFiles};
