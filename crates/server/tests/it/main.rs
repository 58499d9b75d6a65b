//! The server, asked over sockets of this machine.

#![expect(clippy::disallowed_methods, reason = "threads and sockets of this machine are what is tested")]

mod aggregates;
mod client;
mod commands;
mod engine;
mod failures;
mod limits;
mod model;
mod observe;
mod protocol;
