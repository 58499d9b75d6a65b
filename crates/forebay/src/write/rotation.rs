//! Sealing the active buffer, and the next one: where it comes from, and how writers wait for it when all are full.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::sync::MutexGuard;
use forebay_env::yield_point;
use forebay_store::log::{PrepareError, PreparedSegment, SegmentFile};

use crate::context::{Context, FLUSH};
use crate::write::Writer;

/// What becomes of who wants to seal a buffer where all are full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenFull {
    Waits,
    /// A machine, which must not wait.
    GoesBack,
}

impl Writer {
    /// Seals the active buffer, if it still is `segment`, and takes the next.
    pub(crate) fn rotate(&self, segment: u64, bytes_min: usize) -> Result<()> {
        // Before anything is waited for.
        self.context.log()?;
        let one_at_a_time = self.rotating.lock();
        self.rotate_alone(one_at_a_time, segment, bytes_min, WhenFull::Waits)
    }

    /// The same for a machine, which must not wait: does nothing where somebody else seals a buffer, or where all are
    /// full. Whoever holds that lock may wait for background work.
    pub(crate) fn try_rotate(&self, segment: u64) -> Result<()> {
        match self.rotating.try_lock() {
            Some(one_at_a_time) if self.has_room() => {
                self.rotate_alone(one_at_a_time, segment, 0, WhenFull::GoesBack)
            }
            _ => Ok(()),
        }
    }

    fn rotate_alone(
        &self,
        one_at_a_time: MutexGuard<'_, ()>,
        segment: u64,
        bytes_min: usize,
        when_full: WhenFull,
    ) -> Result<()> {
        let log = self.context.log()?;
        if log.active_segment() != segment {
            return Ok(());
        }
        if self.context.is_closing() {
            return Err(Error::closed());
        }
        self.memory.end_idle();
        self.memory.take_back();
        // In a pool: for what is written now, and for what comes.
        self.memory.report();
        // After that: there may be fewer buffers by now.
        match when_full {
            WhenFull::GoesBack if !self.has_room() => return Ok(()),
            _ => self.make_room()?,
        }
        debug_assert!(self.has_room(), "nobody else seals a buffer, so there is room once it was seen");
        let ready = self.next_segment.lock().take();
        let file = ready.map_or_else(|| self.new_segment(bytes_min), Ok)?;
        let id = file.id();
        debug_assert!(id > segment, "segment {id} follows {segment}");
        let next = PreparedSegment::new(file, &self.context.pool, bytes_min)
            .inspect_err(|_| self.versions.retire_segment(id))?;
        debug_assert!(next.buffer().is_empty(), "segment {id} begins empty");
        debug_assert!(
            next.buffer().capacity() >= bytes_min,
            "what did not fit before fits into segment {id}"
        );
        yield_point("segment is ready");
        log.rotate(segment, next, |fresh| {
            self.versions.update_state(|state| {
                let sealed = std::mem::replace(&mut state.active, Arc::clone(fresh));
                debug_assert_eq!(sealed.segment(), segment, "what is full is sealed");
                state.sealed.insert(0, sealed);
            });
        })
        .inspect_err(|_| self.versions.retire_segment(id))?;
        drop(one_at_a_time);
        self.context.env.jobs.wake();
        Ok(())
    }

    /// The file of another segment, as long as a buffer is, or as `bytes_min`.
    fn new_segment(&self, bytes_min: usize) -> Result<SegmentFile> {
        let (id, spare) = (self.versions.lists.new_id(), self.versions.take_spare_segment());
        let Context { env, dir, pool, .. } = &*self.context;
        let bytes = pool.arena_bytes().max(bytes_min) as u64;
        let prepared = SegmentFile::prepare(&*env.fs, dir, id, bytes, spare);
        prepared.map_err(|error| match error {
            PrepareError::Refused(error, spare) => {
                if let Some(spare) = spare {
                    self.versions.retire_segment(spare);
                }
                error
            }
            PrepareError::Unknown(error) => {
                self.context.poison(&error);
                error
            }
        })
    }

    pub(crate) fn has_room(&self) -> bool {
        self.versions.state().sealed.len() + 1 < self.context.buffers().count
    }

    /// Gets the next segment's file ready while the active one is being filled: a writer who finds it need not wait
    /// for a file and for its name to be durable. `false` where somebody is just about to take it.
    pub(crate) fn prepare_segment(&self) -> Result<bool> {
        // The holder of the lock may wait for background work, so background work must not wait for the lock.
        let Some(_one_at_a_time) = self.rotating.try_lock() else { return Ok(false) };
        if self.next_segment.lock().is_none() {
            let ready = self.new_segment(0)?;
            *self.next_segment.lock() = Some(ready);
        }
        Ok(true)
    }

    /// Waits until a buffer is free, or until it is known why none will be.
    fn make_room(&self) -> Result<()> {
        if self.has_room() {
            return Ok(());
        }
        let started = self.context.env.clock.now();
        let waited = self.context.wait_for(|| self.flush_trouble(), || self.has_room());
        self.context.stalled_since(started);
        waited
    }

    /// Waits until every record accepted so far is in lists, on disk or in memory.
    pub(crate) fn flush(&self) -> Result<()> {
        let log = self.context.log()?;
        let (segment, empty) = (log.active_segment(), self.versions.state().active.is_empty());
        yield_point("flush begins");
        if !empty {
            self.rotate(segment, 0)?;
        }
        self.context.wait_for(
            || self.flush_trouble(),
            || self.versions.state().sealed.iter().all(|buffer| buffer.segment() > segment),
        )
    }

    /// Why buffers are not flushed, if so.
    pub(crate) fn flush_trouble(&self) -> Option<Error> {
        self.space.trouble_of(FLUSH)
    }

    /// Lets no buffer be sealed for as long as this is held.
    pub(crate) fn stop_rotating(&self) -> MutexGuard<'_, ()> {
        self.rotating.lock()
    }

    /// Takes the segment that is ready, if there is one.
    pub(crate) fn take_next_segment(&self) -> Option<SegmentFile> {
        self.next_segment.lock().take()
    }
}
