//! `sort | uniq -c`: what a shell has for counting more than memory holds. Keys are lines, each add is a line, and
//! nothing can be read before the end.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use forebay_bench::{Adds, Batch, Engine, Failure, Kind, Setup};

use crate::text;

pub(crate) struct GnuSort;

fn arguments(setup: &Setup) -> [(&'static str, String); 2] {
    [
        ("--buffer-size", format!("{}b", setup.memory_bytes)),
        ("--parallel", setup.background_threads.to_string()),
    ]
}

impl Kind for GnuSort {
    fn name(&self) -> &'static str {
        "gnu-sort"
    }

    /// The last word of the first line that it tells.
    fn version(&self) -> String {
        let told = Command::new("sort").arg("--version").output().map(|told| told.stdout).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        told.lines().next().and_then(|line| line.split(' ').next_back()).unwrap_or("unknown").to_string()
    }

    fn adds(&self) -> Adds {
        Adds::Only
    }

    fn options(&self, setup: &Setup) -> String {
        let notes = [
            ("note.adds", "a line each, through a pipe; lines that are alike are counted by uniq -c"),
            ("note.locale", "C"),
            ("note.processor", "the time of both programs is counted nowhere"),
        ];
        let notes = notes.map(|(name, value)| (name, value.to_string()));
        text::lines(arguments(setup).into_iter().chain(notes).map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let mut sort = Command::new("sort");
        for (name, value) in arguments(setup) {
            sort.arg(format!("{name}={value}"));
        }
        sort.arg("--temporary-directory").arg(dir).env("LC_ALL", "C");
        let mut sort = sort.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = sort.stdin.take().map(BufWriter::new);
        let sorted = sort.stdout.take().ok_or("sort has no output")?;
        let mut uniq = Command::new("uniq")
            .arg("--count")
            .env("LC_ALL", "C")
            .stdin(Stdio::from(sorted))
            .stdout(Stdio::piped())
            .spawn()?;
        let counted = uniq.stdout.take();
        Ok(Box::new(Open { programs: vec![sort, uniq], lines, counted }))
    }
}

struct Open {
    programs: Vec<Child>,
    lines: Option<BufWriter<ChildStdin>>,
    counted: Option<ChildStdout>,
}

impl Engine for Open {
    fn put(&mut self, _: Batch<'_>) -> Result<(), Failure> {
        Err("it does nothing but count lines".into())
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let lines = self.lines.as_mut().ok_or("nothing can be added once it was read")?;
        for (key, count) in batch.iter() {
            if u64::from_le_bytes(count.try_into()?) != 1 {
                return Err("a line is one".into());
            }
            lines.write_all(key)?;
            lines.write_all(b"\n")?;
        }
        Ok(())
    }

    fn delete(&mut self, _: &[u8], _: usize) -> Result<(), Failure> {
        Err("a sort removes nothing".into())
    }

    fn get(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, Failure> {
        Err("a sort is read when all is sorted".into())
    }

    fn scan(&mut self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err("a sort is read from its beginning".into())
    }

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.lines.take().map_or(Ok(()), |mut lines| lines.flush())?;
        let mut counted = BufReader::new(self.counted.take().ok_or("it can be read once")?);
        let mut line = Vec::new();
        while counted.read_until(b'\n', &mut line)? > 0 {
            let (count, key) = std::str::from_utf8(&line)?
                .trim()
                .split_once(' ')
                .ok_or("uniq has written a line without a count")?;
            each(key.as_bytes(), &count.parse::<u64>()?.to_le_bytes());
            line.clear();
        }
        for mut program in self.programs.drain(..) {
            let status = program.wait()?;
            if !status.success() {
                return Err(format!("sort or uniq failed: {status}").into());
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        drop((self.lines.take(), self.counted.take()));
        self.programs.iter_mut().try_for_each(|program| program.wait().map(drop))?;
        Ok(())
    }
}
