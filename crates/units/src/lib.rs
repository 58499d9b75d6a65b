//! Sizes, counts and times as a person writes them and reads them.

pub mod amounts;
pub mod sizes;
pub mod times;
