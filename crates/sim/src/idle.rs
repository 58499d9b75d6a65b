//! The end of a seed: no more faults, so the engine must come to rest and give back space.

use std::time::Duration;

use forebay_env::{Access, FileSystem};
use forebay_testkit::{Harness, Op};

use crate::run::{Run, STEPS_TO_IDLE};

/// How long background work may take, and rest between its removals.
const IDLE_SECONDS: u64 = 60;
/// Of value files as much as this many of the longest hold may be dead, and stays.
const VALUE_FILES_DEAD: u64 = 4;

impl Run {
    pub(crate) fn become_idle(&mut self) {
        self.open().expect("opening without faults");
        for number in 0..self.databases.len() {
            let database = &mut self.databases[number];
            wait_until_idle(database);
            self.tell(|| format!("database {number} is at rest"));
            let database = &mut self.databases[number];
            database.check_all().expect("reading at rest");
            database.apply(&Op::Verify).expect("verifying at rest");
            self.check_space(number);
            self.databases[number].close().expect("closing without faults");
        }
        self.trace_operations();
    }

    /// No file is left over, and what there is holds little more than the records.
    fn check_space(&self, number: usize) {
        let database = &self.databases[number];
        let stats = database.db().stats();
        let names = self.fs.list(database.dir()).expect("listing");
        let files = files_of(database);
        assert_eq!(files.len() as u64, stats.list_files, "files that nothing refers to: {files:?}");
        let logs = names.iter().filter(|name| name.ends_with(".log")).count();
        let config = &self.options.config;
        let is_bounded = config.keep_changes_bytes == 0;
        assert!(
            !is_bounded || logs <= config.write_buffers_max() + 1,
            "{logs} log segments are left: {names:?}, {stats:?}"
        );
        for level in stats.tables.iter().flat_map(|table| table.levels.split_last()) {
            let (leaves, inner) = level;
            assert!(inner.iter().all(|level| level.lists == 0), "compacting left lists in inner nodes");
            assert!(leaves.lists_max <= 1, "compacting left {} lists in a leaf", leaves.lists_max);
        }
        let live: usize =
            database.model.tables().iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
        // A page, page search with filter and a footer at least for each list, and pages that long records
        // leave half empty; and value files, of which as much may be dead as some of the longest hold.
        let values = VALUE_FILES_DEAD * longest_value_file(database);
        let bound = 3 * live as u64 + 20_000 * files.len() as u64 + 100_000 + values;
        let disk_bytes = stats.disk_bytes - stats.kept_log_bytes;
        assert!(disk_bytes <= bound, "{disk_bytes} bytes on disk for {live} bytes of records");
    }
}

/// How long the longest value file is. It is as long as what a write buffer had when it was flushed.
fn longest_value_file(database: &Harness) -> u64 {
    let (fs, dir) = (&database.env.fs, database.dir());
    let names = fs.list(dir).expect("listing").into_iter().filter(|name| name.ends_with(".values"));
    let bytes_of = |name: String| fs.open_read(&dir.join(name), Access::Buffered).and_then(|file| file.len());
    names.map(|name| bytes_of(name).expect("a file that is there")).max().unwrap_or_default()
}

/// The names of lists and trees.
fn files_of(database: &Harness) -> Vec<String> {
    let names = database.env.fs.list(database.dir()).expect("listing");
    names.into_iter().filter(|name| name.ends_with(".list") || name.ends_with(".tree")).collect()
}

fn wait_until_idle(database: &mut Harness) {
    let names: Vec<String> = database.model.savepoints().keys().cloned().collect();
    for name in names {
        database.apply(&Op::DropSavepoint(name)).expect("dropping a savepoint without faults");
    }
    for table in 0..database.config.tables() {
        database.apply(&Op::Compact(table)).expect("compacting without faults");
    }
    database.compact_groups().expect("compacting groups without faults");
    // Merges at rest, what expires, rounds of reclaiming, and then the files that all of these leave behind.
    for _ in 0..IDLE_SECONDS {
        database.env.jobs.advance(Duration::from_secs(1));
        database.env.jobs.step_some(STEPS_TO_IDLE);
        if files_of(database).len() as u64 == database.db().stats().list_files {
            break;
        }
    }
    assert_eq!(database.db().stats().debt_bytes, 0, "background work does not come to rest");
}
