//! Does subcompactions: parts of the compactor's job that can be done beside it, as long as there are any.

use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::JobWorker;

use crate::engine::Engine;

pub(super) struct Subcompactor {
    engine: Arc<Engine>,
    worker: Option<Box<dyn JobWorker>>,
}

impl Subcompactor {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, worker: None }
    }
}

impl Machine for Subcompactor {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        if self.worker.is_none() {
            self.worker = self.engine.worker.lock().take();
        }
        let Some(worker) = &mut self.worker else { return Step::Idle };
        // The compactor may have waited for this.
        if worker.step(STEP_BYTES) {
            self.engine.note_progress(STEP_BYTES as u64);
        } else {
            self.worker = None;
            self.engine.env.jobs.wake();
        }
        Step::Worked
    }
}
