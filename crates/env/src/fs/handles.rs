//! Which files of a [`BoundedFs`](super::BoundedFs) are open, and which is closed next: of those that can be closed,
//! one that was not read since the others' turn came (second chance: about the one that was not read for the longest
//! time).

use std::collections::VecDeque;

use forebay_base::{Error, Result};

use super::{Access, File};
use crate::process::OfProcess;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Weak};

/// A file that can be closed and opened again.
pub(super) trait Closable: Send + Sync {
    /// Whether it was read since this was asked last.
    fn is_recent(&self) -> bool;
    fn is_open(&self) -> bool;
    /// Closes it, once nobody reads from it any more.
    fn close(&self);
}

/// The open files of one file system.
pub(super) struct Handles {
    max: usize,
    /// What the process may have, where that is known.
    process_max: Option<usize>,
    /// Descriptors.
    open: AtomicUsize,
    /// What can be closed, in the order of its turn. Some may be closed or gone by now.
    closable: Mutex<VecDeque<Weak<dyn Closable>>>,
}

/// An open file, which is counted.
pub(super) struct Opened {
    file: Arc<dyn File>,
    /// Given back after the file is closed: fields are dropped in their order.
    _place: Place,
}

/// Some of the descriptors that there may be.
struct Place {
    handles: Arc<Handles>,
    descriptors: usize,
}

/// Those of all databases of the process that are in the machine's files: they have one limit.
static OF_PROCESS: OfProcess<Mutex<Vec<Weak<Handles>>>> = OfProcess::new();

impl Opened {
    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let open = self.handles.open.fetch_sub(self.descriptors, Ordering::Relaxed);
        debug_assert!(open >= self.descriptors, "what is closed was counted as open");
    }
}

/// A file that is read around the page cache has a handle for each way.
fn descriptors(access: Access) -> usize {
    match access {
        Access::Direct => 2,
        Access::Buffered | Access::Random | Access::Foreign => 1,
    }
}

impl Handles {
    pub(super) fn new(max: usize, process_max: Option<usize>) -> Arc<Self> {
        let (open, closable) = (AtomicUsize::new(0), Mutex::default());
        let handles = Arc::new(Self { max, process_max, open, closable });
        if process_max.is_some() {
            let mut all = OF_PROCESS.get().lock();
            all.retain(|handles| handles.strong_count() > 0);
            all.push(Arc::downgrade(&handles));
        }
        handles
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Opens a file in a place that is free, or made free.
    pub(super) fn open_by(
        self: &Arc<Self>,
        access: Access,
        open: impl Fn() -> Result<Arc<dyn File>>,
    ) -> Result<Arc<Opened>> {
        let place = Place { handles: Arc::clone(self), descriptors: descriptors(access) };
        self.open.fetch_add(place.descriptors, Ordering::Relaxed);
        self.close_down_to(self.max);
        let file = self.retrying(open)?;
        Ok(Arc::new(Opened { file, _place: place }))
    }

    /// Notes an open file that can be closed.
    pub(super) fn add(&self, file: Weak<dyn Closable>) {
        let mut closable = self.closable.lock();
        closable.push_back(file);
        // Most are gone where files come and go and never meet the bound.
        if closable.len() > 2 * self.open().max(self.max) {
            closable.retain(|file| file.upgrade().is_some_and(|file| file.is_open()));
        }
    }

    /// Closes files until there are no more than this many, or none that can be closed is left.
    fn close_down_to(&self, max: usize) {
        let mut spared = 0;
        while self.open() > max {
            let mut closable = self.closable.lock();
            let Some(next) = closable.pop_front() else { return };
            let Some(file) = next.upgrade() else { continue };
            // Each is spared once at most, whoever reads meanwhile.
            if spared <= closable.len() && file.is_recent() {
                spared += 1;
                closable.push_back(next);
                continue;
            }
            drop(closable);
            file.close();
        }
    }

    /// Does what takes a descriptor. Where the process has none left, the files of this and of other databases are
    /// closed that can be, and it is tried once more.
    pub(super) fn retrying<T>(&self, act: impl Fn() -> Result<T>) -> Result<T> {
        let outcome = act();
        if !outcome.as_ref().is_err_and(Error::is_too_many_files) {
            return outcome;
        }
        self.close_down_to(0);
        if self.process_max.is_some() {
            let others: Vec<_> = OF_PROCESS.get().lock().iter().filter_map(Weak::upgrade).collect();
            others.iter().for_each(|handles| handles.close_down_to(0));
        }
        act().map_err(|error| self.explained(error))
    }

    /// The error says which limits there are.
    fn explained(&self, error: Error) -> Error {
        match error {
            Error::TooManyFiles { operation, path, reason } => {
                let process = self
                    .process_max
                    .map_or(String::new(), |max| format!("; the process may have {max} open"));
                let reason =
                    format!("{reason}{process}, this database keeps up to {} (open_files_max)", self.max);
                Error::TooManyFiles { operation, path, reason }
            }
            other => other,
        }
    }
}
