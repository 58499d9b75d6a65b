//! Does subcompactions: parts of the compactor's job that can be done beside it, as long as there are any.

use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::JobWorker;

use crate::background::Background;

pub(super) struct Subcompactor {
    background: Arc<Background>,
    worker: Option<Box<dyn JobWorker>>,
}

impl Subcompactor {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background, worker: None }
    }
}

impl Machine for Subcompactor {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            return Step::Finished;
        }
        if self.worker.is_none() {
            self.worker = self.background.worker.lock().take();
        }
        let Some(worker) = &mut self.worker else { return Step::Idle };
        // The compactor may have waited for this.
        if worker.step(STEP_BYTES) {
            self.background.note_progress(STEP_BYTES as u64);
        } else {
            self.worker = None;
            self.background.context.env.jobs.wake();
        }
        Step::Worked
    }
}
