//! A second hand at merges: does parts of the merger's job that can be done beside it, while there are such.

use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::Help;

use crate::engine::Engine;

pub(super) struct Helper {
    engine: Arc<Engine>,
    helping: Option<Box<dyn Help>>,
}

impl Helper {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, helping: None }
    }
}

impl Machine for Helper {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        if self.helping.is_none() {
            self.helping = self.engine.help.lock().take();
        }
        let Some(helping) = &mut self.helping else { return Step::Idle };
        // The merger may have waited for this.
        if helping.step(STEP_BYTES) {
            self.engine.progressed(STEP_BYTES as u64);
        } else {
            self.helping = None;
            self.engine.env.jobs.wake();
        }
        Step::Worked
    }
}
