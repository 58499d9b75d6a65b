//! Workloads as data, and one driver that runs them against any engine behind [`Engine`].

pub mod engine;

pub use engine::{Batch, Durability, Engine, Failure, Kind, Setup};
