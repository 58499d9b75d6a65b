//! Replication over the port of the server: what a follower takes in ([`following`], over a [`link`]), and those who follow
//! this server ([`followers`]).

mod followers;
mod following;
mod link;

pub(crate) use followers::{Followers, Given, Handed, NAME as FB_REPLICATE, Place};
pub(crate) use following::{Following, spawn};
pub use link::{Source, SourceTls};
