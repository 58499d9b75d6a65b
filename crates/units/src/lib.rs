//! Sizes and counts as a person writes them and reads them.

pub mod amounts;
pub mod sizes;
