//! [`Opener`]: who in this process has opened a directory, and reads files of it still.
//!
//! What is held beyond a close reads on, while others open the directory anew. They may remove names of files, which
//! does not disturb who has them open, but must neither cut nor overwrite them.
//!
//! **Invariant:** an opener is known to all later ones of its directory until it is dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::FileSystem;
use crate::process::OfProcess;
use crate::sync::{Arc, Weak};

/// By file system and directory.
type Openers = BTreeMap<(usize, PathBuf), Vec<Weak<Opener>>>;

// Held for a moment only, and by whoever opens a database in this process, whatever steps them.
#[expect(
    clippy::disallowed_types,
    reason = "it is no one environment's, so that no scheduler of one may know it"
)]
static OPENERS: OfProcess<std::sync::Mutex<Openers>> = OfProcess::new();

/// One who has opened a directory. Whoever reads files of it keeps this.
#[derive(Debug)]
pub struct Opener {
    earlier: Vec<Weak<Opener>>,
}

impl Opener {
    /// Who opens `dir` now.
    pub fn new(fs: &dyn FileSystem, dir: &Path) -> Arc<Self> {
        let mut openers = OPENERS.get().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        openers.retain(|_, openers| {
            openers.retain(|opener| opener.strong_count() > 0);
            !openers.is_empty()
        });
        // However it is spelled. It is there by now; if not, nobody reads of it.
        let dir = fs.absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
        let known = openers.entry((fs.identity(), dir)).or_default();
        let opener = Arc::new(Self { earlier: known.clone() });
        known.push(Arc::downgrade(&opener));
        debug_assert_eq!(known.len(), opener.earlier.len() + 1, "later ones know this one");
        opener
    }

    /// Whether somebody who opened it earlier may still read its files.
    pub fn is_second(&self) -> bool {
        self.earlier.iter().any(|opener| opener.strong_count() > 0)
    }
}
