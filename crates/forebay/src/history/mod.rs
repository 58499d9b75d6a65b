//! Moments that are kept: savepoints, the way back to one, and checkpoints, which are directories of their own.

mod checkpoint;
mod copy;
mod rollback;
mod savepoint;
mod target;

use std::sync::Arc;

use crate::background::Background;
use crate::context::Context;
use crate::memory::MemoryShares;
use crate::versions::Versions;
use crate::write::Writer;

pub use checkpoint::{Checkpoint, CheckpointFile};
pub(crate) use copy::{Part, PartKind, pour, refuse_inside};
pub use savepoint::SavepointStats;
pub(crate) use target::Target;

/// Keeps moments, and goes back to them.
pub(crate) struct History {
    context: Arc<Context>,
    versions: Arc<Versions>,
    memory: Arc<MemoryShares>,
    writer: Arc<Writer>,
    background: Arc<Background>,
}

impl History {
    pub(crate) fn new(
        versions: &Arc<Versions>,
        memory: &Arc<MemoryShares>,
        writer: &Arc<Writer>,
        background: &Arc<Background>,
    ) -> Self {
        Self {
            context: Arc::clone(&versions.context),
            versions: Arc::clone(versions),
            memory: Arc::clone(memory),
            writer: Arc::clone(writer),
            background: Arc::clone(background),
        }
    }
}
