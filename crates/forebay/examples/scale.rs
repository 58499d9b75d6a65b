//! What many tables, many files and few descriptors cost: `scale DIRECTORY tables|files COUNT [LAYOUT
//! [OPEN_FILES]]`.
//!
//! `tables` makes this many, writes a record to each, flushes, and opens the database again. `files` brings in this
//! many lists of a few records, and opens again. Each line tells how long it took, the memory that is not the
//! program's own (RssAnon), and how many files are open.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use forebay::{Database, Error, Layout, Options, Result};

const MEMORY_BYTES: u64 = 64 << 20;
/// The argument by which the program calls itself.
const AGAIN: &str = "again";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, mode, count, rest @ ..] = &arguments[..] else { return usage() };
    let Ok(count) = count.parse() else { return usage() };
    let layout = rest.first().map_or("wb-tree", String::as_str).parse()?;
    let mut options = Options::default().memory_limit(MEMORY_BYTES);
    if let Some(files) = rest.get(1) {
        let Ok(files) = files.parse() else { return usage() };
        options = options.open_files_max(files);
    }
    let path = Path::new(dir);
    let made = match mode.as_str() {
        "tables" => tables(path, count, layout, &options),
        "files" => files(path, count, layout, &options),
        AGAIN => return again(path, &options),
        _ => return usage(),
    };
    made?;
    // In a process of its own: what this one has taken from the system by now is not the database's.
    let arguments: Vec<&str> =
        [dir, AGAIN].into_iter().chain(arguments[2..].iter().map(String::as_str)).collect();
    let again = std::env::current_exe().and_then(|program| Command::new(program).args(arguments).status());
    again.map(drop).map_err(|error| Error::invalid(error.to_string()))
}

fn usage() -> Result<()> {
    eprintln!("scale DIRECTORY tables|files COUNT [LAYOUT [OPEN_FILES]]");
    Ok(())
}

/// Shows what was done, and forgets the time.
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn tell(&mut self, what: &str) {
        let (kibibytes, open) = (anonymous_kibibytes(), open_files());
        println!(
            "{what:28} {:9.3} s, {kibibytes:8} KiB, {open:5} files open",
            self.0.elapsed().as_secs_f64()
        );
        self.0 = Instant::now();
    }
}

fn anonymous_kibibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn tables(dir: &Path, count: usize, layout: Layout, options: &Options) -> Result<()> {
    let mut clock = Clock::start();
    let db = Database::open(dir, options.clone())?;
    clock.tell("opened empty");
    let mut tables = Vec::with_capacity(count);
    for number in 0..count {
        tables.push(db.table(&format!("table {number}")).layout(layout).open()?);
        if (number + 1) % count.div_ceil(4) == 0 {
            clock.tell(&format!("made {}", number + 1));
        }
    }
    clock.tell("made all");
    tables.iter().try_for_each(|table| table.put(b"key", b"value"))?;
    clock.tell("put into each");
    db.flush()?;
    clock.tell("flushed");
    for table in &tables {
        assert_eq!(table.get(b"key")?.as_deref(), Some(&b"value"[..]));
    }
    clock.tell("got from each");
    drop(tables);
    db.close()?;
    clock.tell("closed");
    Ok(())
}

fn files(dir: &Path, count: usize, layout: Layout, options: &Options) -> Result<()> {
    let mut clock = Clock::start();
    let db = Database::open(dir, options.clone())?;
    // A file of a run is about as long as a node.
    let table = db.table("t").layout(layout).node_bytes(4096).open_ordered()?;
    let value = [7; 2000];
    let entries = (0..2 * count as u64).map(move |key| Ok((key.to_be_bytes().to_vec(), value.to_vec())));
    table.ingest(entries)?;
    clock.tell("brought in");
    let files = std::fs::read_dir(dir).map_or(0, Iterator::count);
    clock.tell(&format!("{files} names"));
    drop(table);
    db.close()?;
    clock.tell("closed");
    Ok(())
}

fn again(dir: &Path, options: &Options) -> Result<()> {
    let mut clock = Clock::start();
    let db = Database::open(dir, options.clone())?;
    clock.tell("opened again");
    let mut read = 0;
    for (name, layout) in db.tables().into_iter().step_by(100) {
        let table = db.table(&name).layout(layout).open()?;
        read += table.iter()?.take(10_000).filter(|entry| entry.is_ok()).count();
    }
    clock.tell(&format!("read {read}"));
    db.close()?;
    clock.tell("closed");
    Ok(())
}
