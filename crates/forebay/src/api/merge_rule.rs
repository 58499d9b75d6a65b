//! Merge rules: what a table makes of operands.

use forebay_base::Combine;
use forebay_base::limits::STORED_VALUE_BYTES_MAX;
use forebay_layouts::StoredRule;

/// How a table merges operands, for [`TableBuilder::merge_rule`](crate::TableBuilder::merge_rule): a rule of your own, or
/// one of those that the engine has, [`StoredRule`], whose code need not be brought again.
///
/// **Laws.** Merging must not depend on how operands are grouped: merging *c* into the merge of *b* into *a* gives the
/// same bytes as merging the merge of *c* and *b* into *a*. Their order is kept. An operand with nothing beneath it is
/// the key's value. No bytes may make it panic. What it makes must stay within 2 GiB: see
/// [`value_bytes_max`](Self::value_bytes_max). Where it panics all the same, reads of that key get
/// [`Error::Panicked`](crate::Error::Panicked), and merges of it are set aside. A write buffer that holds several
/// operands of the key is not flushed, and once all buffers are full no table takes writes: mend the rule and open the
/// database again, or drop the table.
///
/// It is called in the midst of the engine's work, often and by several threads: it must not take long, and must ask
/// nothing of a database, which answers it with an error.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("forebay-doc-rule-{}", std::process::id()));
/// use forebay::{Database, MergeRule, Options};
///
/// struct Append;
///
/// impl MergeRule for Append {
///     fn name(&self) -> &str {
///         "append/1"
///     }
///     fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
///         out.extend_from_slice(older);
///         out.extend_from_slice(newer);
///     }
/// }
///
/// let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
/// let visits = db.table("visits").merge_rule(Append).open()?;
/// visits.put(b"ada", b"home")?;
/// visits.merge(b"ada", b", shop")?;
/// visits.merge(b"bob", b"shop")?;
/// assert_eq!(visits.get(b"ada")?.as_deref(), Some(&b"home, shop"[..]));
/// assert_eq!(visits.get(b"bob")?.as_deref(), Some(&b"shop"[..]));
/// # drop(visits);
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), forebay::Error>(())
/// ```
pub trait MergeRule: Send + Sync + 'static {
    /// Its name and the version of what it does. It is kept with the table, which opens with no other rule again.
    fn name(&self) -> &str;

    /// Appends to `out` the merge of a newer operand into what is older: an operand, or the key's value.
    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>);

    /// The longest value that merges of lists may make; no more than 2 GiB, though an operand has 256 MiB at most.
    /// Lists in which a key's operands come to more stay as they are, with all their keys: everything can still be
    /// read, flushes go on, and [`Table::compact`](crate::Table::compact) and
    /// [`Database::verify`](crate::Database::verify) name the key.
    fn value_bytes_max(&self) -> usize {
        STORED_VALUE_BYTES_MAX
    }
}

/// Of a table with such a rule the code is there whoever opens it: it may be opened without the rule, too.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Database, Options, StoredRule};
/// # let options = || Options::default().env(env.clone());
/// # let db = Database::open("/db", options())?;
/// let friends = db.table("friends").merge_rule(StoredRule::append(",")?).open()?;
/// friends.merge("ada", "bob")?;
/// drop(friends);
/// db.close()?;
///
/// let db = Database::open("/db", options())?;
/// let friends = db.table("friends").open()?;
/// friends.merge("ada", "eve")?;
/// assert_eq!(friends.get("ada")?.as_deref(), Some(&b"bob,eve"[..]));
/// # Ok::<(), forebay::Error>(())
/// ```
impl MergeRule for StoredRule {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        self.fold(key, newer, older, out);
    }
}

/// A merge rule as the rule by which records are folded.
pub(crate) struct Operands<R>(pub(crate) R);

impl<R: MergeRule> Combine for Operands<R> {
    fn fold(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        self.0.merge(key, newer, older, out);
    }

    fn value_bytes_max(&self) -> usize {
        self.0.value_bytes_max().min(STORED_VALUE_BYTES_MAX)
    }
}
