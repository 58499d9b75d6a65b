//! What writers look at before they append changes while none of them appends, and they look again.

use forebay_env::sync::atomic::Ordering;

use super::{Inner, Log};

impl Log {
    /// Changes what writers look at before they append: those that have looked and not appended yet look again.
    pub fn change_epoch(&self, change: impl FnOnce()) {
        self.change_epoch_with(|_nobody_appends| change());
    }

    /// The same, and numbers go on behind this one. No buffer has a record, and all that was numbered before is
    /// durable.
    pub fn change_epoch_behind(&self, sequence: u64, change: impl FnOnce()) {
        self.change_epoch_with(|inner| {
            change();
            debug_assert!(inner.records == 0 && inner.last_sequence <= sequence, "numbers go on");
            let Inner { last_sequence, written_sequence, durable_sequence, .. } = inner;
            (*last_sequence, *written_sequence, *durable_sequence) = (sequence, sequence, sequence);
        });
    }

    fn change_epoch_with(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        change(&mut inner);
        // Before anybody appends: who looked before the change would not look again.
        self.epoch.fetch_add(1, Ordering::Release);
    }
}
