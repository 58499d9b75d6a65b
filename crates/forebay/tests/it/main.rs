//! The public face, used as a user would.

mod damage;
mod faults;
mod order;
mod reads;
mod smoke;
mod suite;
mod threads;
