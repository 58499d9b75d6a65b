//! What a key holds: one byte that says of which type it is, and then the value.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    String,
}

/// Of a text or a number.
const STRING: u8 = b's';

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
        }
    }

    /// Of what is stored; `None` where a newer server wrote it.
    pub(crate) fn of(stored: &[u8]) -> Option<Self> {
        match stored.first() {
            Some(&STRING) => Some(Self::String),
            _ => None,
        }
    }
}

/// Puts the mark of a text before it.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + text.len());
    stored.push(STRING);
    stored.extend_from_slice(text);
    stored
}
