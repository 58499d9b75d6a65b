//! A machine under the stepper, and when it is to be stepped.

use std::time::Duration;

use super::Machine;
use super::strand::Strand;

/// A machine, and what becomes of it.
pub(super) struct Slot {
    pub(super) id: u64,
    pub(super) name: String,
    /// Out while it is being stepped.
    pub(super) machine: Option<Box<dyn Machine>>,
    /// A step of it that has paused.
    pub(super) paused: Option<Strand>,
    /// Whether it may wait in a step.
    pub(super) may_wait: bool,
    /// The epoch in which its step began: what changed since may not have been seen.
    pub(super) began: u64,
    pub(super) rest: Rest,
    /// How many turns it has had.
    pub(super) turns: u64,
}

/// What has its turn.
pub(super) enum Turn {
    Begins(Box<dyn Machine>),
    GoesOn(Strand),
}

/// Why a machine is not to be stepped now.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    None,
    /// Until the epoch is no longer this, or the clock reaches the deadline.
    While {
        seen: u64,
        deadline: Option<Duration>,
    },
    /// Until others have had a turn that came to something.
    Blocked {
        turns: u64,
    },
}

impl Slot {
    pub(super) fn runnable(&self, epoch: u64, now: Duration, turned: u64) -> bool {
        let rested = match self.rest {
            Rest::None => true,
            Rest::Blocked { turns } => turns != turned,
            Rest::While { seen, deadline } => {
                seen != epoch || deadline.is_some_and(|deadline| deadline <= now)
            }
        };
        rested && (self.machine.is_some() || self.paused.is_some())
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.rest {
            Rest::None | Rest::Blocked { .. } => None,
            Rest::While { deadline, .. } => deadline,
        }
    }
}
