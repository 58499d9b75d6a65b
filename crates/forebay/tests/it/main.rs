//! The public face, used as a user would.

mod reads;
mod smoke;
mod suite;
