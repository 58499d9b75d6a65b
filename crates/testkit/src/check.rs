//! Holding a table, or a snapshot of it, against the model: same answers to every kind of question.

use std::ops::{Bound, RangeBounds};

use forebay::{Result, Snapshot};
use forebay_env::Rng;

use crate::seen::{Shown, Time};
use crate::tables::{Walk, keeps_order};
use crate::{Config, Contents, Moment, Query, Tables, walk};

type Entry = (Vec<u8>, Vec<u8>);
pub(crate) type Entries = Vec<Entry>;

/// What answers a query: the tables as they are now, or a snapshot of them.
pub(crate) struct View<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) config: &'a Config,
    pub(crate) snapshot: Option<&'a Snapshot>,
}

fn collect(scan: Result<impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>>) -> Result<Entries> {
    scan?.collect()
}

pub(crate) fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn expected(contents: &Contents, is_wanted: impl Fn(&[u8]) -> bool) -> Entries {
    contents
        .iter()
        .filter(|(key, _)| is_wanted(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// What was read but for what is doubtful, and what was wanted likewise.
pub(crate) fn certain(
    got: Entries,
    shown: &Shown<'_>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> (Entries, Entries) {
    let wanted = expected(&shown.contents, is_wanted);
    if shown.doubtful.is_empty() {
        return (got, wanted);
    }
    let (doubtful, got): (Entries, Entries) =
        got.into_iter().partition(|(key, _)| shown.doubtful.contains(key));
    for (key, value) in doubtful {
        assert_eq!(
            shown.contents.get(&key),
            Some(&value),
            "what may be gone is older than it was: {}",
            brief(&key)
        );
    }
    (got, wanted.into_iter().filter(|(key, _)| !shown.doubtful.contains(key)).collect())
}

/// Compares, and says where the first difference is rather than print everything.
pub(crate) fn compare(what: &str, got: &Entries, wanted: &Entries) {
    if got == wanted {
        return;
    }
    let at =
        got.iter().zip(wanted).position(|(got, wanted)| got != wanted).unwrap_or(got.len().min(wanted.len()));
    let (got_len, wanted_len) = (got.len(), wanted.len());
    let show = |entry: Option<&(Vec<u8>, Vec<u8>)>| match entry {
        Some((key, value)) => format!("key {} value {}", brief(key), brief(value)),
        None => "nothing".to_owned(),
    };
    let extra = got.iter().filter(|entry| !wanted.contains(entry)).count();
    let missing = wanted.iter().filter(|entry| !got.contains(entry)).count();
    let sorted = got.is_sorted_by(|older, newer| older.0 < newer.0);
    panic!(
        "{what}: {extra} wrong, {missing} missing, ascending: {sorted}, {got_len} entries where {wanted_len} were wanted; at {at} got {} where {} was wanted",
        show(got.get(at)),
        show(wanted.get(at))
    );
}

fn brief(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    format!("{shown}({})", bytes.len())
}

impl View<'_> {
    /// Asks a query and compares.
    pub(crate) fn check(&self, table: usize, shown: &Shown<'_>, query: &Query) -> Result<()> {
        match query {
            Query::Get(key) => self.check_get(table, shown, key, self.tables.get(table, key, self.snapshot)?),
            Query::MultiGet(keys) => {
                let got = self.tables.multi_get(table, keys, self.snapshot)?;
                assert_eq!(got.len(), keys.len(), "multi_get");
                keys.iter().zip(got).for_each(|(key, got)| self.check_get(table, shown, key, got));
            }
            Query::Range(low, high) => self.check_range(table, shown, borrowed(low), borrowed(high))?,
            Query::Prefix(prefix) => self.check_prefix(table, shown, prefix)?,
            Query::Walk(steps) => {
                if keeps_order(self.config, table) && shown.doubtful.is_empty() {
                    walk::check(self.tables, table, self.snapshot, &shown.contents, steps)?;
                }
            }
            Query::Pieces(count) => self.check_pieces(table, shown, *count)?,
            Query::Parts(count) => self.check_parts(table, shown, *count)?,
            Query::Count => self.check_count(table, shown)?,
            Query::All => {
                let mut got = self.tables.all(table, self.snapshot)?;
                if !keeps_order(self.config, table) {
                    got.sort();
                }
                let (got, wanted) = certain(got, shown, |_| true);
                compare(&format!("iter of table {table}"), &got, &wanted);
                let found = self.tables.metadata(table, self.snapshot)?;
                assert_eq!(found.as_deref(), shown.metadata, "metadata of table {table}");
            }
        }
        Ok(())
    }

    fn check_get(&self, table: usize, shown: &Shown<'_>, key: &[u8], got: Option<Vec<u8>>) {
        if got.is_some() || !shown.doubtful.contains(key) {
            assert_eq!(got.as_ref(), shown.contents.get(key), "get {} of table {table}", brief(key));
        }
    }

    /// The same of a table that keeps another order for a while.
    pub(crate) fn check_turned(&self, table: usize, shown: &Shown<'_>) -> Result<()> {
        let mut got = self.tables.all(table, None)?;
        got.sort();
        let (got, wanted) = certain(got, shown, |_| true);
        compare("iter of another order", &got, &wanted);
        for key in shown.contents.keys().take(20) {
            self.check_get(table, shown, key, self.tables.get(table, key, None)?);
        }
        Ok(())
    }

    fn check_range(
        &self,
        table: usize,
        shown: &Shown<'_>,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<()> {
        if !keeps_order(self.config, table) {
            return Ok(());
        }
        let bounds = (low, high);
        let is_wanted = |key: &[u8]| RangeBounds::<&[u8]>::contains(&bounds, &key);
        let scan = || self.tables.range(table, bounds, self.snapshot);
        let (forward, wanted) = certain(collect(scan())?, shown, is_wanted);
        compare("range", &forward, &wanted);
        self.check_ends("range", scan, shown, is_wanted)
    }

    /// Walks from the end, and from both ends in turns of lengths that the table decides.
    fn check_ends(
        &self,
        what: &str,
        scan: impl Fn() -> Result<Walk>,
        shown: &Shown<'_>,
        is_wanted: impl Fn(&[u8]) -> bool + Copy,
    ) -> Result<()> {
        let (mut backward, wanted) = certain(collect(scan().map(Iterator::rev))?, shown, is_wanted);
        backward.reverse();
        compare(&format!("{what} from its end"), &backward, &wanted);
        let (mut scan, mut front, mut back) = (scan()?, Vec::new(), Vec::new());
        let mut turns = Rng::new(shown.contents.len() as u64);
        loop {
            let (entry, side) = match turns.below(2) {
                0 => (scan.next(), &mut front),
                _ => (scan.next_back(), &mut back),
            };
            match entry {
                Some(entry) => side.push(entry?),
                None => break,
            }
        }
        front.extend(back.into_iter().rev());
        let (met, wanted) = certain(front, shown, is_wanted);
        compare(&format!("{what} from both ends"), &met, &wanted);
        Ok(())
    }

    fn check_prefix(&self, table: usize, shown: &Shown<'_>, prefix: &[u8]) -> Result<()> {
        if !keeps_order(self.config, table) {
            return Ok(());
        }
        let is_wanted = |key: &[u8]| key.starts_with(prefix);
        let scan = || self.tables.prefix(table, prefix, self.snapshot);
        let (got, wanted) = certain(collect(scan())?, shown, is_wanted);
        compare("prefix", &got, &wanted);
        self.check_ends("prefix", scan, shown, is_wanted)
    }

    /// Asks everything there is to ask of a table: each key there is, some there are not, and whole scans.
    pub(crate) fn check_all(&self, table: usize, shown: &Shown<'_>) -> Result<()> {
        self.check(table, shown, &Query::All)?;
        self.check_range(table, shown, Bound::Unbounded, Bound::Unbounded)?;
        for key in shown.contents.keys() {
            self.check(table, shown, &Query::Get(key.clone()))?;
            self.check(table, shown, &Query::Get([&key[..], b"~absent"].concat()))?;
        }
        Ok(())
    }
}

/// What a query is answered, but for what is doubtful. Where [`View::check`] asks nothing, that is nothing.
pub(crate) fn answer(config: &Config, table: usize, shown: &Shown<'_>, query: &Query) -> Vec<Option<Entry>> {
    let is_certain = |key: &[u8]| !shown.doubtful.contains(key);
    let get = |key: &Vec<u8>| {
        let found = shown.contents.get_key_value(key).filter(|(key, _)| is_certain(key));
        found.map(|(key, value)| (key.clone(), value.clone()))
    };
    let all = |is_wanted: &dyn Fn(&[u8]) -> bool| -> Vec<Option<Entry>> {
        expected(&shown.contents, |key| is_certain(key) && is_wanted(key)).into_iter().map(Some).collect()
    };
    match query {
        Query::Get(key) => vec![get(key)],
        Query::MultiGet(keys) => keys.iter().map(get).collect(),
        // A transaction reads no metadata of commits, so that what others give does not disturb it.
        Query::All => all(&|_| true),
        Query::Count if !config.merging[table].has_states() => vec![None; all(&|_| true).len()],
        _ if !keeps_order(config, table) => Vec::new(),
        Query::Range(low, high) => {
            let bounds = (borrowed(low), borrowed(high));
            all(&|key| RangeBounds::<&[u8]>::contains(&bounds, &key))
        }
        Query::Prefix(prefix) => all(&|key| key.starts_with(prefix)),
        Query::Walk(steps) if shown.doubtful.is_empty() => {
            walk::answers(&shown.contents, steps, config.merging[table].has_states())
        }
        Query::Walk(_) | Query::Pieces(_) | Query::Parts(_) | Query::Count => Vec::new(),
    }
}

/// Whether a table holds just this; no panic where it does not.
pub(crate) fn holds(tables: &Tables, table: usize, shown: &Shown<'_>) -> Result<bool> {
    let mut got = tables.all(table, None)?;
    got.sort();
    let fits = |(key, value): &(Vec<u8>, Vec<u8>)| shown.contents.get(key) == Some(value);
    let certain = got.iter().filter(|(key, _)| !shown.doubtful.contains(key)).count();
    Ok(got.iter().all(fits)
        && certain == shown.contents.len() - shown.doubtful.len()
        && tables.metadata(table, None)?.as_deref() == shown.metadata)
}

/// Asks everything there is to ask of all tables, where nothing expires.
pub fn assert_same(tables: &Tables, config: &Config, moment: &Moment) -> Result<()> {
    let view = View { tables, config, snapshot: None };
    let time = Time { now: 0, highest: 0 };
    (0..config.tables()).try_for_each(|table| view.check_all(table, &Shown::of(config, moment, table, time)))
}
