//! How answers are told.

/// Whether answers are for a person or for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}
