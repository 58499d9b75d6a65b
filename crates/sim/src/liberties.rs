//! What a system may do besides losing power: forget what a failed sync has left in its memory, and fail to sync a
//! name.

use forebay::Durability;
use forebay_env::Rng;
use forebay_testkit::Op;

use crate::run::Run;

const NAMES: [&str; 5] = [".log", ".manifest", ".list", ".tree", "CURRENT"];

impl Run {
    /// Syncs that fail in a round, now and then.
    pub(crate) fn fail_syncs(&mut self, mut dice: Rng) {
        if dice.chance(self.options.fault_percent / 4) {
            let kind = NAMES[dice.index(4)];
            self.fs.fail_next_sync(kind);
            self.tell(|| format!("the next sync of a {kind} fails, and what it was to write is lost"));
            (self.may_fail, self.may_forget) = (true, true);
        }
        if dice.chance(self.options.fault_percent / 4) {
            let kind = NAMES[dice.index(5)];
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
            let (kind, read) = (NAMES[dice.index(2)], 1 + dice.below(9));
            self.fs.evict_at_read(kind, read);
            self.tell(|| format!("{kind} is forgotten at read {read}"));
            // What a failed sync has lost no death of a process keeps.
            self.loss = Durability::Disk;
        }
        if fails {
            let kind = NAMES[dice.index(5)];
            self.fs.fail_next_sync_of_name(kind);
            self.tell(|| format!("the next sync of a name {kind} fails"));
        }
        forgets || fails
    }

    /// Whether nothing has stopped writing since databases were opened.
    pub(crate) fn writes_on(&mut self) -> bool {
        self.databases.iter_mut().all(|database| database.apply(&Op::Sync).is_ok())
    }
}
