//! What a system may do besides losing power: forget what a failed sync has left in its memory, and fail to sync a
//! name.

use forebay::Durability;
use forebay_env::Rng;
use forebay_testkit::Op;

use crate::run::Run;

/// Files that are synced. What reads forget is one of the first two.
const FILES: [&str; 5] = [".log", ".manifest", ".list", ".tree", ".tmp"];
const NAMES: [&str; 7] = [".log", ".manifest", ".list", ".tree", "CURRENT", ".values", "FOREBAY.keys"];
/// So often somebody who was told that a sync has failed may be stopped on the way.
const TURNS_MAX: usize = 100;

impl Run {
    /// Syncs that fail in a round, now and then.
    pub(crate) fn fail_syncs(&mut self, mut dice: Rng) {
        if dice.chance(self.options.fault_percent / 4) {
            let kind = FILES[dice.index(FILES.len())];
            self.fs.fail_next_sync(kind);
            self.tell(|| format!("the next sync of a {kind} fails, and what it was to write is lost"));
            (self.may_fail, self.may_forget) = (true, true);
        }
        if dice.chance(self.options.fault_percent / 4) {
            let kind = NAMES[dice.index(NAMES.len())];
            self.fs.fail_next_sync_of_name(kind);
            self.tell(|| format!("the next sync of a name {kind} fails, and the name is lost"));
            self.may_fail = true;
        }
    }

    /// The same while databases are opened, and what was read is forgotten meanwhile. Tells whether opening may fail
    /// for that.
    pub(crate) fn take_ground_away(&mut self, mut dice: Rng) -> bool {
        let (forgets, fails) =
            (self.may_forget && dice.chance(70), dice.chance(self.options.fault_percent / 4));
        if forgets {
            let (kind, read) = (FILES[dice.index(2)], 1 + dice.below(9));
            self.fs.evict_at_read(kind, read);
            self.tell(|| format!("{kind} is forgotten at read {read}"));
            // What a failed sync has lost no death of a process keeps.
            self.loss = Durability::Disk;
        }
        if fails {
            let kind = NAMES[dice.index(NAMES.len())];
            self.fs.fail_next_sync_of_name(kind);
            self.tell(|| format!("the next sync of a name {kind} fails"));
        }
        forgets || fails
    }

    /// A database of which a sync of names has failed writes nothing more: names may be lost, and no later sync tells of
    /// that.
    pub(crate) fn assert_stopped_by_names(&self) {
        let Some(dir) = self.fs.take_failed_dir() else { return };
        let Some(database) = self.databases.iter().find(|database| database.dir() == dir) else { return };
        let writes_on = || !self.fs.is_off() && database.writes_on();
        let goes_on = writes_on()
            && (0..TURNS_MAX).all(|_| {
                self.env.jobs.step_some(TURNS_MAX);
                writes_on()
            });
        assert!(!goes_on, "a sync of names in {} has failed, and writing goes on", dir.display());
    }

    /// Whether nothing has stopped writing since databases were opened.
    pub(crate) fn writes_on(&mut self) -> bool {
        self.databases.iter_mut().all(|database| database.apply(&Op::Sync).is_ok())
    }
}
