//! A table's merge rule: what becomes of several records of one key. Its name is kept in the manifest; its code comes
//! from whoever opens the table. Until then nothing of the table is merged.

use std::sync::{Arc, OnceLock};

use forebay_base::expiry;
use forebay_base::wire::{Reader, put_bytes};
use forebay_base::{Combine, Error, LastWriterWins, Result, planted};
use forebay_env::guest;
use forebay_store::ValueFiles;

use crate::stored_rule::StoredRule;

/// Which rule a table has, as the manifest keeps it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum RuleName {
    /// The newest record of a key hides the others.
    #[default]
    None,
    /// Operands, merged by the rule of this name into what is older; puts and deletes hide what is older.
    Operands(String),
    /// States of this type, kept as puts: each merges with all older ones.
    States(String),
    /// The same, and they may be deleted.
    DeletableStates(String),
}

impl RuleName {
    /// What a person would call it.
    pub fn describe(&self) -> String {
        match self {
            Self::None => "no merge rule".into(),
            Self::Operands(name) => match StoredRule::of(name) {
                Some(rule) => format!("merge rule `{rule}`"),
                None => format!("merge rule `{name}`"),
            },
            Self::States(name) | Self::DeletableStates(name) => format!("aggregation rule `{name}`"),
        }
    }

    /// The type of the states, of a table that keeps such.
    pub fn state_type(&self) -> Option<&str> {
        match self {
            Self::None | Self::Operands(_) => None,
            Self::States(name) | Self::DeletableStates(name) => Some(name),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, name) = match self {
            Self::None => return out.push(0),
            Self::Operands(name) => (1, name),
            Self::States(name) => (2, name),
            Self::DeletableStates(name) => (3, name),
        };
        out.push(kind);
        put_bytes(out, name.as_bytes());
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let kind = from.u8()?;
        if kind == 0 {
            return Some(Self::None);
        }
        let name = String::from_utf8(from.bytes()?.to_vec()).ok()?;
        match kind {
            1 => Some(Self::Operands(name)),
            2 => Some(Self::States(name)),
            3 => Some(Self::DeletableStates(name)),
            _ => None,
        }
    }
}

/// Whether values of a table end with their expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// They do not.
    Endless,
    /// They do.
    Timed,
}

/// A rule's code.
#[derive(Clone)]
pub struct Rule {
    code: Arc<dyn Combine>,
    merges_puts: bool,
    deletes_states: bool,
    keeps_length: bool,
    life: Life,
    guest: Guest,
    filter: Option<(Filter, Guest)>,
    /// What has expired by then goes; `None` where values say nothing of that.
    now: Option<u64>,
    /// Where values stand that are kept apart.
    values: Option<Arc<ValueFiles>>,
}

/// What merges do with an entry that nothing older lies beneath.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
}

/// A table's compaction filter: over keys and values.
pub type Filter = Arc<dyn Fn(&[u8], &[u8]) -> Keep + Send + Sync>;

impl Rule {
    fn new(code: Arc<dyn Combine>, name: &RuleName, life: Life, guest: Guest) -> Self {
        let (merges_puts, keeps_length) = (code.merges_puts(), code.keeps_length());
        let deletes_states = matches!(name, RuleName::DeletableStates(_));
        let (filter, now, values) = (None, None, None);
        Self { code, merges_puts, deletes_states, keeps_length, life, guest, filter, now, values }
    }

    /// The same for values that expire: what has by `now` goes where nothing older lies beneath.
    pub(crate) fn expiring(self, now: Option<u64>) -> Self {
        Self { now, ..self }
    }

    /// The same for values that may stand in value files.
    pub(crate) fn reading(self, values: &Arc<ValueFiles>) -> Self {
        Self { values: Some(Arc::clone(values)), ..self }
    }

    /// The same without a filter.
    pub(crate) fn keeping_all(self) -> Self {
        Self { filter: None, now: None, ..self }
    }
}

