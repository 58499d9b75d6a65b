//! What writers look at before they append changes while none of them appends, and they look again.

use forebay_env::sync::atomic::Ordering;

use super::{Inner, Log};

impl Log {
    /// How often [`switch`](Self::switch) was called. Read it before what `switch` changes.
    #[inline]
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    /// Changes what writers look at before they append: those that have looked and not appended yet look again.
    pub fn switch(&self, change: impl FnOnce()) {
        self.switch_with(|_nobody_appends| change());
    }

    /// The same, and numbers go on behind this one. No buffer has a record, and all that was numbered before is durable.
    pub fn switch_behind(&self, sequence: u64, change: impl FnOnce()) {
        self.switch_with(|inner| {
            change();
            let Inner { last_sequence, written_sequence, durable_sequence, .. } = inner;
            (*last_sequence, *written_sequence, *durable_sequence) = (sequence, sequence, sequence);
        });
    }

    fn switch_with(&self, change: impl FnOnce(&mut Inner)) {
        change(&mut self.inner.lock());
        self.turns.fetch_add(1, Ordering::Release);
    }
}
