//! The public face, used as a user would.

mod smoke;
