//! Making durable what was read of the log while the rest is being read.
//!
//! **Invariant:** what is written stands there already: frames that were found sound and number on, at their places.
//! Where the log ends is not known yet, so nothing is cut. What could not be written, [`Reader::keep`](super::Reader)
//! writes once more. Once this is dropped nobody writes any more.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use forebay_base::{Error, Result};
use forebay_env::sync::Mutex;
use forebay_env::{Access, Arena, Env, FileSystem, Handle};
use forebay_store::log::Refill;
use forebay_store::log::frame::{self, Secret};
use forebay_store::log::recover::LogFiles;
use forebay_store::names;

/// How much is read before it is written and synced.
const PART_BYTES: usize = 64 << 20;

/// Sound frames of a segment, in a row.
struct Part {
    segment: u64,
    image: Arc<Arena>,
    range: Range<usize>,
}

/// Up to where each segment is durable, from its front; or why nothing more is tried.
#[derive(Default)]
struct Renewed {
    bytes: BTreeMap<u64, u64>,
    failed: Option<Error>,
}

/// Where and into what.
#[derive(Clone)]
struct Target {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    secret: Secret,
    renewed: Arc<Mutex<Renewed>>,
}

/// See the module.
pub(crate) struct Renewing {
    target: Target,
    /// Under a stepper it is done at once.
    thread: Option<(Sender<Part>, Handle)>,
    /// The segment that comes, and up to where it was handed on.
    latest: (u64, usize),
}

impl Renewing {
    pub(super) fn start(env: &Env, &LogFiles { dir, secret, .. }: &LogFiles<'_>) -> Self {
        let fs = Arc::clone(&env.fs);
        let target = Target { fs, dir: dir.to_path_buf(), secret, renewed: Arc::default() };
        let mut thread = None;
        if !env.jobs.is_stepper() {
            let (parts, waiting) = mpsc::channel();
            let by_thread = target.clone();
            let renew = move || waiting.into_iter().for_each(|part| by_thread.renew(&part));
            let handle = env.jobs.fork("forebay-renew", renew);
            thread = handle.refused().is_none().then_some((parts, handle));
        }
        Self { target, thread, latest: (0, 0) }
    }

    /// Of the segment that is being read there is more.
    pub(super) fn grows(&mut self, refill: &mut Refill) {
        if self.left(refill) >= PART_BYTES {
            self.hand_on(refill);
        }
    }

    /// All of the segment was read.
    pub(super) fn ends(&mut self, refill: &mut Refill) {
        if self.left(refill) > 0 {
            self.hand_on(refill);
        }
    }

    fn left(&mut self, refill: &Refill) -> usize {
        if self.latest.0 != refill.segment() {
            self.latest = (refill.segment(), 0);
        }
        refill.bytes() - self.latest.1
    }

    fn hand_on(&mut self, refill: &mut Refill) {
        let (segment, end) = (refill.segment(), refill.bytes());
        let part = Part { segment, image: refill.image(), range: self.latest.1..end };
        self.latest.1 = end;
        match &self.thread {
            // A thread that panicked has written nothing more, and all of that is written later.
            Some((parts, _)) => drop(parts.send(part)),
            None => self.target.renew(&part),
        }
    }

    /// Up to where segments are durable.
    pub(super) fn finish(mut self) -> Result<BTreeMap<u64, u64>> {
        self.rest();
        let Renewed { bytes, failed } = std::mem::take(&mut *self.target.renewed.lock());
        match failed {
            // There may be room once all is cleared away.
            Some(error) if !error.is_no_space() => Err(error),
            _ => Ok(bytes),
        }
    }

    /// Lets the thread come to its end.
    fn rest(&mut self) {
        if let Some((parts, handle)) = self.thread.take() {
            drop(parts);
            handle.join();
        }
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Target {
    fn renew(&self, part: &Part) {
        if self.renewed.lock().failed.is_some() {
            return;
        }
        let written = self.write(part);
        let mut renewed = self.renewed.lock();
        match written {
            Ok(()) => drop(renewed.bytes.insert(part.segment, part.range.end as u64)),
            Err(error) => renewed.failed = Some(error),
        }
    }

    fn write(&self, Part { segment, image, range }: &Part) -> Result<()> {
        let file = self.fs.open(&names::log(&self.dir, *segment), Access::Buffered)?;
        debug_assert!(image.published() >= range.end, "what is written was read");
        let frames = image.prefix(range.end).get(range.start..).unwrap_or_default();
        frame::write(&*file, self.secret, *segment, range.start, frames)?;
        file.sync()
    }
}
