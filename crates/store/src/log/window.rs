//! A window over a segment's file: what was read of it last, by whoever walks it or [ahead](super::ahead) of that.
//!
//! **Invariant:** while somebody reads ahead, the window ends where what comes from there begins.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::{File, Jobs};

use super::ahead::{Ahead, HEADROOM_BYTES};

/// How much is read at a time, unless more is wanted.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// See the module.
pub(super) struct Window {
    file: Arc<dyn File>,
    bytes: Vec<u8>,
    /// Where in `bytes` it begins, and where that is in the file.
    from: usize,
    start: usize,
    ahead: Option<Ahead>,
}

impl Window {
    pub(super) fn new(file: Arc<dyn File>) -> Self {
        Self { file, bytes: Vec::new(), from: 0, start: 0, ahead: None }
    }

    /// From now on the file, of this many bytes, is read ahead from its front.
    pub(super) fn read_ahead(&mut self, jobs: &Jobs, len: usize) {
        debug_assert!(self.bytes.is_empty(), "nothing was read by now");
        self.ahead = Ahead::start(jobs, &self.file, len);
    }

    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Where what was read ends.
    pub(super) fn end(&self) -> usize {
        self.start + self.bytes.len() - self.from
    }

    /// What was read from here on.
    pub(super) fn at(&self, at: usize) -> &[u8] {
        let whole = self.bytes.get(self.from..).unwrap_or_default();
        at.checked_sub(self.start).and_then(|ahead| whole.get(ahead..)).unwrap_or_default()
    }

    /// Has the file's bytes from `at` to `end`, and perhaps more of them up to `len`, unless the file is shorter.
    pub(super) fn load(&mut self, at: usize, end: usize, len: usize) -> Result<()> {
        debug_assert!(at <= end && end <= len, "the walk is within the segment");
        if self.start <= at && end <= self.end() {
            return Ok(());
        }
        // Whoever goes elsewhere reads by himself from then on.
        let goes_on = self.start <= at && at <= self.end();
        if let Some(mut ahead) = self.ahead.take().filter(|_| goes_on) {
            while self.end() < end {
                let Some(next) = ahead.next()? else { break };
                let used = self.join(at, end, next);
                ahead.give_back(used);
            }
            if end <= self.end() {
                self.ahead = Some(ahead);
                return Ok(());
            }
        }
        (self.from, self.start) = (0, at);
        self.bytes.resize((end - at).max(PIECE_BYTES).min(len - at), 0);
        let got = self.file.read_at(at as u64, &mut self.bytes)?;
        self.bytes.truncate(got);
        Ok(())
    }

    /// Goes on at `at` with what comes next. Gives the memory that is not needed any more.
    fn join(&mut self, at: usize, end: usize, mut next: Vec<u8>) -> Vec<u8> {
        let rest = self.end() - at;
        if let Some(from) = HEADROOM_BYTES.checked_sub(rest) {
            next[from..HEADROOM_BYTES].copy_from_slice(self.at(at));
            (self.from, self.start) = (from, at);
            return std::mem::replace(&mut self.bytes, next);
        }
        let passed = self.from + at - self.start;
        self.bytes.drain(..passed);
        (self.from, self.start) = (0, at);
        self.bytes.reserve_exact((end - at).max(rest + next.len() - HEADROOM_BYTES) - rest);
        self.bytes.extend_from_slice(&next[HEADROOM_BYTES..]);
        next
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use forebay_env::fs::MemoryFs;
    use forebay_env::{Access, Env, FileSystem, Rng};

    use super::*;

    const LEN: usize = 20 << 20;

    /// Whoever walks a file finds its bytes, whether somebody reads ahead or not: in short steps and long ones, on to
    /// its end, and elsewhere; also where the file is shorter than it was.
    #[test]
    fn what_is_read_ahead_is_what_the_file_has() {
        let (env, fs) = (Env::real(), MemoryFs::new());
        for seed in 0..24 {
            let mut rng = Rng::new(seed);
            let bytes: Vec<u8> = (0..LEN / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
            let there = if rng.chance(25) { rng.index(LEN) } else { LEN };
            let file = fs.create(Path::new("/1.log"), Access::Buffered).unwrap();
            file.write_at(0, &bytes[..there]).unwrap();
            let mut window = Window::new(file);
            window.read_ahead(&env.jobs, LEN);
            assert!(window.ahead.is_some() || env.jobs.parallelism() < 2, "somebody reads ahead");
            let (mut at, mut steps) = (0, 0);
            while at < LEN && steps < 4000 {
                let most = [40, 20_000, 200_000, 3 << 20][rng.index(4)];
                let end = (at + 1 + rng.index(most)).min(LEN);
                window.load(at, end, LEN).unwrap();
                let got = window.at(at);
                assert!(got.len() >= end.min(there).saturating_sub(at), "seed {seed}: {at} to {end}");
                assert!(bytes[at..].starts_with(got), "seed {seed}: {at} to {end}");
                at = if rng.below(400) == 0 { rng.index(LEN) } else { at + rng.index(end - at + 1) };
                steps += 1;
            }
        }
    }

    /// An error comes where the file has it, and what stands before it is read.
    #[test]
    fn an_error_comes_in_its_place() {
        let (env, memory) = (Env::real(), MemoryFs::new());
        let fs = forebay_env::fs::FaultyFs::new(memory.clone());
        memory.create(Path::new("/1.log"), Access::Buffered).unwrap().write_at(0, &vec![7; LEN]).unwrap();
        fs.rule("read *.log #3 io-error").unwrap();
        let mut window = Window::new(fs.open_read(Path::new("/1.log"), Access::Buffered).unwrap());
        window.read_ahead(&env.jobs, LEN);
        let places = (0..LEN).step_by(100_000);
        let failed = places.clone().find(|&at| window.load(at, at + 50_000, LEN).is_err());
        assert!(failed.is_some_and(|at| at >= 900_000), "{failed:?}");
        let mut window = Window::new(fs.open_read(Path::new("/1.log"), Access::Buffered).unwrap());
        window.read_ahead(&env.jobs, LEN);
        assert!(places.into_iter().all(|at| window.load(at, at + 1, LEN).is_ok()));
    }
}
