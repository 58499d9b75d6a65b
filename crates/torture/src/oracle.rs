//! What a database must hold after its process or its disk was lost.

use std::path::Path;

use forebay::{Batch, Durability, Layout, Result};
use forebay_env::Env;
use forebay_testkit::{Config, Model, Tables, Write, assert_same};

use crate::history;

/// One line of the process that writes.
pub(crate) struct Acknowledged {
    number: u64,
    sequence: u64,
    durability: Durability,
    durable: u64,
}

impl Acknowledged {
    /// What was said while the power went is not counted: ext4 that is being shut down loses blocks which it has yet
    /// to note as written, and says so to nobody, not even to who syncs them.
    pub(crate) fn doubt(&mut self) {
        (self.durability, self.durable) = (Durability::Memory, 0);
    }

    /// A line that is whole; the last one may be cut short.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let number = words.next()?.parse().ok()?;
        let sequence = words.next()?.parse().ok()?;
        let durability = match words.next()? {
            "memory" => Durability::Memory,
            "os" => Durability::Os,
            "disk" => Durability::Disk,
            _ => return None,
        };
        let durable = words.next()?.strip_suffix('\n')?.parse().ok()?;
        Some(Self { number, sequence, durability, durable })
    }
}

/// The model of one database, through all its crashes.
pub(crate) struct Oracle {
    config: Config,
    seed: u64,
    model: Model,
    /// The batch that is written next.
    pub(crate) next: u64,
}

impl Oracle {
    pub(crate) fn new(layout: Layout, seed: u64) -> Self {
        let config = history::config(layout, seed);
        Self { model: Model::new(config.merging), config, seed, next: 0 }
    }

    /// Opens what a crash has left, and panics where a promise is broken: whole batches are there up to some batch, no
    /// earlier than the last that survives such a crash; what is there is right, to the last record, and whole.
    pub(crate) fn judge(
        &mut self,
        path: &Path,
        acknowledged: &[Acknowledged],
        survives: Durability,
    ) -> Result<()> {
        let db = self.config.open(&Env::real(), path)?;
        let tables = Tables::open(&db, &self.config)?;
        let recovered = db.last_sequence();
        // The last may have had no records, as a range that holds no key: only its number tells of it.
        let told = acknowledged.last().map_or(self.next, |last| last.number + 1);
        let mut model = self.model.clone();
        let mut ends = vec![(self.next, model.last_sequence())];
        // What was being written when the crash came may be there too.
        for number in self.next.. {
            if model.last_sequence() >= recovered && number >= told {
                break;
            }
            accept(&mut model, &tables, &self.config, self.seed, number);
            ends.push((number + 1, model.last_sequence()));
        }
        for line in acknowledged {
            assert!(
                ends.contains(&(line.number + 1, line.sequence)),
                "batch {} was given another number",
                line.number
            );
            model.acknowledge(line.sequence, line.durability);
            model.acknowledge(line.durable.min(line.sequence), Durability::Disk);
        }
        let kept = model.kept_by(survives);
        assert!(recovered >= kept, "recovered only to {recovered}; {kept} was acknowledged as {survives:?}");
        model.roll_back(recovered, survives);
        assert_same(&tables, &self.config, model.now())?;
        let report = db.verify(&mut |_, _| ())?;
        assert!(report.problems.is_empty(), "verify found: {:?}", report.problems);
        let (next, _) = ends.into_iter().rfind(|(_, end)| *end == recovered).expect("roll_back has seen it");
        (self.model, self.next) = (model, next);
        drop(tables);
        db.close()
    }
}

/// Tells the model of batch `number`.
pub(crate) fn accept(model: &mut Model, tables: &Tables, config: &Config, seed: u64, number: u64) {
    let drawn = history::batch(config, seed, number);
    let mut batch = Batch::new();
    drawn.changes.iter().for_each(|change| tables.push(&mut batch, change));
    let has_metadata = drawn.changes.last().is_some_and(|change| matches!(change.write, Write::Metadata(_)));
    let records = batch.len() as u64 + u64::from(has_metadata);
    model.accept(model.last_sequence() + records, records, drawn.changes);
}
