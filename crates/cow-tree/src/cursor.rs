//! Walking the records of a tree inside a range, in either direction, from wherever one asks for.
//!
//! **Invariant:** what the cursor stands on lies inside the range; after an error it stands nowhere.

use std::borrow::Cow;
use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Bound, Error, Kind, Range, Record, Result};
use forebay_store::Caching;
use smallvec::SmallVec;

use crate::ahead::Ahead;
use crate::extent::Extent;
use crate::file::Reader;
use crate::node::{Key, Node, Value};
use crate::tree::Tree;
use crate::windows::{Reading, Source, Windows};

/// A place between records, as lookups give it.
type Place<'a> = (u64, &'a [u8]);

/// A walk over part of a tree.
pub struct TreeCursor {
    tree: Tree,
    range: Arc<Range>,
    direction: Direction,
    reading: Reading,
    windows: Windows,
    /// The inner nodes down to the leaf, and which child the way goes by.
    path: SmallVec<[(Arc<Node>, usize); 4]>,
    leaf: Option<Arc<Node>>,
    at: usize,
    key: Key,
    /// The value, where it is kept apart and was read.
    apart: Vec<u8>,
    /// Those that a scan comes to.
    ahead: Ahead,
    caching: Caching,
    prefix: Option<u64>,
}

impl TreeCursor {
    /// A walk over the records of the range. A job's stands on the first of them; a scan's has read nothing and stands
    /// nowhere until it is [sought](Self::seek).
    pub fn new(tree: &Tree, range: &Range, direction: Direction, reading: Reading) -> Result<Self> {
        let windows = Windows::new(tree, reading)?;
        let reads_on = matches!(reading, Reading::Job { .. });
        let mut cursor = Self {
            tree: tree.clone(),
            range: Arc::new(range.clone()),
            direction,
            reading,
            windows: if reads_on { windows.reading_on() } else { windows },
            path: SmallVec::new(),
            leaf: None,
            at: 0,
            key: Key::new(),
            apart: Vec::new(),
            ahead: Ahead::default(),
            caching: Caching::default(),
            prefix: None,
        };
        if reads_on {
            cursor.seek(None, direction)?;
        }
        Ok(cursor)
    }

    /// From now on leaves that are read by themselves are kept in the cache, or not.
    pub fn set_caching(&mut self, caching: Caching) {
        self.caching = caching;
    }

