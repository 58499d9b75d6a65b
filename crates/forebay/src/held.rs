//! Log segments that are absorbed and needed all the same: for what tables keep in memory of them.
//!
//! **Invariant:** what the manifest counts as absorbed is durable: in lists, or in a segment that is synced and held.

use std::sync::Arc;

use forebay_base::Result;
use forebay_store::WriteBuffer;
use forebay_store::manifest::{Change, Edit, LogMark};

use crate::engine::Engine;
use crate::ledger::Ledger;

/// A log segment that is needed for what tables keep in memory of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The last record before it.
    pub(crate) before: u64,
    /// How long it is.
    pub(crate) bytes: u64,
}

impl Engine {
    /// Makes durable what log segments hold for tables in memory: the manifest is about to count it as absorbed.
    pub(crate) fn sync_held(&self, mark: &LogMark) -> Result<()> {
        match &self.log {
            Some(log) if mark.low < mark.absorbed => log.sync_to(mark.absorbed.1),
            _ => Ok(()),
        }
    }

    /// Tells the manifest which log segments are absorbed, where it knows of fewer.
    pub(crate) fn tell_mark(&self, ledger: &mut Ledger) -> Result<()> {
        if ledger.log_is_ahead {
            self.sync_held(&ledger.log)?;
            let log = Some(ledger.log);
            self.append(ledger, &Edit::Change(Change { log, ..Change::default() }))?;
            ledger.log_is_ahead = false;
        }
        Ok(())
    }
}

impl Ledger {
    /// How far the log is needed once a buffer is absorbed, if one is, of which the last record is known, and tables in
    /// memory need it from this segment on; and what is then held for them.
    pub(crate) fn log_after(
        &self,
        first_needed: Option<u64>,
        absorbed: Option<&(Arc<WriteBuffer>, u64)>,
    ) -> (LogMark, Option<(u64, Held)>) {
        let mut log = self.log;
        let held = absorbed.map(|(buffer, sequence)| {
            let held = Held { before: log.absorbed.1, bytes: buffer.len() as u64 };
            log.absorbed = (buffer.segment() + 1, *sequence);
            (buffer.segment(), held)
        });
        let before = |segment: u64| {
            let all = self.held.iter().map(|(segment, held)| (*segment, held.before));
            let mut needed = all.chain(held.map(|(segment, held)| (segment, held.before)));
            needed.find(|(held, _)| *held >= segment)
        };
        log.low = first_needed.and_then(before).unwrap_or(log.absorbed);
        (log, held)
    }
}
