//! A part of the campaign as data: what is run, and how it is shown.

use std::fmt::Display;

use super::results::Results;
use super::target::Target;

/// Forebay, and the engines that it is compared with, as the bench calls them.
pub(super) const FOREBAY: &str = "forebay";
pub(super) const LEVELED: &str = "rocksdb-leveled";
pub(super) const UNIVERSAL: &str = "rocksdb-universal";
pub(super) const BLOB: &str = "rocksdb-blob";
pub(super) const LEVELDB: &str = "leveldb";
pub(super) const FJALL: &str = "fjall";
pub(super) const LMDB: &str = "lmdb";
pub(super) const KYOTO: &str = "kyoto-hash";
/// The organisation that the Rangemerge paper brings.
pub(super) const RANGE_MERGE: &str = "range-merge";
/// How results call an engine that goes around the page cache where it could use it.
pub(super) const DIRECT: &str = ", direct I/O";
/// Those that targets name.
pub(super) const MAIN: &[&str] = &[FOREBAY, LEVELED, UNIVERSAL, LEVELDB];

/// See the module.
pub(super) struct Part {
    /// What `ONLY=` and the files call it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Prose with places for what is measured, such as `{{targets}}`.
    pub(super) text: &'static str,
    pub(super) runs: fn() -> Vec<Run>,
    pub(super) show: fn(&Results) -> Result<Shown, String>,
}

/// One command of the bench.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// A workload file, without the records.
    pub(super) workload: String,
    pub(super) name: String,
    /// At scale 1.
    pub(super) records: u64,
    /// At scale 1; else the workload's share of the data.
    pub(super) memory_bytes: Option<u64>,
    /// At scale 1; else by the memory.
    pub(super) cgroup_bytes: Option<u64>,
    pub(super) engines: &'static [&'static str],
    pub(super) rounds: u32,
    pub(super) direct_io: DirectIo,
    /// Threads that an engine may use besides; else one a core.
    pub(super) background_threads: Option<u16>,
    pub(super) length: Length,
}

/// How long the bounds in seconds of a run are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    /// As its workload has them.
    Fixed,
    /// By the scale. A run that takes much longer is ended.
    Scaled,
    /// By the minutes that are asked for, of which the workload has this many seconds; else by the scale.
    Minutes { seconds: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectIo {
    Off,
    On,
}

impl Run {
    /// Every engine that targets name, three times.
    pub(super) fn new(workload: &str, records: u64) -> Self {
        let name = workload.lines().find_map(|line| line.strip_prefix("name = "));
        Self {
            workload: workload.into(),
            name: name.unwrap_or_default().trim_matches('"').into(),
            records,
            memory_bytes: None,
            cgroup_bytes: None,
            engines: MAIN,
            rounds: 3,
            direct_io: DirectIo::Off,
            background_threads: None,
            length: Length::Fixed,
        }
    }

    pub(super) fn engines(mut self, engines: &'static [&'static str]) -> Self {
        self.engines = engines;
        self
    }

    pub(super) fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    pub(super) fn records(mut self, records: u64) -> Self {
        self.records = records;
        self
    }

    pub(super) fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    pub(super) fn cgroup(mut self, bytes: u64) -> Self {
        self.cgroup_bytes = Some(bytes);
        self
    }

    /// A workload of another name, for an engine with so many threads.
    pub(super) fn background_threads(self, count: u16) -> Self {
        let mut run = self.shaped(&count.to_string(), &[]);
        run.background_threads = Some(count);
        run
    }

    pub(super) fn length(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// For a table in key order.
    pub(super) fn in_order(mut self) -> Self {
        self.workload = self.workload.replacen("phases = [", "ordered = true\nphases = [", 1);
        self
    }

    /// A workload of another name, with more keys of its head.
    pub(super) fn varied(self, suffix: &str, values: &[(&str, u64)]) -> Self {
        let mut run = self.shaped(suffix, &[]);
        for (key, value) in values {
            run.workload = run.workload.replacen("phases = [", &format!("{key} = {value}\nphases = ["), 1);
        }
        run
    }

    /// A workload of another name, with a shape for leveled trees.
    pub(super) fn leveled(self, suffix: &str, file_bytes: u64, level_ratio: u64) -> Self {
        let mut run = self.shaped(suffix, &[]);
        let shape = format!("\n[leveled]\nfile_bytes = {file_bytes}\nlevel_ratio = {level_ratio}\n");
        run.workload.push_str(&shape);
        run
    }

    pub(super) fn direct_io(mut self) -> Self {
        self.direct_io = DirectIo::On;
        self
    }

    /// A workload of another name, with another layout for Forebay's table, which is left as writing made it.
    pub(super) fn laid_out(self, layout: &str) -> Self {
        let mut run = self.organised(layout);
        run.workload.push_str("read_compaction_ratio = 0.0\n");
        run
    }

    /// A workload of another name, with another layout for Forebay's table.
    pub(super) fn organised(self, layout: &str) -> Self {
        let mut run = self.shaped(&words_of(layout), &[]).engines(&[FOREBAY]);
        run.workload.push_str(&format!("\n[forebay]\nlayout = \"{layout}\"\n"));
        run
    }

    /// The same, where Forebay's table is told something more.
    pub(super) fn told(mut self, option: &str, value: impl Display) -> Self {
        self.workload.push_str(&format!("{option} = {value}\n"));
        self
    }

    /// A workload of another name, with a shape for Forebay's table, which is left as writing made it.
    pub(super) fn shaped(mut self, suffix: &str, shape: &[(&str, u64)]) -> Self {
        let name = format!("{}-{suffix}", self.name);
        let (from, to) = (format!("name = \"{}\"", self.name), format!("name = \"{name}\""));
        self.workload = self.workload.replacen(&from, &to, 1);
        if !shape.is_empty() {
            self.workload.push_str("\n[forebay]\nread_compaction_ratio = 0.0\n");
        }
        for (option, value) in shape {
            self.workload.push_str(&format!("{option} = {value}\n"));
        }
        self.name = name;
        self
    }
}

/// What a workload that was laid out otherwise is called.
pub(super) fn laid_out_name(workload: &str, layout: &str) -> String {
    format!("{workload}-{}", words_of(layout))
}

/// A layout as a part of a file's name.
fn words_of(layout: &str) -> String {
    layout.replace([':', '='], "-")
}

/// What a part comes to.
#[derive(Default)]
pub(super) struct Shown {
    /// What takes which place in the text.
    pub(super) places: Vec<(&'static str, String)>,
    /// Name and SVG.
    pub(super) plots: Vec<(&'static str, String)>,
    pub(super) targets: Vec<Target>,
    /// What the page begins with, for who reads no further.
    pub(super) brief: Option<String>,
}

impl Shown {
    pub(super) fn place(&mut self, name: &'static str, text: String) {
        self.places.push((name, text));
    }

    pub(super) fn plot(&mut self, name: &'static str, svg: String) {
        self.plots.push((name, svg));
    }
}
