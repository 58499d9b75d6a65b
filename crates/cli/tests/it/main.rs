//! The command as its users meet it: a process, its arguments, its output and its exit code.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes and damages files from outside, kills processes, and fails where it stands"
)]

mod advise;
mod aggregate;
mod backups;
mod bench;
mod beside;
mod care;
mod changes;
mod encryption;
mod follow;
mod killed;
mod layouts;
mod leavings;
mod load;
mod lost_files;
mod records;
mod refusals;
mod savepoints;
mod simulate;
mod tool;
mod top;
