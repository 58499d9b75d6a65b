//! What commands on hashes, sets, sorted sets and lists have in common: headers and elements.

mod samples;
mod scan;
mod words;

use std::ops::Range;

use super::{Answer, Call, Refusal, WRONG_TYPE, strings};
use crate::elements;
use crate::turn::{Element, Stored, Way};
use crate::value::{Header, Type};

pub(super) use samples::{distinct, sample};
pub(super) use scan::scan;
pub(super) use words::{counted, counted_of, end_and_count, limit, popped};

/// The error of a reply, or a write, that takes more than one may have.
fn too_much(most: usize) -> Refusal {
    format!("ERR this takes more than {most} bytes at once; ask for less, as by a scan or a range").into()
}

/// What a command may look through, in bytes.
#[derive(Debug)]
pub(in crate::commands) struct Budget {
    left: usize,
    most: usize,
}

/// What an element takes in a reply, or in memory, besides its bytes.
const ELEMENT_BYTES: usize = 32;

impl Budget {
    pub(in crate::commands) fn take(&mut self, bytes: usize) -> Answer {
        let left = self.left.checked_sub(bytes.saturating_add(ELEMENT_BYTES));
        self.left = left.ok_or_else(|| too_much(self.most))?;
        Ok(())
    }
}

impl Call<'_, '_> {
    /// What this command may still put into its reply or into the turn: replies and elements of its transaction count.
    pub(in crate::commands) fn budget(&self) -> Budget {
        let most = self.turn.shared.config.reply_bytes_max();
        let replies = self.turn.transaction_reply_bytes(self.reply.bytes.len());
        let taken = replies.saturating_add(self.turn.transaction_elements_bytes());
        Budget { left: most.saturating_sub(taken), most }
    }

    /// The container of a key.
    pub(in crate::commands) fn container(
        &mut self,
        key: &[u8],
        kind: Type,
    ) -> Result<Option<Header>, Refusal> {
        let Some(stored) = self.turn.get(self.client.database, key)? else { return Ok(None) };
        let header = Header::of(&stored.bytes).filter(|header| header.kind == kind);
        header.map(Some).ok_or(WRONG_TYPE.into())
    }

    /// The same, or a new one, which is not there before it is kept.
    pub(in crate::commands) fn container_or_new(
        &mut self,
        key: &[u8],
        kind: Type,
    ) -> Result<Header, Refusal> {
        match self.container(key, kind)? {
            Some(header) => Ok(header),
            None => {
                strings::checked_key(self, key)?;
                Ok(self.new_container(kind))
            }
        }
    }

    pub(in crate::commands) fn new_container(&mut self, kind: Type) -> Header {
        Header { kind, id: self.turn.shared.new_container(), count: 0, first: 0 }
    }

    /// Has a key hold what has become of its container: nothing, where that is empty. When it expires stays.
    pub(in crate::commands) fn keep(&mut self, key: &[u8], header: &Header) -> Answer {
        let database = self.client.database;
        let found = self.turn.get(database, key)?;
        let expiry = found.and_then(|stored| stored.expiry);
        match header.count {
            0 if found.is_none() => {}
            0 => self.turn.set(database, key, None),
            _ => self.turn.set(database, key, Some(Stored { bytes: header.encode(), expiry })),
        }
        Ok(())
    }

    /// Has a key hold a new container, whatever it held, or nothing where that is empty.
    pub(in crate::commands) fn replace(&mut self, key: &[u8], header: &Header) -> Answer {
        let database = self.client.database;
        let was_there = self.turn.get(database, key)?.is_some();
        if header.count > 0 || was_there {
            let stored = Stored { bytes: header.encode(), expiry: None };
            self.turn.set(database, key, Some(stored).filter(|_| header.count > 0));
        }
        Ok(())
    }

    /// Notes that elements of a key's container were changed, and its header was not.
    pub(in crate::commands) fn touch(&mut self, key: &[u8]) {
        self.turn.touch(self.client.database, key);
    }

    pub(in crate::commands) fn element(&mut self, key: Vec<u8>) -> Result<Option<&[u8]>, Refusal> {
        Ok(self.turn.element(self.client.database, key)?)
    }

    /// A field or member by its name.
    pub(in crate::commands) fn named(
        &mut self,
        header: &Header,
        name: &[u8],
    ) -> Result<Option<&[u8]>, Refusal> {
        self.element(elements::named(header.id, name))
    }

    /// Which of some names a container has, with their values. The turn does not remember them.
    pub(in crate::commands) fn have(
        &self,
        header: &Header,
        names: &[Element],
    ) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
        let keys: Vec<_> = names.iter().map(|(name, _)| elements::named(header.id, name)).collect();
        Ok(self.turn.passing(self.client.database, &keys)?)
    }

    pub(in crate::commands) fn put(&mut self, key: Vec<u8>, value: &[u8]) {
        self.turn.set_element(self.client.database, key, Some(value.to_vec()));
    }

    pub(in crate::commands) fn remove(&mut self, key: Vec<u8>) {
        self.turn.set_element(self.client.database, key, None);
    }

    pub(in crate::commands) fn walk(
        &self,
        range: Range<Vec<u8>>,
        way: Way,
    ) -> Result<impl Iterator<Item = Result<Element, Refusal>>, Refusal> {
        let walk = self.turn.walk(self.client.database, range, way)?;
        Ok(walk.map(|element| element.map_err(Refusal::from)))
    }

    /// All names of a container with their values, as far as there is room for them.
    pub(in crate::commands) fn all_named(&self, header: &Header) -> Result<Vec<Element>, Refusal> {
        let mut budget = self.budget();
        let mut all = Vec::new();
        for element in self.walk(elements::names_from(header.id, 0), Way::Forward)? {
            let (key, value) = element?;
            budget.take(key.len() + value.len())?;
            all.push((elements::name_of(&key).1.to_vec(), value));
        }
        Ok(all)
    }

    /// Refuses names that are too long for a key of an element.
    pub(in crate::commands) fn checked_name(&self, name: &[u8]) -> Answer {
        const MOST: usize = elements::NAME_BYTES_MAX;
        match name.len() > MOST {
            true => {
                Err(format!("ERR a field or member has {} bytes, and at most {MOST} are allowed", name.len())
                    .into())
            }
            false => Ok(()),
        }
    }

    /// Copies all elements of a container to a new one of another database. Returns its header.
    pub(in crate::commands) fn copied(
        &mut self,
        header: &Header,
        database: usize,
    ) -> Result<Header, Refusal> {
        let (mut budget, mut all) = (self.budget(), Vec::new());
        // What was cut off a list is in the table until the turn's commit.
        let range = match header.kind {
            Type::List => elements::places(header.id, header.first..header.first + header.count as i64),
            _ => elements::all(header.id),
        };
        for element in self.walk(range, Way::Forward)? {
            let (key, value) = element?;
            budget.take(key.len() + value.len())?;
            all.push((key, value));
        }
        let copy = Header { id: self.turn.shared.new_container(), ..*header };
        for (mut key, value) in all.into_iter().filter(|(key, _)| *key != elements::owner(header.id)) {
            key[..8].copy_from_slice(&copy.id.to_be_bytes());
            self.turn.set_element(database, key, Some(value));
        }
        Ok(copy)
    }
}