impl Rule {
    /// What code of users gets of a stored value, and when that expires, if values do.
    #[inline]
    fn split<'a>(&self, stored: &'a [u8]) -> (&'a [u8], Option<u64>) {
        match self.life {
            Life::Endless => (stored, None),
            Life::Timed => {
                let (value, expiry) = expiry::split(stored);
                (value, Some(expiry))
            }
        }
    }
}

/// Whose code it is, as errors tell it.
#[derive(Clone)]
struct Guest(Arc<str>);

impl Guest {
    fn of_key(&self, key: &[u8]) -> String {
        const SHOWN: usize = 64;
        let more = if key.len() > SHOWN { "..." } else { "" };
        format!("{} panicked at key \"{}{more}\"", self.0, key[..key.len().min(SHOWN)].escape_ascii())
    }
}

/// An answer, unless code of users that was asked for it has panicked. Call
/// [`take_failure`](forebay_env::guest::take_failure) before the work begins.
pub fn answered<T>(answer: Result<T>) -> Result<T> {
    guest::take_failure().map_or(answer, |failure| Err(Error::Panicked(failure)))
}

/// Its code is a user's: where that panics the newest record stands for all, and whoever asked takes the failure.
impl Combine for Rule {
    fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        let bytes = out.len();
        let (value, expiry) = self.split(newer);
        let fold = || self.code.fold(key, value, self.split(older).0, out);
        if guest::ask(|| self.guest.of_key(key), fold).is_none() {
            out.truncate(bytes);
            return out.extend_from_slice(newer);
        }
        expiry.iter().for_each(|expiry| out.extend_from_slice(&expiry.to_le_bytes()));
    }
    /// An operand goes into the entry that expires when it does: see `docs/internals/ttl.md`.
    #[inline]
    fn joins(&self, newer: &[u8], older: &[u8]) -> bool {
        self.split(newer).1 == self.split(older).1 || planted::is("operands-join-any-life")
    }
    #[inline]
    fn merges_puts(&self) -> bool {
        self.merges_puts
    }
    fn deletes_states(&self) -> bool {
        self.deletes_states
    }
    fn keeps_length(&self) -> bool {
        self.keeps_length
    }
    fn merge_states(&self, key: &[u8], states: &[&[u8]], out: &mut Vec<u8>) {
        let bytes = out.len();
        let merge = || self.code.merge_states(key, states, out);
        if guest::ask(|| self.guest.of_key(key), merge).is_none() {
            out.truncate(bytes);
            states.first().into_iter().for_each(|newest| out.extend_from_slice(newest));
        }
    }
    #[inline]
    fn merge_in_place(&self, newer: &mut [u8], older: &[u8]) -> bool {
        if self.life == Life::Timed {
            return false;
        }
        let asked = || format!("{} panicked", self.guest.0);
        guest::ask(asked, || self.code.merge_in_place(newer, older)).unwrap_or(true)
    }
    fn value_bytes_max(&self) -> usize {
        self.code.value_bytes_max()
    }
    fn is_choosy(&self) -> bool {
        self.filter.is_some() || self.now.is_some()
    }
    fn keeps(&self, key: &[u8], value: &[u8]) -> bool {
        let (value, expiry) = if self.now.is_some() { expiry::split(value) } else { (value, expiry::NEVER) };
        let filters = |(filter, guest): &(Filter, Guest)| {
            guest::ask(|| guest.of_key(key), || filter(key, value) == Keep::Keep).unwrap_or(true)
        };
        self.now.is_none_or(|now| expiry > now) && self.filter.as_ref().is_none_or(filters)
    }
    /// What cannot be read stays: who asks for it is told why. The pointer ends with the value's expiry.
    fn keeps_pointed(&self, key: &[u8], pointer: &[u8]) -> bool {
        if self.now.is_some_and(|now| expiry::split(pointer).1 <= now) {
            return false;
        }
        if self.filter.is_none() {
            return true;
        }
        let value = self.values.as_ref().map(|values| values.load(key, pointer));
        value.and_then(Result::ok).is_none_or(|value| self.keeps(key, &value))
    }
}

