//! The tables of a version, by id and by name. A version differs from the one before in few tables, so both share what
//! is the same: a change copies one chunk of either map, and the list of chunks.
//!
//! **Invariant:** no chunk is empty or longer than [`CHUNK_MAX`]; keys ascend in and across chunks.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::versions::TableState;

/// As many entries are copied for a change at the most. A list of chunks grows with a part of that of all entries.
const CHUNK_MAX: usize = 128;

/// The names of so many tables are kept after they were dropped.
const DROPPED_MAX: usize = 128;

/// Tables. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    by_id: SharedMap<u32, Arc<TableState>>,
    ids: SharedMap<String, u32>,
    /// The ones that were dropped last, oldest first, to name them to who still has a handle.
    dropped: Arc<VecDeque<(u32, String)>>,
}

/// A sorted map of which clones share what they have in common.
#[derive(Clone)]
struct SharedMap<K, V> {
    chunks: Vec<Arc<Vec<(K, V)>>>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The chunk that has a key if any has.
    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let begins = |chunk: &Arc<Vec<(K, V)>>| chunk.first().is_some_and(|(first, _)| first.borrow() <= key);
        self.chunks.partition_point(begins).saturating_sub(1)
    }

    fn place<Q: Ord + ?Sized>(chunk: &[(K, V)], key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        chunk.binary_search_by(|(other, _)| other.borrow().cmp(key))
    }

    fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        Some(&chunk[Self::place(chunk, key).ok()?].1)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let index = self.chunk_of(key);
        let chunk = self.chunks.get_mut(index)?;
        let place = Self::place(chunk, key).ok()?;
        Some(&mut Arc::make_mut(chunk)[place].1)
    }

    fn insert(&mut self, key: K, value: V) {
        let index = self.chunk_of(&key);
        let Some(chunk) = self.chunks.get_mut(index) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            return;
        };
        let chunk = Arc::make_mut(chunk);
        match Self::place(chunk, &key) {
            Ok(place) => chunk[place].1 = value,
            Err(place) => chunk.insert(place, (key, value)),
        }
        if chunk.len() > CHUNK_MAX {
            let rest = chunk.split_off(CHUNK_MAX / 2);
            self.chunks.insert(index + 1, Arc::new(rest));
        }
        debug_assert!(
            self.is_sound_at(index),
            "chunks are neither empty nor too long, and keys ascend across them"
        );
    }

    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = self.chunk_of(key);
        let chunk = self.chunks.get_mut(index)?;
        let place = Self::place(chunk, key).ok()?;
        let chunk = Arc::make_mut(chunk);
        let (_, value) = chunk.remove(place);
        if chunk.is_empty() {
            self.chunks.remove(index);
        }
        debug_assert!(
            self.is_sound_at(index),
            "chunks are neither empty nor too long, and keys ascend across them"
        );
        Some(value)
    }

    /// Whether the invariant holds of a chunk, if there is one, and of where it meets the next.
    fn is_sound_at(&self, index: usize) -> bool {
        let Some(chunk) = self.chunks.get(index) else { return true };
        let next = self.chunks.get(index + 1).and_then(|next| next.first());
        let meets = |(last, _): &(K, V)| next.is_none_or(|(first, _)| last < first);
        chunk.len() <= CHUNK_MAX && chunk.last().is_some_and(meets)
    }

    fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }
}

impl Tables {
    /// How many there are, and the highest number: as numbers are given once, other ones where any has come or gone.
    pub(crate) fn ends(&self) -> (usize, Option<u32>) {
        let count = self.by_id.chunks.iter().map(|chunk| chunk.len()).sum();
        (count, self.by_id.chunks.last().and_then(|chunk| chunk.last()).map(|(id, _)| *id))
    }

    pub(crate) fn get(&self, id: &u32) -> Option<&Arc<TableState>> {
        self.by_id.get(id)
    }

