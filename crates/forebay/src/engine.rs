//! The engine: the parts of an open database, each above those that it is made of.

use std::fmt;
use std::sync::Arc;

use forebay_env::sync::RwLock;

use crate::background::Background;
use crate::context::Context;
#[cfg(feature = "async")]
use crate::deferred::Deferred;
use crate::history::History;
use crate::memory::MemoryShares;
use crate::relayout::Relayout;
use crate::space::Space;
use crate::versions::Versions;
use crate::write::Writer;

pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) space: Arc<Space>,
    pub(crate) memory: Arc<MemoryShares>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) background: Arc<Background>,
    pub(crate) history: History,
    pub(crate) relayout: Relayout,
    #[cfg(feature = "async")]
    pub(crate) deferred: Arc<Deferred>,
    /// Held for reading by writes and drops that follow what a declaration's table says, and for writing by what changes
    /// that.
    pub(crate) declared: RwLock<()>,
    /// How many parts hold the versions. What holds them besides reads.
    holders: usize,
}

impl Engine {
    pub(crate) fn new(versions: Versions) -> Self {
        let versions = Arc::new(versions);
        let space = Arc::new(Space::new(&versions));
        let memory = Arc::new(MemoryShares::new(&versions));
        let writer = Arc::new(Writer::new(&versions, &space, &memory));
        let background = Arc::new(Background::new(&versions, &space, &memory, &writer));
        let history = History::new(&versions, &memory, &writer, &background);
        let relayout = Relayout::new(&versions, &space, &memory, &writer, &background);
        Self {
            context: Arc::clone(&versions.context),
            #[cfg(feature = "async")]
            deferred: Arc::new(Deferred::new(&versions.context)),
            holders: Arc::strong_count(&versions),
            versions,
            space,
            memory,
            writer,
            background,
            history,
            relayout,
            declared: RwLock::new(()),
        }
    }

    /// Whether tables, snapshots, cursors or feeds of changes are held besides the database itself. To be asked once
    /// all machines have ended.
    pub(crate) fn has_readers(self: &Arc<Self>) -> bool {
        debug_assert!(
            Arc::strong_count(&self.versions) >= self.holders,
            "each part holds the versions as long as there is an engine"
        );
        Arc::strong_count(self) > 1 || Arc::strong_count(&self.versions) > self.holders
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.context.dir.display())
    }
}
