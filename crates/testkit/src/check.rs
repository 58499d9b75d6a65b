//! Holding a table, or a snapshot of it, against the model: same answers to every kind of question.

use std::ops::{Bound, RangeBounds};
use std::path::Path;

use forebay::env::Env;
use forebay::{Result, Scan, Snapshot};

use crate::tables::keeps_order;
use crate::{Config, Contents, Query, TABLES, Tables, walk};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// What answers a query: the tables as they are now, or a snapshot of them.
pub(crate) struct View<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) config: &'a Config,
    pub(crate) snapshot: Option<&'a Snapshot>,
}

/// All that a database must show at some moment.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What tables hold.
    pub tables: [Contents; TABLES],
    /// What commits told of themselves.
    pub metadata: [Option<Vec<u8>>; TABLES],
}

fn collect(scan: Result<Scan>) -> Result<Entries> {
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

/// Compares, and says where the first difference is rather than print everything.
fn compare(what: &str, got: &Entries, wanted: &Entries) {
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
    pub(crate) fn check(
        &self,
        table: usize,
        contents: &Contents,
        metadata: Option<&[u8]>,
        query: &Query,
    ) -> Result<()> {
        match query {
            Query::Get(key) => {
                let got = self.tables.get(table, key, self.snapshot)?;
                assert_eq!(got.as_ref(), contents.get(key), "get {}", brief(key));
            }
            Query::MultiGet(keys) => {
                let got = self.tables.multi_get(table, keys, self.snapshot)?;
                let wanted: Vec<_> = keys.iter().map(|key| contents.get(key).cloned()).collect();
                assert_eq!(got, wanted, "multi_get");
            }
            Query::Range(low, high) => self.check_range(table, contents, borrowed(low), borrowed(high))?,
            Query::Prefix(prefix) => self.check_prefix(table, contents, prefix)?,
            Query::Walk(steps) => {
                if let Some(ordered) = self.tables.ordered(table) {
                    walk::check(ordered, self.snapshot, contents, steps)?;
                }
            }
            Query::All => {
                let mut got = self.tables.all(table, self.snapshot)?;
                if !keeps_order(self.config, table) {
                    got.sort();
                }
                compare("iter", &got, &expected(contents, |_| true));
                let found = self.tables.metadata(table, self.snapshot)?;
                assert_eq!(found.as_deref(), metadata, "metadata of table {table}");
            }
        }
        Ok(())
    }

    /// The same of a table that keeps another order for a while.
    pub(crate) fn check_turned(&self, table: usize, contents: &Contents) -> Result<()> {
        let mut got = self.tables.all(table, None)?;
        got.sort();
        compare("iter", &got, &expected(contents, |_| true));
        for (key, value) in contents.iter().take(20) {
            assert_eq!(self.tables.get(table, key, None)?.as_ref(), Some(value), "of table {table}");
        }
        Ok(())
    }

    fn check_range(
        &self,
        table: usize,
        contents: &Contents,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<()> {
        let Some(ordered) = self.tables.ordered(table) else { return Ok(()) };
        let bounds = (low, high);
        let mut wanted = expected(contents, |key| RangeBounds::<&[u8]>::contains(&bounds, &key));
        let (forward, backward) = match self.snapshot {
            Some(snapshot) => {
                (collect(snapshot.range(ordered, bounds))?, collect(snapshot.range_reverse(ordered, bounds))?)
            }
            None => (collect(ordered.range(bounds))?, collect(ordered.range_reverse(bounds))?),
        };
        compare("range", &forward, &wanted);
        wanted.reverse();
        compare("range_reverse", &backward, &wanted);
        Ok(())
    }

    fn check_prefix(&self, table: usize, contents: &Contents, prefix: &[u8]) -> Result<()> {
        let Some(ordered) = self.tables.ordered(table) else { return Ok(()) };
        let mut wanted = expected(contents, |key| key.starts_with(prefix));
        if let Some(snapshot) = self.snapshot {
            compare("snapshot prefix", &collect(snapshot.prefix(ordered, prefix))?, &wanted);
            return Ok(());
        }
        compare("prefix", &collect(ordered.prefix(prefix))?, &wanted);
        wanted.reverse();
        compare("prefix_reverse", &collect(ordered.prefix_reverse(prefix))?, &wanted);
        Ok(())
    }
}

/// Asks everything there is to ask of all tables: each key there is, some there are not, and whole scans.
pub fn assert_same(tables: &Tables, config: &Config, seen: &Seen) -> Result<()> {
    let view = View { tables, config, snapshot: None };
    for (table, (contents, metadata)) in seen.tables.iter().zip(&seen.metadata).enumerate() {
        let metadata = metadata.as_deref();
        view.check(table, contents, metadata, &Query::All)?;
        view.check_range(table, contents, Bound::Unbounded, Bound::Unbounded)?;
        for key in contents.keys() {
            view.check(table, contents, metadata, &Query::Get(key.clone()))?;
            view.check(table, contents, metadata, &Query::Get([&key[..], b"~absent"].concat()))?;
        }
    }
    Ok(())
}

/// Opens a checkpoint for reading and compares all of it.
pub fn assert_checkpoint(env: &Env, config: &Config, dir: &Path, seen: &Seen) -> Result<()> {
    let db = forebay::Database::open(dir, config.options(env).read_only(true))?;
    assert_same(&Tables::open(&db, config)?, config, seen)?;
    assert_eq!(db.verify(&mut |_, _| ())?.problems, Vec::<String>::new(), "a checkpoint does not verify");
    Ok(())
}
