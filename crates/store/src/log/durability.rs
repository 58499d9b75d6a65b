//! The three durabilities.

use std::str::FromStr;

use forebay_base::{Error, Result};

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Durability {
    /// Nothing until the next background sync: the write is only in this process's memory.
    Memory,
    /// A crash of the process. A background sync bounds what a power loss can take.
    #[default]
    Os,
    /// A power loss.
    Disk,
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "memory" => Ok(Self::Memory),
            "os" => Ok(Self::Os),
            "disk" => Ok(Self::Disk),
            _ => Err(Error::invalid(format!("durability `{text}` is unknown; use memory, os or disk"))),
        }
    }
}
