//! A file that others keep, or not: for whoever looks at files without holding them.

use std::sync::{Arc, Weak};

use forebay_cow_tree::{WeakTree, WeakVersion};
use forebay_store::ListFile;
use forebay_store::list::Allowance;

use super::DataFile;

/// See the module.
#[derive(Clone)]
pub enum WeakFile {
    /// A list.
    List(Weak<ListFile>),
    /// A tree in whatever version.
    Tree(WeakTree),
    /// A tree in one version.
    Version(WeakVersion),
}

impl WeakFile {
    /// A file, of a tree in this version alone.
    pub fn of_version(file: &DataFile) -> Self {
        match file {
            DataFile::List(list) => Self::List(Arc::downgrade(list)),
            DataFile::Tree(tree) => Self::Version(tree.downgrade_version()),
        }
    }

    /// Whether anybody keeps it.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::List(list) => list.strong_count() > 0,
            Self::Tree(tree) => tree.is_kept(),
            Self::Version(version) => version.is_kept(),
        }
    }

    /// The list, if it is one and kept.
    pub fn list(&self) -> Option<Arc<ListFile>> {
        match self {
            Self::List(list) => list.upgrade(),
            Self::Tree(_) | Self::Version(_) => None,
        }
    }

    /// As [`DataFile::thin_filter`](super::DataFile::thin_filter).
    pub fn thin_filter(&self, allowed: Allowance) {
        match self {
            Self::List(list) => _ = list.upgrade().inspect(|list| list.thin_filter(allowed)),
            Self::Tree(tree) => tree.thin_filter(allowed),
            Self::Version(_) => {}
        }
    }
}
