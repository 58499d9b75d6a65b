//! A place in memory for groups that an aggregator has no room for: a model of one in files, which holds what comes to
//! what was told of it, and fails when it is asked to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_aggregate::{
    ExpectedGroups, GroupsView, HASH_SEED, SpillTarget, SpillTerms, SpilledGroups, Unpublished,
};
use forebay_base::merge::Cursor;
use forebay_base::{Combine, Error, Order, Record, Result};
use forebay_env::sync::Mutex;

/// The hash of a key, and the key.
type HashedKey = (u64, Vec<u8>);
type Groups = BTreeMap<HashedKey, Vec<u8>>;

/// See the module. A copy is the same place.
#[derive(Clone)]
pub(crate) struct Place(Arc<Told>);

struct Told {
    order: Order,
    /// How many writes are to fail next, and how many publications.
    failing_writes: AtomicU64,
    failing_publications: AtomicU64,
    /// What was published, and how often anything was.
    written_bytes: AtomicU64,
    publications: AtomicU64,
    watcher: Mutex<Option<Arc<Watcher>>>,
}

/// Who is told of a moment while groups are on their way.
type Watcher = dyn Fn(Moment) + Send + Sync;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A group was written, and nothing is published.
    Writing,
    /// It is published, and who published it does not know yet.
    Publishing,
}

impl Default for Place {
    fn default() -> Self {
        Self::ordered(Order::Hashed { seed: HASH_SEED })
    }
}

impl Place {
    /// For keys of which many have equal hashes.
    pub(crate) fn colliding(bits: u32) -> Self {
        Self::ordered(Order::Colliding { bits })
    }

    fn ordered(order: Order) -> Self {
        Self(Arc::new(Told {
            order,
            failing_writes: AtomicU64::new(0),
            failing_publications: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            publications: AtomicU64::new(0),
            watcher: Mutex::default(),
        }))
    }

    pub(crate) fn fail(&self, writes: u64, publications: u64) {
        self.0.failing_writes.store(writes, Ordering::Relaxed);
        self.0.failing_publications.store(publications, Ordering::Relaxed);
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.0.written_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn publications(&self) -> u64 {
        self.0.publications.load(Ordering::Relaxed)
    }

    pub(crate) fn watch(&self, watcher: impl Fn(Moment) + Send + Sync + 'static) {
        *self.0.watcher.lock() = Some(Arc::new(watcher));
    }

    /// How often it is still in use.
    pub(crate) fn users(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl Told {
    fn tell(&self, moment: Moment) {
        let watcher = self.watcher.lock().clone();
        watcher.into_iter().for_each(|watcher| watcher(moment));
    }
}

fn fails(left: &AtomicU64) -> Result<()> {
    let one = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    one.map_or(Ok(()), |_| Err(Error::io("write", std::path::Path::new("/place"), &full)))
}

impl SpillTarget for Place {
    fn open(&self, terms: SpillTerms) -> Result<Box<dyn SpilledGroups>> {
        fails(&self.0.failing_writes)?;
        Ok(Box::new(Kept { told: Arc::clone(&self.0), rule: terms.rule, groups: Mutex::default() }))
    }
}

struct Kept {
    told: Arc<Told>,
    rule: Arc<dyn Combine>,
    groups: Mutex<Arc<Groups>>,
}

impl SpilledGroups for Kept {
    fn write<'s>(
        &'s self,
        mut groups: Box<dyn Cursor + Send>,
        expected: ExpectedGroups,
    ) -> Result<Box<dyn Unpublished + 's>> {
        let mut list = Groups::new();
        while let Some(prefix) = groups.prefix() {
            let Record { key, value: state, .. } = groups.record();
            assert_eq!(prefix, self.told.order.prefix(key), "the prefix is the key's hash");
            let lengths = (key.len() as u32, state.len() as u32);
            assert!(expected.lengths.is_none_or(|expected| expected == lengths), "{lengths:?}");
            let place = (prefix, key.to_vec());
            assert!(list.last_key_value().is_none_or(|(last, _)| *last < place), "groups ascend");
            list.insert(place, state.to_vec());
            if list.len() == 100 {
                fails(&self.told.failing_writes)?;
            }
            groups.advance()?;
            self.told.tell(Moment::Writing);
        }
        assert!(list.len() as u64 <= expected.groups, "there are {} of {expected:?}", list.len());
        Ok(Box::new(List { kept: self, list }))
    }

    fn view(&self) -> Result<Arc<dyn GroupsView>> {
        Ok(Arc::new(Seen { order: self.told.order, groups: Arc::clone(&self.groups.lock()) }))
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn device_reads(&self) -> u64 {
        0
    }
}

struct Seen {
    order: Order,
    groups: Arc<Groups>,
}

impl GroupsView for Seen {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.groups.get(&(self.order.prefix(key), key.to_vec())).cloned())
    }

    fn cursor(&self, behind: Option<&[u8]>) -> Result<Box<dyn Cursor + Send>> {
        let behind = behind.map(|key| (self.order.prefix(key), key.to_vec()));
        let is_asked = |place: &(u64, Vec<u8>)| behind.as_ref().is_none_or(|behind| place > behind);
        let groups = self.groups.iter().filter(|(place, _)| is_asked(place));
        let groups: Vec<_> = groups.map(|(place, state)| (place.clone(), state.clone())).collect();
        Ok(Box::new(Walk { groups, at: 0 }))
    }
}

struct List<'k> {
    kept: &'k Kept,
    list: Groups,
}

impl Unpublished for List<'_> {
    fn publish(self: Box<Self>) -> Result<()> {
        let Kept { told, rule, groups } = self.kept;
        fails(&told.failing_publications)?;
        let mut all = groups.lock();
        let groups = Arc::make_mut(&mut all);
        for (place, state) in self.list {
            let bytes = (place.1.len() + state.len()) as u64;
            told.written_bytes.fetch_add(bytes, Ordering::Relaxed);
            let merged = match groups.get(&place) {
                None => state,
                Some(older) => {
                    let mut merged = Vec::new();
                    rule.merge_states(&place.1, &[&state, older], &mut merged);
                    merged
                }
            };
            groups.insert(place, merged);
        }
        drop(all);
        told.publications.fetch_add(1, Ordering::Relaxed);
        told.tell(Moment::Publishing);
        Ok(())
    }

    fn before(&self) -> Option<Arc<dyn GroupsView>> {
        self.kept.view().ok()
    }
}

struct Walk {
    groups: Vec<(HashedKey, Vec<u8>)>,
    at: usize,
}

impl Cursor for Walk {
    fn prefix(&self) -> Option<u64> {
        self.groups.get(self.at).map(|((prefix, _), _)| *prefix)
    }

    fn record(&self) -> Record<'_> {
        let ((_, key), state) = &self.groups[self.at];
        Record::put(key, state)
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}
