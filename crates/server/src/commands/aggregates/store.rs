//! [`Store`]: where the states of an aggregator's groups are. The key of a group in windows begins with its window's
//! beginning; in the database it does not.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay::aggregate::{Composite, Value};
use forebay::{Aggregator, Batch, Database, Durability, Error, Scan, Snapshot, Windows, WindowsBatch};
use forebay_aggregate::arrow::PartialSchema;
use forebay_groups::{Shape, WindowShape, WindowStates, split_window};

use crate::commands::Refusal;

type States = Arc<Composite>;
/// A group's key, and its state.
pub(super) type Group = (Vec<u8>, Vec<u8>);

/// See the module.
pub(super) enum Store {
    Plain(Aggregator<States>),
    Windows(Windows<States>, WindowShape),
}

fn no_window() -> Error {
    Error::bug("a group is in no window")
}

impl Store {
    pub(super) fn open(
        database: &Database,
        name: &str,
        schema: &PartialSchema,
        shape: &Shape,
        existing: bool,
    ) -> Result<Self, Refusal> {
        let function = Arc::clone(schema.function());
        match shape {
            Shape::Plain => Ok(Self::Plain(database.aggregator(name, function).existing(existing).open()?)),
            Shape::Windows(kept) => {
                let shape = WindowShape::of_kept(kept).map_err(|reason| {
                    format!("ERR table `{name}.schema` does not tell what windows `{name}` are: {reason}")
                })?;
                let windows = database.windows(name, function, shape.tiers());
                Ok(Self::Windows(windows.existing(existing).open()?, shape))
            }
            shape @ Shape::Cube(_) => Err(shape.refused(name).into()),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        match self {
            Self::Plain(_) => Shape::Plain,
            Self::Windows(_, shape) => Shape::Windows(shape.kept()),
        }
    }

    /// What came with the last commit.
    pub(super) fn metadata(&self) -> forebay::Result<Option<Vec<u8>>> {
        match self {
            Self::Plain(groups) => groups.metadata(),
            Self::Windows(windows, _) => windows.metadata(),
        }
    }

    /// What a group answers. Of windows a key has any time in the window.
    pub(super) fn answer(&self, key: &[u8]) -> forebay::Result<Option<Vec<Value<'static>>>> {
        match self {
            Self::Plain(groups) => groups.get(key),
            Self::Windows(windows, shape) => match split_window(key) {
                Some((time, rest)) => windows.get(shape.period.around(time), rest),
                None => Ok(None),
            },
        }
    }

    /// What groups answered, in the order of their keys.
    pub(super) fn answers(
        &self,
        snapshot: &Snapshot,
        keys: &[Vec<u8>],
    ) -> forebay::Result<Vec<Option<Vec<Value<'static>>>>> {
        match self {
            Self::Plain(groups) => groups.at(snapshot).multi_get(keys),
            Self::Windows(windows, shape) => {
                let then = windows.at(snapshot);
                let answer = |key: &Vec<u8>| match split_window(key) {
                    Some((time, rest)) => then.get(shape.period.around(time), rest),
                    None => Ok(None),
                };
                keys.iter().map(answer).collect()
            }
        }
    }

    /// All groups as they were.
    pub(super) fn walk(&self, snapshot: &Snapshot) -> forebay::Result<Walk> {
        Ok(match self {
            Self::Plain(groups) => Walk::Plain(Box::new(snapshot.iter(snapshot.table(groups.name())?)?)),
            Self::Windows(windows, _) => {
                Walk::Windows(Box::new(WindowStates::new(windows.at(snapshot), 0..u64::MAX)?))
            }
        })
    }

    /// The same from a cursor on; nothing in it is the beginning.
    pub(super) fn walk_from(&self, snapshot: &Snapshot, cursor: &[u8]) -> Result<Slices, Refusal> {
        let wrong = || Refusal::from("ERR invalid cursor");
        match self {
            Self::Plain(groups) => {
                let position = if cursor.is_empty() { Some(0) } else { number(cursor) };
                let (snapshot, table) = (snapshot.clone(), snapshot.table(groups.name())?);
                Ok(Slices::Plain { snapshot, table, position: Some(position.ok_or_else(wrong)?) })
            }
            Self::Windows(windows, _) => {
                let now = windows.at(snapshot);
                let walk = match cursor {
                    b"" | b"0" => WindowStates::new(now, 0..u64::MAX)?,
                    cursor => {
                        let (start, key) = place(cursor).ok_or_else(wrong)?;
                        WindowStates::behind(now, start, key, u64::MAX)?
                    }
                };
                Ok(Slices::Windows { walk: Box::new(walk), last: None })
            }
        }
    }

    /// What takes states that are to be one commit.
    pub(super) fn adding(&self) -> Adding<'_> {
        match self {
            Self::Plain(groups) => Adding::Plain(groups, Box::default()),
            Self::Windows(windows, _) => Adding::Windows(windows.batch(), BTreeSet::new()),
        }
    }
}