    /// Goes to the first record at or behind a place, given by prefix and key (forward), or to the last one before it
    /// (backward); without a place, to the first or last of the range. Device reads: the leaf, or two where the place
    /// falls between leaves, unless the cache has them.
    pub fn seek(&mut self, place: Option<Place<'_>>, direction: Direction) -> Result<()> {
        (self.direction, self.prefix, self.leaf) = (direction, None, None);
        self.path.clear();
        self.ahead.restart();
        let top = match self.tree.top() {
            Err(error) if self.passes_over(&error) => return Ok(()),
            top => top?,
        };
        let Some(top) = top.filter(|_| !self.range.is_empty()) else { return Ok(()) };
        let range = Arc::clone(&self.range);
        fn edge(bound: &Bound) -> Place<'_> {
            (bound.prefix, &bound.key)
        }
        let start = match direction {
            Direction::Forward => Some(place.map_or(edge(&range.low), |place| place.max(edge(&range.low)))),
            Direction::Backward => match (place, range.high.as_ref().map(edge)) {
                (Some(place), Some(high)) => Some(place.min(high)),
                (place, high) => place.or(high),
            },
        };
        match self.descend(top.node, top.level, start) {
            Err(error) if self.passes_over(&error) => self.leave(),
            outcome => outcome,
        }
    }

    /// Goes from a node to the leaf, and in it to the record, where the walk begins.
    fn descend(&mut self, mut extent: Extent, mut level: u8, start: Option<Place<'_>>) -> Result<()> {
        let order = self.tree.order();
        while level > 0 {
            let node = self.tree.node(extent, level, self.windows.reader())?;
            let index = match (self.direction, start) {
                (Direction::Forward, None) => 0,
                (Direction::Forward, Some(place)) => node.child_at(order, place),
                (Direction::Backward, None) => node.len() - 1,
                (Direction::Backward, Some(place)) => node.child_before(order, place),
            };
            extent = node.child(index).node;
            level -= 1;
            self.path.push((node, index));
        }
        let leaf = self.read_leaf(extent)?;
        let split = start.map(|place| leaf.lower_bound(order, place));
        let at = match self.direction {
            Direction::Forward => split.unwrap_or(0),
            Direction::Backward => split.unwrap_or(leaf.len()).wrapping_sub(1),
        };
        self.leaf = Some(leaf);
        self.stand_on(at)
    }

    fn read_leaf(&mut self, extent: Extent) -> Result<Arc<Node>> {
        let is_scan = matches!(self.windows.reader(), Reader::Lookup);
        if let Some(leaf) = self.tree.cached(extent, self.windows.reader()) {
            return self.tree.of_level(leaf, 0);
        }
        let mut bytes = Vec::new();
        let source = self.windows.read(extent, &mut bytes)?;
        let leaf = self.tree.take_apart(bytes, extent, 0)?;
        let is_kept = is_scan && source == Source::Alone && self.caching == Caching::Keep;
        Ok(if is_kept { self.tree.keep(leaf) } else { Arc::new(leaf) })
    }

    /// Stands on a record of the leaf, or on the next leaf's first one, or nowhere.
    fn stand_on(&mut self, mut at: usize) -> Result<()> {
        loop {
            match self.stand_at(at) {
                // Its value is damaged.
                Err(error) if self.leaf.is_some() && self.passes_over(&error) => at = self.next_to(at),
                outcome => return outcome,
            }
        }
    }

    fn next_to(&self, at: usize) -> usize {
        match self.direction {
            Direction::Forward => at + 1,
            Direction::Backward => at.wrapping_sub(1),
        }
    }

    /// Notes what cannot be read; `false` where that must not be passed over. The keys concerned lie between those of
    /// the way that has been come.
    fn passes_over(&self, error: &Error) -> bool {
        let bound = |key: Key| Bound { prefix: self.tree.order().prefix(&key), key: key[..].into() };
        let keys = self.path.last().map(|(node, index)| Range {
            low: bound(node.key(*index)),
            high: (index + 1 < node.len()).then(|| bound(node.key(index + 1))),
        });
        let gaps = self.tree.salvage();
        gaps.is_some_and(|gaps| gaps.pass_over(self.tree.path(), error, keys))
    }

    fn stand_at(&mut self, at: usize) -> Result<()> {
        let Some(leaf) = self.leaf.as_ref().filter(|leaf| at < leaf.len()) else { return self.leave() };
        leaf.key_into(at, &mut self.key);
        let prefix = self.tree.order().prefix(&self.key);
        if !self.is_inside(prefix, &self.key) {
            return Ok(());
        }
        self.apart.clear();
        if let Value::Apart(extent) = leaf.value(at) {
            let leaf = Arc::clone(leaf);
            self.read_value(&leaf, at, extent)?;
        }
        (self.at, self.prefix) = (at, Some(prefix));
        Ok(())
    }

    /// Whether a key is not behind the range, on the walk's way.
    fn is_inside(&self, prefix: u64, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => self.range.is_below_high(prefix, key),
            Direction::Backward => self.range.low.place(prefix, key).is_ge(),
        }
    }

    /// Reads the value of a record of the leaf, which stands beside it; a scan that goes on, those of the next ones with
    /// it.
    fn read_value(&mut self, leaf: &Node, at: usize, extent: Extent) -> Result<()> {
        match self.reading {
            Reading::Keys => return Ok(()),
            Reading::Scan if !self.windows.has(extent) => {
                if let Some(value) = self.ahead(leaf, at, extent)? {
                    self.apart = value;
                    return self.tree.unpack(extent, &mut self.apart);
                }
            }
            Reading::Scan | Reading::Job { .. } | Reading::Check => {}
        }
        self.windows.read(extent, &mut self.apart).map(drop)
    }

    /// What was read before its turn of a value, or is now, with those that follow.
    fn ahead(&mut self, leaf: &Node, at: usize, extent: Extent) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.ahead.take(extent) {
            return Ok(Some(value));
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        let fetched = ahead.fetch(&self.tree, self.upcoming(leaf, at));
        self.ahead = ahead;
        fetched.map(|()| self.ahead.take(extent))
    }

    /// Where the values lie of a leaf's records that the walk comes to, from this one on.
    fn upcoming<'a>(&'a self, leaf: &'a Node, at: usize) -> impl Iterator<Item = Extent> + 'a {
        let places = std::iter::successors(Some(at), move |&at| Some(self.next_to(at)));
        let mut key = Key::new();
        let places = places.take_while(move |&at| {
            at < leaf.len() && {
                leaf.key_into(at, &mut key);
                self.is_inside(self.tree.order().prefix(&key), &key)
            }
        });
        places.filter_map(move |at| match leaf.value(at) {
            Value::Apart(extent) => Some(extent),
            Value::Inline(_) => None,
        })
    }

    /// Goes on to the next leaf, unless the range ends before it.
    fn leave(&mut self) -> Result<()> {
        while let Some((node, index)) = self.path.last_mut() {
            // The bound between this child and the next one.
            let (next, bound) = match self.direction {
                Direction::Forward => (*index + 1, *index + 1),
                Direction::Backward => (index.wrapping_sub(1), *index),
            };
            if next >= node.len() {
                self.path.pop();
                continue;
            }
            let key = node.key(bound);
            let prefix = self.tree.order().prefix(&key);
            let goes_on = match self.direction {
                Direction::Forward => self.range.is_below_high(prefix, &key),
                Direction::Backward => self.range.low.place(prefix, &key).is_gt(),
            };
            if !goes_on {
                return Ok(());
            }
            *index = next;
            let (child, level) = (node.child(next).node, node.level() - 1);
            self.leaf = None;
            match self.descend(child, level, None) {
                Err(error) if self.leaf.is_none() && self.passes_over(&error) => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// What the record here does.
    pub fn kind(&self) -> Kind {
        self.leaf.as_ref().map_or(Kind::Delete, |leaf| leaf.kind(self.at))
    }

    /// The value of the record here; read now, where it was left where it is.
    pub fn value(&self) -> Result<Cow<'_, [u8]>> {
        let extent = match self.leaf.as_ref().map(|leaf| leaf.value(self.at)) {
            Some(Value::Apart(extent)) if matches!(self.reading, Reading::Keys) => extent,
            _ => return Ok(Cow::Borrowed(self.record().value)),
        };
        let mut bytes = Vec::new();
        self.tree.read_whole(extent, &mut bytes, Reader::Lookup)?;
        Ok(Cow::Owned(bytes))
    }
}

impl Cursor for TreeCursor {
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    /// With an empty value where that is kept apart and [`Reading::Keys`] leaves it there.
    fn record(&self) -> Record<'_> {
        let value = match self.leaf.as_ref().map(|leaf| leaf.value(self.at)) {
            Some(Value::Inline(value)) => value,
            _ => &self.apart,
        };
        Record { kind: self.kind(), key: &self.key, value }
    }

    fn advance(&mut self) -> Result<()> {
        self.prefix = None;
        self.stand_on(self.next_to(self.at))
    }
}
