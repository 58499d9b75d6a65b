//! A range of keys as `--from`, `--to` and `--prefix` give it.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;

use crate::failure::Failure;
use crate::keys::Notation;

/// Which keys
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// The first key
    #[arg(long, value_name = "KEY", conflicts_with = "prefix", allow_negative_numbers = true)]
    from: Option<OsString>,
    /// The key to stop before
    #[arg(long, value_name = "KEY", conflicts_with = "prefix", allow_negative_numbers = true)]
    to: Option<OsString>,
    /// Only keys that begin like this
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    prefix: Option<OsString>,
}

/// What [`RangeArgs`] ask for.
pub(crate) enum KeyRange {
    All,
    Between(Option<Vec<u8>>, Option<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl KeyRange {
    /// The same of other keys.
    pub(crate) fn map(
        self,
        mut key: impl FnMut(Vec<u8>) -> Result<Vec<u8>, Failure>,
    ) -> Result<Self, Failure> {
        Ok(match self {
            Self::All => Self::All,
            Self::Prefix(prefix) => Self::Prefix(key(prefix)?),
            Self::Between(from, to) => {
                Self::Between(from.map(&mut key).transpose()?, to.map(&mut key).transpose()?)
            }
        })
    }
}

impl RangeArgs {
    pub(crate) fn parse(&self, notation: Notation) -> Result<KeyRange, Failure> {
        let key = |text: &Option<OsString>| {
            let bytes = text.as_ref().map(|text| notation.parse(text.as_encoded_bytes()));
            bytes.transpose().map(|key| key.map(|key| key.into_owned())).map_err(Failure::Usage)
        };
        Ok(match (key(&self.prefix)?, key(&self.from)?, key(&self.to)?) {
            (Some(prefix), ..) => KeyRange::Prefix(prefix),
            (None, None, None) => KeyRange::All,
            (None, from, to) => KeyRange::Between(from, to),
        })
    }
}

/// The bounds from one key up to another.
pub(crate) fn bounds<'a>(
    from: &'a Option<Vec<u8>>,
    to: &'a Option<Vec<u8>>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (
        from.as_deref().map_or(Bound::Unbounded, Bound::Included),
        to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
    )
}
