//! Time to live: what of a stored value is the user's, and whether its time is over. Readers ask here, at the one place
//! where each makes an entry of a record.

use std::time::Duration;

use forebay_base::{expiry, planted};
use forebay_layouts::milliseconds_of;

use crate::context::Context;
use crate::versions::{TableState, View};

/// How a view sees the values of a table: at some moment, where they expire.
#[derive(Clone, Copy)]
pub(crate) struct Ttl {
    now: Option<u64>,
}

impl Ttl {
    /// How a view sees a table's values. The time is read after the view was taken: what a merge dropped before that
    /// has expired by now.
    pub(crate) fn of(context: &Context, view: &View, table: &TableState) -> Self {
        let now = || view.moment.unwrap_or_else(|| context.env.clock.unix_milliseconds());
        Self { now: table.options.time_to_live.map(|_| now()) }
    }

    /// A value as the user gave it, unless its time is over.
    pub(crate) fn unless_expired(self, stored: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut value = stored.filter(|stored| !self.is_expired(stored))?;
        value.truncate(self.user_value(&value).len());
        Some(value)
    }

    /// Whether values expire at all.
    #[inline]
    pub(crate) fn expires(self) -> bool {
        self.now.is_some()
    }

    /// Whether the time of a stored value is over.
    #[inline]
    pub(crate) fn is_expired(self, stored: &[u8]) -> bool {
        self.now.is_some_and(|now| expiry::split(stored).1 <= now) && !planted::is("expired-still-seen")
    }

    /// What the user gave of a stored value.
    #[inline]
    pub(crate) fn user_value(self, stored: &[u8]) -> &[u8] {
        match self.now {
            Some(_) => expiry::split(stored).0,
            None => stored,
        }
    }
}

/// When what is put now expires.
pub(crate) fn expiry_of(context: &Context, ttl: Duration) -> u64 {
    expiry::after(context.env.clock.unix_milliseconds(), milliseconds_of(ttl))
}
