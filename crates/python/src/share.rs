//! Record batches that several threads share. The calling thread alone reads them: what makes them may be Python's, and of
//! that thread.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::thread;

use arrow_array::{RecordBatch, RecordBatchReader};
use forebay_env::sync::{Condvar, Mutex};
use pyo3::prelude::*;

use crate::failure::Outcome;
use crate::progress::Progress;

/// Each is given so many rows at a time, and so many parts before signals are looked for.
const PART_ROWS: usize = 64 << 10;
const PARTS_A_ROUND: usize = 16;

/// Rows of a batch, and how many stand before them in it.
type Part = (RecordBatch, usize);

/// Does something with each part of the batches, by this thread and some more. Returns how many rows there were.
pub(crate) fn share(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
    threads: usize,
    with: impl Fn(&RecordBatch, usize) -> Outcome<()> + Sync,
) -> Outcome<u64> {
    let progress = Progress::begin(py, "rows", "row", None);
    let mut source = Source { reader, batch: None, rows: 0, is_over: false };
    let act = |(part, before): Part| {
        with(&part, before)?;
        progress.add(part.num_rows() as u64);
        Ok(())
    };
    while !source.is_over {
        py.detach(|| round(&mut source, threads, &act))?;
        py.check_signals()?;
    }
    Ok(source.rows)
}

/// Some parts. The threads are of this round.
fn round(source: &mut Source, threads: usize, act: &(impl Fn(Part) -> Outcome<()> + Sync)) -> Outcome<()> {
    let queue = Queue::default();
    thread::scope(|scope| {
        let work = || queue.drain(act);
        // Where no thread can be started this one does it all.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let outcome = {
            let _end = End(&queue);
            (0..threads * PARTS_A_ROUND).try_for_each(|_| match source.next()? {
                Some(part) if !queue.is_failed() => queue.offer(part, others.len()).map_or(Ok(()), act),
                _ => Ok(()),
            })
        };
        let outcome = outcome.and_then(|()| work());
        if outcome.is_err() {
            queue.fail();
        }
        others.into_iter().fold(outcome, |outcome, other| {
            let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcome.and(other)
        })
    })
}

/// Parts for who is free.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    parts: VecDeque<Part>,
    /// No more come.
    is_over: bool,
    is_failed: bool,
}

impl Queue {
    /// Leaves a part to others, of whom there are so many; where they all have one to come it is given back.
    fn offer(&self, part: Part, others: usize) -> Option<Part> {
        let mut waiting = self.waiting.lock();
        if waiting.parts.len() >= others {
            return Some(part);
        }
        waiting.parts.push_back(part);
        self.changed.notify_one();
        None
    }

    fn drain(&self, act: &impl Fn(Part) -> Outcome<()>) -> Outcome<()> {
        while let Some(part) = self.take() {
            act(part).inspect_err(|_| self.fail())?;
        }
        Ok(())
    }

    fn take(&self) -> Option<Part> {
        let mut waiting = self.waiting.lock();
        loop {
            match waiting.parts.pop_front() {
                None if !waiting.is_over => waiting = self.changed.wait(waiting),
                part => return part,
            }
        }
    }

    /// Others need not go on.
    fn fail(&self) {
        let mut waiting = self.waiting.lock();
        waiting.parts.clear();
        waiting.is_failed = true;
    }

    fn is_failed(&self) -> bool {
        self.waiting.lock().is_failed
    }
}

/// Once this goes, by an error or a panic too, nobody waits for more.
struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Record batches in parts.
struct Source {
    reader: Box<dyn RecordBatchReader + Send>,
    /// The batch here, and how many of its rows were given.
    batch: Option<Part>,
    rows: u64,
    is_over: bool,
}

impl Source {
    fn next(&mut self) -> Outcome<Option<Part>> {
        while !self.is_over {
            if let Some((batch, given)) = &mut self.batch
                && *given < batch.num_rows()
            {
                let (before, rows) = (*given, PART_ROWS.min(batch.num_rows() - *given));
                *given += rows;
                self.rows += rows as u64;
                return Ok(Some((batch.slice(before, rows), before)));
            }
            let next = self.reader.next().transpose();
            self.is_over = !matches!(next, Ok(Some(_)));
            self.batch = next?.map(|batch| (batch, 0));
        }
        Ok(None)
    }
}
