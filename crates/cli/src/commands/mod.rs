//! One file, or one folder, a command.

pub(crate) mod aggregate;
pub(crate) mod backup;
pub(crate) mod backups;
pub(crate) mod bench;
pub(crate) mod changes;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod destroy;
pub(crate) mod dump;
pub(crate) mod get;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod put;
pub(crate) mod rescue;
pub(crate) mod restore;
pub(crate) mod rollback;
pub(crate) mod savepoint;
pub(crate) mod savepoints;
pub(crate) mod scan;
pub(crate) mod simulate;
pub(crate) mod stats;
pub(crate) mod verify;
