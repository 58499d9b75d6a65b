//! What a seed expands to. Small in every respect: what takes a thousand operations to go wrong in a large
//! database takes ten in a tiny one.

use std::path::PathBuf;

use forebay_env::Rng;
use forebay_testkit::{Config, TABLES, Theme};

/// One simulation.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// What kind of user it is, if it is one.
    pub theme: Option<Theme>,
    /// The database's options, its keys and values.
    pub config: Config,
    /// Its directory, which may have parents to be made.
    pub dir: PathBuf,
    /// How many times it crashes.
    pub rounds: u64,
    /// Operations from one crash to the next, at most.
    pub ops_per_round: u64,
    /// The power goes within this many file operations.
    pub crash_within: u64,
    /// In how many of a hundred rounds it goes while the database is being opened.
    pub crash_opening_percent: u32,
    /// In how many of a hundred crashes only the process dies.
    pub process_crash_percent: u32,
    /// In how many of a hundred rounds file operations fail.
    pub fault_percent: u32,
    /// Steps of background work between two operations, at most.
    pub steps_max: usize,
    /// Whether background work stops between two lines, and others go on.
    pub interleaves: bool,
    /// In how many of a hundred rounds code that tables ask panics.
    pub panic_percent: u32,
    /// In how many of a hundred crashes a copy of the disk is damaged, and asked.
    pub damage_percent: u32,
    /// In how many of a hundred cases the power goes just after what is on disk once it returns.
    pub crash_told_percent: u32,
}

/// Options that a failing history may do without.
pub(crate) const PLAIN: [&str; 20] = [
    "encryption",
    "faults",
    "opening",
    "process",
    "aside",
    "bounds",
    "reclaim",
    "prefixes",
    "apart",
    "changes",
    "no-log",
    "read-compaction",
    "interleaving",
    "panics",
    "damage",
    "groups",
    "pool",
    "rate",
    "resident",
    "codec",
];

impl SimOptions {
    /// The options of a seed; more draws may follow.
    pub fn draw(rng: &mut Rng) -> Self {
        let dirs = ["/db", "/deep/down/db"];
        let drawn = Self {
            theme: None,
            config: Config::draw_wide(rng),
            dir: PathBuf::from(dirs[rng.index(2)]),
            rounds: 2 + rng.below(5),
            ops_per_round: [10, 60, 250, 1000][rng.index(4)],
            crash_within: [8, 60, 600, 3000][rng.index(4)],
            crash_opening_percent: [0, 30, 80][rng.index(3)],
            process_crash_percent: [0, 20, 50][rng.index(3)],
            fault_percent: [0, 0, 40][rng.index(3)],
            steps_max: [0, 1, 4, 20][rng.index(4)],
            interleaves: false,
            panic_percent: 0,
            damage_percent: 0,
            crash_told_percent: 0,
        };
        // By dice of its own: what else a seed means stays what it was.
        let mut more = rng.clone().fork();
        Self {
            interleaves: more.chance(30),
            panic_percent: [0, 0, 40][more.index(3)],
            damage_percent: [0, 0, 60][more.index(3)],
            crash_told_percent: [0, 0, 30][more.clone().fork().index(3)],
            ..drawn
        }
        .themed(&mut more)
    }

    /// A third of the seeds are narrowed to one kind of user, who is left alone for long enough to do what it does.
    fn themed(self, rng: &mut Rng) -> Self {
        if !rng.chance(33) {
            return self;
        }
        let theme = Theme::ALL[rng.index(Theme::ALL.len())];
        Self {
            theme: Some(theme),
            panic_percent: if theme == Theme::Merging { 60 } else { self.panic_percent },
            config: theme.narrow(self.config, rng),
            ops_per_round: [200, 800][rng.index(2)],
            crash_within: [3000, 10_000][rng.index(2)],
            ..self
        }
    }

    /// Without one of the options that a failing history may not need.
    pub(crate) fn make_plain(&mut self, name: &str) {
        match name {
            "encryption" => self.config.is_encrypted = false,
            "faults" => self.fault_percent = 0,
            "opening" => self.crash_opening_percent = 0,
            "process" => self.process_crash_percent = 0,
            "aside" => {
                if let Some(aside) = &mut self.config.aside {
                    (aside.time_to_live, aside.drops) = (None, false);
                }
            }
            "bounds" => self.config.max_space_amplification = [None; TABLES],
            "reclaim" => self.config.reclaim_interval = [None; TABLES],
            "prefixes" => self.config.prefix_filter = [None; TABLES],
            "apart" => self.config.apart_bytes_min = [None; TABLES],
            "changes" => self.config.keep_changes_bytes = 0,
            "no-log" => self.config.log = true,
            "interleaving" => self.interleaves = false,
            "panics" => self.panic_percent = 0,
            "damage" => self.damage_percent = 0,
            "groups" => self.config.groupings = None,
            "pool" => self.config.pool = None,
            "rate" => self.config.background_rate_bytes = 0,
            "resident" => self.config.resident_percent = None,
            "read-compaction" => self.config.read_compaction_ratio = 0.0,
            _ => self.config.codec = forebay::Codec::None,
        }
    }
}
