//! `load --sorted`: records that stand in the order of their keys go to lists of their own, without the log. All of
//! them are there at the end or, where something is wrong, none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay::{Database, Error, Layout, OrderedTable, Result};

use super::args::LoadArgs;
use super::pump::{OnBad, Sink, Stop, Tally, over_limit};
use crate::input::{Source, TroubleKind};
use crate::progress::Progress;

/// Every how many records a person is told.
const TOLD_EVERY: u64 = 1 << 12;

/// The table, which is made where it is missing: of runs, unless another layout is asked for.
pub(super) fn table(db: &Database, args: &LoadArgs) -> Result<OrderedTable> {
    let name = &args.target.table;
    let found = db.tables().into_iter().find(|(table, _)| table == name).map(|(_, layout)| layout);
    if let Some(layout) = args.layout.or(found).filter(|layout| !layout.is_ordered()) {
        return Err(Error::Invalid(format!(
            "table `{name}` has layout {layout}, in hash order; --sorted is for layouts of runs: load into a new table, or give \
             this one another with `forebay layout`, such as leveling"
        )));
    }
    let layout = args.layout.or_else(|| found.is_none().then(|| Layout::leveling(10)));
    let table = db.table(name);
    let table = layout.into_iter().fold(table, |table, layout| table.layout(layout));
    let table = args.prefix_filter.into_iter().fold(table, |table, prefixes| table.prefix_filter(prefixes));
    let bound = args.max_space_amplification.into_iter();
    let table = bound.fold(table, |table, most| table.max_space_amplification(most));
    let table = args.values_apart.into_iter().fold(table, |table, bytes| table.values_apart(bytes));
    args.ttl.into_iter().fold(table, |table, ttl| table.time_to_live(ttl)).open_ordered()
}

/// See the module.
pub(super) struct Sorted<'a> {
    pub(super) table: &'a OrderedTable,
    pub(super) progress: Arc<Progress>,
    pub(super) on_bad: OnBad,
    /// What to call the input.
    pub(super) name: String,
    pub(super) tally: Tally,
}

impl Sink for Sorted<'_> {
    fn take_all(&mut self, source: impl Source + Send + 'static) -> Result<(), Stop> {
        let skipped = Arc::new(AtomicU64::new(0));
        let record_bytes = Arc::new(AtomicU64::new(0));
        let entries = Entries {
            source,
            name: self.name.clone(),
            on_bad: self.on_bad,
            progress: Arc::clone(&self.progress),
            skipped: Arc::clone(&skipped),
            record_bytes: Arc::clone(&record_bytes),
            last: None,
            records: 0,
        };
        self.tally.records = self.table.ingest(entries).map_err(Stop::Engine)?;
        self.tally.record_bytes = record_bytes.load(Ordering::Relaxed);
        self.tally.skipped = skipped.load(Ordering::Relaxed);
        self.tally.input_bytes = self.progress.bytes_read();
        self.progress.acknowledge(self.tally.records, self.tally.input_bytes);
        Ok(())
    }
}

/// A source's records as entries whose keys ascend.
struct Entries<S> {
    source: S,
    name: String,
    on_bad: OnBad,
    progress: Arc<Progress>,
    skipped: Arc<AtomicU64>,
    record_bytes: Arc<AtomicU64>,
    /// The key before.
    last: Option<Vec<u8>>,
    records: u64,
}

impl<S: Source> Entries<S> {
    fn refused(&self, reason: &str) -> Error {
        let (name, at) = (&self.name, self.source.position());
        Error::Invalid(format!(
            "{name}: record {} at byte offset {}: {reason} (nothing was loaded)",
            at.number, at.offset
        ))
    }
}

impl<S: Source> Iterator for Entries<S> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let bad = match self.source.next() {
                Ok(Some((key, value))) => match over_limit(key, value) {
                    None => {
                        if self.last.as_deref().is_some_and(|last| last >= key) {
                            let reason = "its key is not above that of the record before; --sorted takes keys that ascend as bytes, each once";
                            return Some(Err(self.refused(reason)));
                        }
                        let entry = (key.to_vec(), value.to_vec());
                        let last = self.last.get_or_insert_default();
                        last.clear();
                        last.extend_from_slice(key);
                        self.records += 1;
                        self.record_bytes.fetch_add((key.len() + value.len()) as u64, Ordering::Relaxed);
                        if self.records.is_multiple_of(TOLD_EVERY) {
                            self.progress.see(self.records, self.source.bytes_read());
                        }
                        return Some(Ok(entry));
                    }
                    Some(reason) => reason,
                },
                Ok(None) => {
                    self.progress.see(self.records, self.source.bytes_read());
                    return None;
                }
                Err(trouble) => match *trouble {
                    TroubleKind::Bad(reason) => reason,
                    TroubleKind::Read(error) => {
                        let reason = format!("cannot read {}: {error} (nothing was loaded)", self.name);
                        return Some(Err(Error::Invalid(reason)));
                    }
                },
            };
            match self.on_bad {
                OnBad::Skip => self.skipped.fetch_add(1, Ordering::Relaxed),
                OnBad::Stop => return Some(Err(self.refused(&bad))),
            };
        }
    }
}
