//! The native half of the Java package `dev.forebay`, whose other half is in `java/core`: its class `Native` declares what
//! stands here.
//!
//! 1. A thing of the engine's has a number in Java ([`handles`]). A call looks the number up, and has a part in the thing
//!    until it returns: so a close, by another thread or by Java's collector, frees nothing under it. A number that is
//!    no more there, or was never, is an exception.
//! 2. All else that crosses are numbers and arrays of bytes, which the JVM copies ([`glue`]): no memory is shared, so
//!    nothing that Java does to its own changes what is read here. Many keys, values, texts or writes go as
//!    [`items`] in one array: one crossing for all of them. (Java fills and reads direct buffers as fast as arrays, and they
//!    would save one copy, some ten nanoseconds for a record of a hundred bytes. But a short one costs sixty times an array
//!    to make; and its memory may change while it is read here, which no safe code can take.)
//! 3. Record batches are structures of Arrow's C interface at an address, or bytes of Arrow's IPC format ([`stream`]): the
//!    addresses, and that buffers are as long as the structures say, are all that a caller has to vouch for, and three
//!    calls take such.
//! 4. Errors and panics become exceptions of `dev.forebay.ForebayException` ([`failure`]).
//!
//! It stands on the engine's Rust interface, not on the library for C, whose handles are pointers that its callers
//! vouch for; and on the crate `jni`, which checks signatures when it is compiled. So nothing is unsafe but those three
//! calls ([`kernel`]).
//!
//! **Invariant:** whatever Java passes, in whatever order and from whichever thread, ends with an answer or an exception,
//! but for an address of what is no such structure.

mod aggregator;
mod batch;
mod changes;
mod copies;
mod cursor;
mod database;
mod failure;
mod glue;
mod handles;
mod items;
mod kernel;
mod options;
mod pool;
mod scan;
mod snapshot;
mod stats;
mod stream;
mod table;
mod transaction;
mod values;
