//! The server, asked over sockets of this machine.

mod client;
mod commands;
mod model;
mod protocol;
