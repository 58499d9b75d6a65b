//! To look at what a server does: [`slow`], what took long; [`hot`], the keys that are named most; [`numbers`], all counters and gauges, for Prometheus and as JSON;
//! [`http`], a port of its own that shows them, and a page.
//!
//! **Invariant:** nothing here changes what anybody is answered, and nothing is counted on the way of a request but by plain
//! atomics.

mod hot;
pub(crate) mod http;
mod numbers;
mod slow;

pub(crate) use hot::{HotKeys, Sampler};
pub(crate) use numbers::{Shown, server};
pub(crate) use slow::{Request, SlowLog, shown};
