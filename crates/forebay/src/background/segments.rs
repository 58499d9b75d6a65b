//! The next log segment, while the active one is filled. A writer who does not find it makes it, and waits as long as a
//! sync of the directory takes: so nothing else is done here, and no sync of the log is waited for.

use std::sync::Arc;
use std::time::Duration;

use forebay_env::{Machine, Step};

use crate::background::{Background, RETRY_AFTER};

pub(super) struct SegmentMaker {
    background: Arc<Background>,
    has_failed: bool,
    /// Until then it rests after a failure, whoever wakes it.
    next_try: Duration,
}

impl SegmentMaker {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background, has_failed: false, next_try: Duration::ZERO }
    }

    /// Whether nobody writes yet, in a pool: of very many databases most never need another segment.
    fn is_early(&self) -> bool {
        self.background.context.limit.seat().is_some()
            && self.background.versions.look(|state| state.active.is_empty())
    }

    /// Whether it leaves what space there is to a flush, which alone makes more, until that is over.
    fn gives_way(&self) -> bool {
        let is_short = self.has_failed || self.background.context.health.any_trouble().is_some();
        is_short && !self.background.writer.has_room()
    }
}

impl Machine for SegmentMaker {
    fn step(&mut self) -> Step {
        let background = &self.background;
        if background.context.is_closing() || background.context.fatal().is_some() {
            return Step::Finished;
        }
        let now = background.context.env.clock.now();
        if now < self.next_try {
            return Step::Until(self.next_try);
        }
        if self.is_early() {
            return Step::Idle;
        }
        let is_ready = if self.gives_way() { Ok(false) } else { background.writer.prepare_segment() };
        match is_ready {
            Ok(true) => {
                self.has_failed = false;
                Step::Idle
            }
            Ok(false) => Step::Until(now + RETRY_AFTER),
            // Nobody waits for this: a writer who finds no segment makes it, and tells why that cannot be done.
            Err(error) => {
                background.make_space(&error);
                (self.has_failed, self.next_try) = (true, now + RETRY_AFTER);
                Step::Until(self.next_try)
            }
        }
    }

    fn yields(&self) -> bool {
        false
    }
}
