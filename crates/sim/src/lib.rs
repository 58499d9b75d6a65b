//! Whole-engine simulation: a database, its background work and its disk on one thread, from one seed.
//!
//! A seed expands to [`SimOptions`], which are printed. Then, for several rounds: open what is on the disk, hold it
//! against the model, do random operations, and lose power (or the process) at a random file operation, also while
//! opening. At the end the faults stop, and the engine must become idle within a bounded number of steps and give back
//! the space it does not need. Copies that were made on the way are opened and written, too, and go through the same
//! crashes.
//!
//! In some seeds steps of background work stop between two lines while others go on, also drawn from the seed.
//! Beside it [`threads`] does much of the same on real threads.
//!
//! What the README promises, and who asks whether it is kept:
//!
//! | promise | asked by |
//! | --- | --- |
//! | `Os` survives a crash of the process, `Disk` a power loss | `Harness::recovered`: at least what was acknowledged so |
//! | a background sync bounds what a power loss takes | `Harness::wait`: after 200 ms all is durable |
//! | a batch is all or nothing, over all tables | `Model::roll_back`, threads' `History::check` |
//! | opening after any crash needs no flag | `Run::start`: power and process, also while opening, one after the other |
//! | what was acknowledged is there, what was deleted is not | `Harness::check_all` after each opening; every read |
//! | damage is reported, a fault is no damage | `Run::is_over`; damage itself is in `crates/forebay/tests/it/damage.rs` |
//! | a failed sync stops all writing | `Harness::assert_stopped`, and of names `Run::assert_stopped_by_names` |
//! | a full disk is an error, and heals | `faults`, `Run::recover_from_faults` |
//! | `memory_limit` | not here: the campaign that holds it against the system's own count |
//! | writers are slowed, not stopped | the stepper panics where nothing would wake a writer |
//! | transactions are serialisable | `Harness::transact`, `Serial` of the threads that meet |
//! | what was committed can be followed | `Harness::check_changes`: batch by batch |
//! | snapshots and scans block nobody and do not change | `Op::ReadSnapshot`, also of before the last opening |
//! | a savepoint stays what it was; a rollback is whole | `Op::ReadSavepoint`, `Harness::other` |
//! | entries brought in are there whole, and newer than what was | `Op::Ingest`, `Harness::other` |
//! | entries expire, filters drop, and neither uncovers anything | `Shown`: what is doubtful is at least newest |
//! | a clock that is set back brings no entry back | `Harness::open_again`; within an opening, `Shown` |
//! | parts and pieces are all there is, once; counts are exact | `Query::Parts`, `Query::Pieces`, `Query::Count` |
//! | all groupings of a cube agree, windows have each value once | `Groups`: after each opening and beside savepoints |
//! | a checkpoint is a copy of its own | `Op::Fork`: both are written, crash and are opened again |
//! | a follower has each commit once | `Op::Checkpoint`, `Op::Fork`: a copy catches up by a stream, of the writer or of who reads beside it, that tells again what it has, over crashes of both, and is what the database is |
//! | a reader beside the writer sees what files tell, and none of them is removed under it | `Op::ReadBeside` |
//! | handles of a closed database change nothing | `Op::Stale` |
//! | another layout changes no answer and loses no write | `Op::Turn`, and threads |
//! | space is given back | `Run::check_space` |
//! | the log goes back no further than 8 write buffers, or three times what tables keep in memory | `Harness::wait`: counts its files once time has passed |
//!
//! **Invariant:** the same seed does the same, to the last byte on the disk; [`Outcome::trace`] tells. Each operation
//! follows from the seed and its number alone, so a failing history can be done again without some of them.

mod damage;
mod failure;
mod faults;
mod idle;
mod judged;
mod liberties;
mod options;
mod part;
#[cfg(planted)]
mod planted;
mod run;
pub mod threads;
mod trace;

#[cfg(test)]
mod tests;

pub use failure::{Failure, attempt, attempt_threads, keep_panics};
pub use options::SimOptions;
pub use part::Part;
#[cfg(planted)]
pub use planted::run_planted;
pub use run::{Outcome, run};
