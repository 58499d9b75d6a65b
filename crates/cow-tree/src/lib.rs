//! Jungle's copy-on-write B+-tree: one append-only file that takes sorted batches of records.
//!
//! A batch is applied by appending: values too long to be copied with their keys, the nodes that change,
//! and a root at the very end. What was there before stays as it is, so every older root can be read on. How
//! many bytes the newest root still reaches is known without reading; when it is little of the file, the tree
//! is built anew in a file of its own. The bytes are in `docs/format/cow_tree.md`.
//!
//! | | |
//! | --- | --- |
//! | [`TreeStore`], [`TreeOptions`] | where trees are made and found, and how |
//! | [`Version`] | one root of one file, in 20 bytes: what a manifest keeps |
//! | [`Tree`] | a version, opened when it is needed: lookups, counters, a filter, [parts of it](Tree::portion), [checking](Tree::verify). Cheap to clone, never changes |
//! | [`TreeCursor`], [`Reading`] | walks a range both ways |
//! | [`TreeWriter`] | applies a batch ([`append`](TreeWriter::append)) or writes a new file ([`build`](TreeWriter::build)) of records that are pushed |
//! | [`last_root`] | the last whole root of a file, where no version tells it |
//! | [`Shape::append`] | what a batch will write, without data |
//!
//! A tree with the newest version `v`, from birth to rebuilding:
//!
//! ```text
//! let tree = Tree::open(&store, v)?;
//! let mut writer = TreeWriter::append(&tree, rule, depth, cause)?;
//! batch.try_for_each(|(prefix, record)| writer.push(prefix, &record))?;
//! let next = writer.finish()?;
//! // next.version() goes to the manifest, or next.discard()s. `tree` can still be read.
//! if next.live_bytes() * 3 < next.total_bytes() {
//!     let all = TreeCursor::new(&next, &Range::all(), Direction::Forward, Reading::Job { .. })?;
//!     let mut writer = TreeWriter::build(&store, rule, depth, cause)?;
//!     ..
//!     tree.retire(); // once the manifest names the new one alone
//! }
//! ```
//!
//! **Invariant:** bytes below a version's length never change. What lies behind the newest version of an open
//! file belongs to its one writer.
//!
//! **Invariant:** a version's digest vouches for every byte that it reaches: each reference holds the checksum
//! of what it refers to.
//!
//! **Invariant:** a value file that some version has named is needed as long as the tree's file is there.
//!
//! **Invariant:** what the store's `disk` counts is how long the files are, those that are being written included. Only
//! what a crash leaves behind a version is counted nowhere until the next append cuts it off.
//!
//! **Invariant:** no bytes in a file make anything here panic, loop, or take more memory than the file is long.

mod ahead;
mod cache;
mod cost;
mod cursor;
mod extent;
mod file;
mod filter;
mod growth;
mod node;
mod old_node;
mod packed;
mod packer;
mod portion;
mod recover;
mod root;
mod store;
mod tail;
mod tree;
mod values;
mod verify;
mod windows;
mod writer;

pub use cache::NodeCache;
pub use cost::{Appended, Shape};
pub use cursor::TreeCursor;
pub use file::OpenFiles;
pub use recover::last_root;
pub use root::Version;
pub use store::{TreeOptions, TreeStore};
pub use tree::{Tree, WeakTree, WeakVersion};
pub use verify::Census;
pub use windows::Reading;
pub use writer::TreeWriter;
