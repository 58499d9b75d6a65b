//! Groups that a handle has opened: they may be dropped, and made or brought back by others, while it is there.

use forebay::Table;
use forebay_env::sync::{Arc, RwLock};

/// The groups, once there are some.
pub struct Opened<G>(RwLock<Option<Begun<G>>>);

struct Begun<G> {
    groups: Arc<G>,
    /// The table that told what they are. It is gone with them, and where a rollback gives the name to those of before.
    told: Table,
}

impl<G> Begun<G> {
    fn is_there(&self) -> bool {
        self.told.layout().is_ok()
    }
}

impl<G> Opened<G> {
    /// Those of a name, or none yet, and the table that told what they are.
    pub fn new(groups: Option<(G, Table)>) -> Self {
        Self(RwLock::new(groups.map(|(groups, told)| Begun { groups: Arc::new(groups), told })))
    }

    /// Those that were opened, if they are there.
    pub fn known(&self) -> Option<Arc<G>> {
        self.0.read().as_ref().filter(|begun| begun.is_there()).map(|begun| Arc::clone(&begun.groups))
    }

    /// Those that were opened last. Where they were dropped, what they are asked says so.
    pub fn last(&self) -> Option<Arc<G>> {
        self.0.read().as_ref().map(|begun| Arc::clone(&begun.groups))
    }

    /// Those that are there, or that `make` makes; where they were dropped, and none came after them, the last ones. `told`
    /// gives the table that tells what those of the name are, and `gone` the error where there is none behind `make`.
    pub fn begin<E>(
        &self,
        told: impl Fn() -> Result<Option<Table>, E>,
        make: impl FnOnce() -> Result<G, E>,
        gone: impl FnOnce() -> E,
    ) -> Result<Arc<G>, E> {
        if let Some(groups) = self.known() {
            return Ok(groups);
        }
        let mut begun = self.0.write();
        if let Some(begun) = &*begun
            && (begun.is_there() || told()?.is_none())
        {
            return Ok(Arc::clone(&begun.groups));
        }
        let groups = Arc::new(make()?);
        let told = told()?.ok_or_else(gone)?;
        *begun = Some(Begun { groups: Arc::clone(&groups), told });
        Ok(groups)
    }
}
