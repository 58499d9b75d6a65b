//! The next log segment, while the active one is filled. A writer who does not find it makes it, and waits as long as a
//! sync of the directory takes: so nothing else is done here, and no sync of the log is waited for.

use std::sync::Arc;

use forebay_env::{Machine, Step};

use crate::background::Background;

pub(super) struct SegmentMaker {
    background: Arc<Background>,
}

impl SegmentMaker {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background }
    }
}

impl Machine for SegmentMaker {
    fn step(&mut self) -> Step {
        let background = &self.background;
        if background.context.is_closing() || background.context.fatal().is_some() {
            return Step::Finished;
        }
        match background.writer.prepare_segment() {
            Ok(()) => {
                background.note_recovery((super::PREPARE, 0));
                Step::Idle
            }
            Err(error) => {
                if error.is_no_space() {
                    background.empty_trash();
                }
                background.note_failure((super::PREPARE, 0), error)
            }
        }
    }

    fn yields(&self) -> bool {
        false
    }
}
