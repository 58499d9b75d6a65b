//! The public face, used as a user would.

mod faults;
mod reads;
mod smoke;
mod suite;
