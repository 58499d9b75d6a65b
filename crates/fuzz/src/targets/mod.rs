//! A file for each fuzzer.

pub(crate) mod aggregators;
pub(crate) mod buffer_tree;
pub(crate) mod canary;
pub(crate) mod change_stream;
pub(crate) mod cow_tree;
pub(crate) mod filters;
pub(crate) mod list_file;
pub(crate) mod log_segment;
pub(crate) mod manifest;
pub(crate) mod merge;
pub(crate) mod partial_states;
pub(crate) mod server_requests;
pub(crate) mod server_users;
pub(crate) mod states;
pub(crate) mod table_versions;
pub(crate) mod tree_file;
pub(crate) mod wire;
pub(crate) mod write_buffer;
