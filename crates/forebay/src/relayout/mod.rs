//! Tables that get another shape: layouts and orders are changed in use, and records come in sorted.

mod ingest;
mod reorder;
mod set_layout;

pub(crate) use reorder::Following;
