//! The protocol: requests as they come, and replies in either of its versions.

mod reply;
mod request;

pub(crate) use reply::Reply;
pub(crate) use request::{Limits, Requests, Spans, Wrong, encoded};
