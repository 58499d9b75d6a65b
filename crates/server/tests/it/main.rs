//! The server, asked over sockets of this machine.

#![expect(clippy::disallowed_methods, reason = "threads and sockets of this machine are what is tested")]

mod acl;
mod aggregates;
mod agreement;
mod blocking;
mod client;
mod commands;
mod container_model;
mod container_steps;
mod containers;
mod crashes;
mod digests;
mod engine;
mod events;
mod failures;
mod feeds;
mod follow;
mod jobs;
mod large_containers;
mod limits;
mod model;
mod observe;
mod operators;
mod protocol;
mod pubsub;
mod redis_rs;
mod sketches;
mod tls;
mod unix;
mod walks;