/// Groups, one by one.
pub(super) enum Walk {
    Plain(Box<Scan>),
    Windows(Box<WindowStates>),
}

impl Walk {
    pub(super) fn next(&mut self) -> forebay::Result<Option<Group>> {
        match self {
            Self::Plain(scan) => scan.next().transpose(),
            Self::Windows(states) => Ok(states.next()?.map(|(key, state)| (key.to_vec(), state))),
        }
    }
}

/// Groups, some at a time, and cursors between them.
pub(super) enum Slices {
    Plain { snapshot: Snapshot, table: forebay::Table, position: Option<u64> },
    Windows { walk: Box<WindowStates>, last: Option<Vec<u8>> },
}

impl Slices {
    /// At least one group more, unless there is none, and about as many as are asked for.
    pub(super) fn next(&mut self, count: usize) -> forebay::Result<Vec<Group>> {
        match self {
            Self::Plain { snapshot, table, position } => {
                let Some(from) = *position else { return Ok(Vec::new()) };
                let scanned = snapshot.scan_from(&*table, from, count)?;
                *position = scanned.next;
                Ok(scanned.entries)
            }
            Self::Windows { walk, last } => {
                let mut groups = Vec::new();
                while groups.len() < count {
                    let Some((key, state)) = walk.next()? else {
                        *last = None;
                        return Ok(groups);
                    };
                    *last = Some(key.to_vec());
                    groups.push((key.to_vec(), state));
                }
                Ok(groups)
            }
        }
    }

    /// Where the next group is, unless there is none.
    pub(super) fn cursor(&self) -> Option<String> {
        match self {
            Self::Plain { position, .. } => position.map(|position| position.to_string()),
            Self::Windows { last, .. } => {
                let (start, rest) = split_window(last.as_ref()?)?;
                let digits = rest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                Some(format!("{start}-{digits}"))
            }
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The window and the key that a cursor tells.
fn place(cursor: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (start, digits) = std::str::from_utf8(cursor).ok()?.split_once('-')?;
    if digits.len() % 2 != 0 {
        return None;
    }
    let digit = |digit: u8| (digit as char).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
    let key = digits.as_bytes().chunks_exact(2).map(byte).collect::<Option<_>>()?;
    Some((start.parse().ok()?, key))
}

/// Each window is a table: so many rows and streams add to at one go, which may have times that nobody meant.
const WINDOWS_MAX: usize = 4096;

/// States on their way, for one commit; of windows with those that get them.
pub(super) enum Adding<'s> {
    Plain(&'s Aggregator<States>, Box<Batch>),
    Windows(WindowsBatch<States>, BTreeSet<u64>),
}

impl Adding<'_> {
    pub(super) fn add(&mut self, key: &[u8], state: &[u8]) -> forebay::Result<()> {
        match self {
            Self::Plain(groups, batch) => {
                batch.add_state(groups, key, state);
                Ok(())
            }
            Self::Windows(batch, starts) => {
                let (start, rest) = split_window(key).ok_or_else(no_window)?;
                starts.insert(start);
                batch.add_state(start, rest, state)
            }
        }
    }

    /// The same of rows and streams.
    pub(super) fn add_of_few_windows(&mut self, key: &[u8], state: &[u8]) -> forebay::Result<()> {
        self.add(key, state)?;
        match self {
            Self::Windows(_, starts) if starts.len() > WINDOWS_MAX => Err(Error::invalid(format!(
                "rows of more than {WINDOWS_MAX} windows; look whether their times are milliseconds, and divide them"
            ))),
            _ => Ok(()),
        }
    }

    /// Memory that they take.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Plain(_, batch) => batch.encoded_bytes(),
            Self::Windows(batch, _) => batch.memory_bytes(),
        }
    }

    pub(super) fn commit(
        self,
        database: &Database,
        durability: Durability,
        metadata: Option<&[u8]>,
    ) -> forebay::Result<()> {
        let committed = match (self, metadata) {
            (Self::Plain(groups, batch), Some(metadata)) => groups.commit(*batch, durability, metadata),
            (Self::Plain(_, batch), None) => database.commit(*batch, durability),
            (Self::Windows(batch, _), Some(metadata)) => batch.commit(durability, metadata),
            (Self::Windows(batch, _), None) => batch.write(Batch::new(), durability),
        };
        committed.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_that_are_none_have_no_place() {
        assert_eq!(place(b"60000-00ff"), Some((60_000, vec![0, 255])));
        assert_eq!(place(b"60000-"), Some((60_000, Vec::new())));
        for wrong in
            [&b""[..], b"60000", b"-00", b"60000-0", b"60000-+1", b"60000-\xc3\xa4", b"x-00", b"\xff"]
        {
            assert_eq!(place(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
