//! Why background work does not get on: what its machines fail at, a rule that is missing, space that readers hold.

use forebay_base::Error;

use crate::context::{FLUSH, may_stop_work};
use crate::space::Space;

impl Space {
    /// Why background work does not get on, if so.
    pub(crate) fn trouble(&self) -> Option<Error> {
        let first = self.context.health.any_trouble();
        first.or_else(|| self.versions.lacks_rule()).or_else(|| self.refuses_flush())
    }

    /// Why one machine does not get on, if so.
    pub(crate) fn trouble_of(&self, machine: &str) -> Option<Error> {
        let waits = || self.versions.lacks_rule().or_else(|| self.refuses_flush());
        self.context.health.trouble_at(machine).or_else(|| if machine == FLUSH { waits() } else { None })
    }

    /// The same, unless it is another table's, or set aside, and work goes on.
    pub(crate) fn passing_trouble(&self, machine: &str) -> Option<Error> {
        self.trouble_of(machine).filter(may_stop_work)
    }
}