/// A table's rule, shared by all versions of the table.
pub struct TableRule {
    name: RuleName,
    life: Life,
    rule: OnceLock<Rule>,
    /// What merges as the rule does until its code comes.
    stand_in: OnceLock<Rule>,
    filter: OnceLock<(Filter, Guest)>,
}

impl TableRule {
    /// The rule of this name, whose code is still to come, unless it is none or the engine's own.
    pub fn new(name: RuleName, life: Life) -> Arc<Self> {
        let rule = OnceLock::new();
        let code: Option<Arc<dyn Combine>> = match &name {
            RuleName::None => Some(Arc::new(LastWriterWins)),
            RuleName::Operands(stored) => {
                StoredRule::of(stored).map(|rule| Arc::new(rule) as Arc<dyn Combine>)
            }
            RuleName::States(_) | RuleName::DeletableStates(_) => None,
        };
        if let Some(code) = code {
            let guest = Guest(name.describe().into());
            let _ = rule.set(Rule::new(code, &name, life, guest));
        }
        Arc::new(Self { name, life, rule, stand_in: OnceLock::new(), filter: OnceLock::new() })
    }

    /// Its name.
    pub fn name(&self) -> &RuleName {
        &self.name
    }

    /// Takes the code of the rule for the table of this name, unless it is there already. It must be of the rule's
    /// name.
    pub fn provide(&self, code: Arc<dyn Combine>, table: &str) {
        let _ = self.rule.set(Rule::new(code, &self.name, self.life, self.guest(table)));
    }

    /// Takes code that merges as the rule does, for as long as nobody brings the rule's own.
    pub fn stand_in(&self, code: Arc<dyn Combine>, table: &str) {
        let _ = self.stand_in.set(Rule::new(code, &self.name, self.life, self.guest(table)));
    }

    fn guest(&self, table: &str) -> Guest {
        Guest(format!("the {} of table `{table}`", self.name.describe()).into())
    }

    /// Takes a filter for merges to come, unless there is one already.
    pub fn filter_by(&self, filter: Filter, table: &str) {
        let guest = Guest(format!("the compaction filter of table `{table}`").into());
        let _ = self.filter.set((filter, guest));
    }

    /// The code, if it is there.
    pub fn known(&self) -> Option<&Rule> {
        self.rule.get().or_else(|| self.stand_in.get())
    }

    /// The rule's own code, for another table like this one.
    pub fn shared(&self) -> Option<Arc<dyn Combine>> {
        self.known().map(|rule| Arc::clone(&rule.code))
    }

    /// The code, for a job. The engine asks for none before it is there.
    pub(crate) fn code(&self) -> Result<Rule> {
        let missing = || Error::bug("a merge of a table whose merge rule is not known yet");
        let rule = self.known().cloned().ok_or_else(missing)?;
        Ok(Rule { filter: self.filter.get().cloned(), ..rule })
    }

    /// The code, or the error that tells how to bring it.
    pub fn of(&self, table: &str) -> Result<&Rule> {
        self.known().ok_or_else(|| {
            let (what, call) = match self.name.state_type() {
                Some(_) => ("aggregator", "Database::aggregator and its function"),
                None => ("table", "TableBuilder::merge_rule and that rule"),
            };
            Error::invalid(format!(
                "table `{table}` has {} and was not opened with it; open the {what} with {call} first",
                self.name.describe()
            ))
        })
    }

    /// What merges records of one key, where something does.
    pub fn merging(&self) -> Option<&dyn Combine> {
        match self.name {
            RuleName::None => None,
            _ => self.known().map(|rule| rule as &dyn Combine),
        }
    }
}