    pub(crate) fn contains_key(&self, id: &u32) -> bool {
        self.get(id).is_some()
    }

    /// The table of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<TableState>> {
        self.get(self.ids.get(name)?)
    }

    /// Puts another version of a table, which has its name, in the place of one that is there.
    pub(crate) fn replace(&mut self, id: u32, change: impl FnOnce(&TableState) -> Arc<TableState>) {
        if let Some(table) = self.by_id.get_mut(&id) {
            let next = change(table);
            debug_assert_eq!(
                (next.id, &next.name),
                (id, &table.name),
                "a table keeps its number and its name"
            );
            debug_assert!(next.generation >= table.generation, "generations never fall");
            *table = next;
        }
    }

    pub(crate) fn insert(&mut self, table: Arc<TableState>) {
        self.ids.insert(table.name.clone(), table.id);
        self.by_id.insert(table.id, table);
    }

    pub(crate) fn remove(&mut self, id: u32) {
        if let Some(table) = self.by_id.remove(&id) {
            self.ids.remove(table.name.as_str());
            let dropped = Arc::make_mut(&mut self.dropped);
            dropped.push_back((id, table.name.clone()));
            if dropped.len() > DROPPED_MAX {
                dropped.pop_front();
            }
            debug_assert!(dropped.len() <= DROPPED_MAX, "names of dropped tables are few");
        }
    }

    /// A table that was dropped, as a message begins with it: by its name, if that is kept.
    pub(crate) fn named_dropped(&self, id: u32) -> String {
        debug_assert!(!self.contains_key(&id), "table {id} is gone");
        match self.dropped.iter().rev().find(|(dropped, _)| *dropped == id) {
            Some((_, name)) => format!("table `{name}`"),
            None => "the table".into(),
        }
    }

    /// By id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&u32, &Arc<TableState>)> {
        self.by_id.iter()
    }

    /// By id.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.by_id.iter().map(|(_, table)| table)
    }
}

impl FromIterator<Arc<TableState>> for Tables {
    fn from_iter<T: IntoIterator<Item = Arc<TableState>>>(all: T) -> Self {
        let mut tables = Self::default();
        all.into_iter().for_each(|table| tables.insert(table));
        tables
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_env::Rng;

    use super::*;

    #[test]
    fn a_shared_map_is_a_map_and_clones_are_what_they_were() {
        let mut rng = Rng::new(5);
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut kept: Vec<(SharedMap<u64, u64>, BTreeMap<u64, u64>)> = Vec::new();
        for round in 0..20_000u64 {
            let key = rng.next_u64() % 2000;
            match rng.next_u64() % if round < 12_000 { 3 } else { 9 } {
                0 | 1 => {
                    map.insert(key, round);
                    model.insert(key, round);
                }
                2 => {
                    let value = map.get_mut(&key).map(|value| std::mem::replace(value, round));
                    assert_eq!(value, model.get_mut(&key).map(|value| std::mem::replace(value, round)));
                }
                _ => assert_eq!(map.remove(&key), model.remove(&key), "{key}"),
            }
            assert_eq!(map.get(&key), model.get(&key));
            if round % 1000 == 0 {
                kept.push((map.clone(), model.clone()));
            }
        }
        kept.push((map, model));
        for (map, model) in kept {
            assert!(map.iter().eq(model.iter()));
            assert!(map.chunks.iter().all(|chunk| (1..=CHUNK_MAX).contains(&chunk.len())));
        }
    }

    #[test]
    fn a_change_copies_one_chunk() {
        let mut map = SharedMap::default();
        (0..10_000u32).for_each(|key| map.insert(key, key));
        let before = map.clone();
        map.insert(5000, 1);
        let shared = map.chunks.iter().zip(&before.chunks).filter(|(now, then)| Arc::ptr_eq(now, then));
        assert_eq!((shared.count() + 1, map.chunks.len()), (before.chunks.len(), before.chunks.len()));
    }
}
