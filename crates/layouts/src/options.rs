//! What a table is told when it is made, and keeps.

use std::path::PathBuf;
use std::time::Duration;

use forebay_base::codec::Codec;
use forebay_base::expiry::NEVER;
use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Error, PrefixFilter, Result};
use forebay_buffer_tree::TreeOptions;

use crate::layout::Layout;
use crate::rule::RuleName;

/// The most filter bits that a key may have: more buy nothing.
pub const FILTER_BITS_MAX: u32 = 64;

const VERSION: u8 = 1;
/// As version 1, and behind it what is said of space.
const VERSION_SPACE: u8 = 2;
/// As version 2, and behind it how long entries live.
const VERSION_EXPIRY: u8 = 3;
/// As version 3, where 0 is for no such life, and behind it which values are kept apart.
const VERSION_APART: u8 = 4;
/// As version 4, where 0 is for no value kept apart: of a table whose states may be deleted.
const VERSION_DELETES: u8 = 5;
/// As version 5, of a table of operands whose entries expire. Older builds would merge the expiries, too.
const VERSION_LIVES: u8 = 6;
/// As version 6, whatever of it is said or not, and behind it which key prefixes filters know.
const VERSION_PREFIXES: u8 = 7;
/// The newest.
const VERSION_MAX: u8 = VERSION_PREFIXES;
/// Of shorter nodes and files there are so many that merges wait for their syncs.
const USUAL_NODE_BYTES_MIN: u64 = 4 << 20;
/// Merging costs 4 / (A - 1) bytes for each that is written.
const SPACE_AMPLIFICATION_MIN: f64 = 1.25;
/// A table is gone round twice within it.
const RECLAIM_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Everything a table keeps of its options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TableOptions {
    /// Its organisation.
    pub layout: Layout,
    /// Filter memory for each key of each list, in bits; 0 for no filters.
    pub filter_bits_per_key: u32,
    /// Which key prefixes filters know beside keys; `None` for none.
    pub prefix_filter: Option<PrefixFilter>,
    /// Page compression.
    pub codec: Codec,
    /// The tree's shape.
    pub tree: TreeOptions,
    /// The most that its files may take, by what lives of them.
    pub max_space_amplification: Option<f64>,
    /// How soon what is deleted or outdated leaves its files; whole seconds.
    pub reclaim_interval: Option<Duration>,
    /// How long entries live that are put without more; whole milliseconds, [`Duration::MAX`] forever.
    pub time_to_live: Option<Duration>,
    /// Values of at least this many bytes are written once, to the log, and stay there as value files.
    pub apart_bytes_min: Option<u32>,
}

impl TableOptions {
    /// What a table has that is told nothing but its layout, over write buffers of this size.
    pub fn new(layout: Layout, write_buffer_bytes: u64) -> Self {
        let usual = match layout {
            Layout::WbTree { .. } => write_buffer_bytes,
            Layout::RunSet(policy) => policy.usual_file_bytes(write_buffer_bytes),
        };
        let node_bytes = usual.max(USUAL_NODE_BYTES_MIN);
        let tree = TreeOptions { node_bytes, ..TreeOptions::default() };
        // A filter in the order of the hashes does more with a bit.
        let filter_bits_per_key = if layout.is_ordered() { 14 } else { 11 };
        let codec = Codec::default();
        Self {
            layout,
            filter_bits_per_key,
            prefix_filter: None,
            codec,
            tree,
            max_space_amplification: None,
            reclaim_interval: None,
            time_to_live: None,
            apart_bytes_min: None,
        }
    }

    /// Says which option is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        if self.filter_bits_per_key > FILTER_BITS_MAX {
            return Err(Error::invalid(format!(
                "filter_bits_per_key is {}; more than {FILTER_BITS_MAX} bits buy nothing",
                self.filter_bits_per_key
            )));
        }
        self.check_prefix_filter()?;
        if let Some(most) = self.max_space_amplification
            && (!most.is_finite() || most < SPACE_AMPLIFICATION_MIN)
        {
            return Err(Error::invalid(format!(
                "max_space_amplification is {most}; it must be at least {SPACE_AMPLIFICATION_MIN}"
            )));
        }
        if self.reclaim_interval.is_some() && self.layout.keeps_in_memory() {
            return Err(Error::invalid(format!(
                "{} keeps records in memory and in the log for as long as it likes, so it has no \
                 reclaim_interval",
                self.layout
            )));
        }
        if let Some(interval) = self.reclaim_interval
            && (interval < RECLAIM_INTERVAL_MIN || interval.subsec_nanos() > 0)
        {
            return Err(Error::invalid(format!(
                "reclaim_interval is {interval:?}; it must be whole seconds, at least {RECLAIM_INTERVAL_MIN:?}"
            )));
        }
        if let Some(ttl) = self.time_to_live
            && (ttl != ttl_of(milliseconds_of(ttl)) || ttl.is_zero())
        {
            return Err(Error::invalid(format!(
                "time_to_live is {ttl:?}; it must be whole milliseconds, and at least one"
            )));
        }
        if self.apart_bytes_min == Some(0) {
            return Err(Error::invalid("values_apart is 0; values to be kept apart have at least one byte"));
        }
        if self.apart_bytes_min.is_some()
            && let Some(other) = self.refuses_apart()
        {
            return Err(Error::invalid(format!("a table with values_apart has no {other}")));
        }
        if let Layout::RunSet(policy) = self.layout {
            policy.validate()?;
        }
        self.tree.validate()
    }

    fn check_prefix_filter(&self) -> Result<()> {
        let Some(prefix_filter) = self.prefix_filter else { return Ok(()) };
        if !self.layout.is_ordered() {
            return Err(Error::invalid(format!(
                "layout {} keeps no order, so nobody scans a key prefix of it: leave prefix_filter out, take it away with \
                 `alter`, or choose a layout in key order, such as wb-tree:ordered",
                self.layout
            )));
        }
        if self.filter_bits_per_key == 0 {
            return Err(Error::invalid("prefix_filter needs filters, and filter_bits_per_key is 0"));
        }
        prefix_filter.validate()
    }

    /// From how many bytes on a flush may leave values in the log. Not of layouts whose records go to memory first: they
    /// would have to get their values back.
    pub fn flush_leaves_bytes_min(&self) -> Option<usize> {
        self.apart_bytes_min.filter(|_| !self.layout.keeps_in_memory()).map(|bytes| bytes as usize)
    }

    /// What keeps values from being kept apart, as the builder names it: what must look at values as it merges, and
    /// what promises when their bytes are gone.
    fn refuses_apart(&self) -> Option<&'static str> {
        let others = [
            (self.max_space_amplification.is_some(), "max_space_amplification"),
            (self.reclaim_interval.is_some(), "reclaim_interval"),
        ];
        others.into_iter().find_map(|(is_there, name)| is_there.then_some(name))
    }

    /// The bytes of what the table version itself does not keep, and of the table's rule.
    pub fn encode(&self, rule: &RuleName) -> Vec<u8> {
        let says_space = self.max_space_amplification.is_some() || self.reclaim_interval.is_some();
        let mut out = vec![match (self.apart_bytes_min, self.time_to_live, says_space) {
            _ if self.prefix_filter.is_some() => VERSION_PREFIXES,
            _ if matches!(rule, RuleName::DeletableStates(_)) => VERSION_DELETES,
            (_, Some(_), _) if matches!(rule, RuleName::Operands(_)) => VERSION_LIVES,
            (Some(_), ..) => VERSION_APART,
            (None, Some(_), _) => VERSION_EXPIRY,
            (None, None, true) => VERSION_SPACE,
            (None, None, false) => VERSION,
        }];
        self.layout.encode(&mut out);
        out.push(self.codec as u8);
        put_varint(&mut out, self.filter_bits_per_key as u64);
        rule.encode(&mut out);
        if out[0] >= VERSION_SPACE {
            out.extend_from_slice(&self.max_space_amplification.unwrap_or_default().to_le_bytes());
            put_varint(&mut out, self.reclaim_interval.unwrap_or_default().as_secs());
        }
        if out[0] >= VERSION_EXPIRY {
            put_varint(&mut out, self.time_to_live.map_or(0, milliseconds_of));
        }
        if out[0] >= VERSION_APART {
            put_varint(&mut out, self.apart_bytes_min.unwrap_or_default().into());
        }
        self.prefix_filter.iter().for_each(|prefixes| prefixes.encode(&mut out));
        debug_assert_eq!(Self::decode(&out, self.tree), Some((*self, rule.clone())), "what is put is read");
        out
    }

    /// Refuses what a newer build has encoded. The file is [named](Error::read_from) by who has read it.
    pub(crate) fn check_version(bytes: &[u8]) -> Result<()> {
        match bytes.first() {
            Some(&version) if version > VERSION_MAX => Err(Error::NewerFormat {
                file: PathBuf::new(),
                version: version.into(),
                known: VERSION_MAX.into(),
            }),
            _ => Ok(()),
        }
    }

    /// Reads [`encode`](Self::encode)'s bytes, of options that are valid; the tree's options come from its table version.
    pub fn decode(bytes: &[u8], tree: TreeOptions) -> Option<(Self, RuleName)> {
        let mut from = Reader::new(bytes);
        let version = from.u8().filter(|version| (VERSION..=VERSION_MAX).contains(version))?;
        let layout = Layout::decode(&mut from)?;
        let codec = Codec::from_byte(from.u8()?)?;
        let filter_bits_per_key = u32::try_from(from.varint()?).ok()?;
        let rule = RuleName::decode(&mut from)?;
        // Before the newest version each of these had its own.
        let is_odd = |is_there: bool, own: u8| version < VERSION_PREFIXES && is_there != (version == own);
        if is_odd(matches!(rule, RuleName::DeletableStates(_)), VERSION_DELETES) {
            return None;
        }
        let (most, seconds) = match version {
            VERSION => (0.0, 0),
            _ => (f64::from_le_bytes(from.array()?), from.varint()?),
        };
        let time_to_live = match version {
            VERSION_EXPIRY => Some(ttl_of(from.varint()?)),
            VERSION_APART.. => Some(from.varint()?).filter(|&milliseconds| milliseconds > 0).map(ttl_of),
            _ => None,
        };
        if is_odd(time_to_live.is_some() && matches!(rule, RuleName::Operands(_)), VERSION_LIVES) {
            return None;
        }
        let apart_bytes_min = match version {
            VERSION_APART => Some(u32::try_from(from.varint()?).ok()?),
            VERSION_DELETES.. => Some(u32::try_from(from.varint()?).ok()?).filter(|&bytes| bytes > 0),
            _ => None,
        };
        let prefix_filter = match version {
            VERSION_PREFIXES => Some(PrefixFilter::decode(&mut from)?),
            _ => None,
        };
        let max_space_amplification = Some(most).filter(|&most| most != 0.0);
        let reclaim_interval = Some(Duration::from_secs(seconds)).filter(|interval| !interval.is_zero());
        let options = Self {
            layout,
            filter_bits_per_key,
            prefix_filter,
            codec,
            tree,
            max_space_amplification,
            reclaim_interval,
            time_to_live,
            apart_bytes_min,
        };
        options.validate().ok()?;
        Some((options, rule))
    }
}

/// A life in milliseconds; those that never end are [`NEVER`].
pub fn milliseconds_of(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(NEVER)
}

fn ttl_of(milliseconds: u64) -> Duration {
    if milliseconds == NEVER { Duration::MAX } else { Duration::from_millis(milliseconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_as_long_as_write_buffers_but_for_short_ones() {
        const MIB: u64 = 1 << 20;
        for layout in [Layout::wb_tree(), Layout::jungle(3.0), Layout::range_merge()] {
            let of = |buffer_bytes| TableOptions::new(layout, buffer_bytes).tree.node_bytes;
            let factor = if layout == Layout::range_merge() { 2 } else { 1 };
            assert_eq!([4 << 10, MIB, 8 * MIB].map(of), [4 * MIB, 4 * MIB, 8 * factor * MIB], "{layout}");
        }
    }

    /// A bound on space that is no number was read, and who wrote the manifest anew with it panicked.
    #[test]
    fn options_that_no_table_can_have_are_malformed() {
        let mut options = TableOptions::new(Layout::wb_tree(), 1 << 20);
        options.max_space_amplification = Some(2.5);
        let bytes = options.encode(&RuleName::None);
        assert_eq!(TableOptions::decode(&bytes, options.tree), Some((options, RuleName::None)));
        let at = bytes.windows(8).position(|bytes| bytes == 2.5f64.to_le_bytes()).unwrap();
        for bound in [f64::NAN, f64::INFINITY, -2.5, 1.0] {
            let mut bytes = bytes.clone();
            bytes[at..at + 8].copy_from_slice(&bound.to_le_bytes());
            assert_eq!(TableOptions::decode(&bytes, options.tree), None, "{bound}");
        }
    }

    /// Builds that know of no deletes refuse the version, and no other version has such a rule.
    #[test]
    fn options_of_states_that_may_be_deleted_have_a_version_of_their_own() {
        let mut options = TableOptions::new(Layout::wb_tree(), 1 << 20);
        let rule = RuleName::DeletableStates("count/1".into());
        for most in [None, Some(2.0)] {
            options.max_space_amplification = most;
            let bytes = options.encode(&rule);
            assert_eq!(bytes[0], VERSION_DELETES);
            assert_eq!(TableOptions::decode(&bytes, options.tree), Some((options, rule.clone())));
            for version in [VERSION, VERSION_APART] {
                let bytes = [&[version], &bytes[1..]].concat();
                assert_eq!(TableOptions::decode(&bytes, options.tree), None);
            }
        }
    }

    /// Builds that merge operands as they are stored refuse the version.
    #[test]
    fn options_of_operands_that_expire_have_a_version_of_their_own() {
        let mut options = TableOptions::new(Layout::wb_tree(), 1 << 20);
        options.time_to_live = Some(Duration::MAX);
        let rule = RuleName::Operands("add/1".into());
        let bytes = options.encode(&rule);
        assert_eq!(bytes[0], VERSION_LIVES);
        assert_eq!(TableOptions::decode(&bytes, options.tree), Some((options, rule)));
        let older = [&[VERSION_EXPIRY], &bytes[1..]].concat();
        assert_eq!(TableOptions::decode(&older, options.tree), None);
        assert_eq!(options.encode(&RuleName::None)[0], VERSION_EXPIRY);
    }

    /// Builds that know of none would add no key prefixes, and refuse the version.
    #[test]
    fn options_with_a_prefix_filter_have_a_version_of_their_own_whatever_else_they_say() {
        let rules =
            [RuleName::None, RuleName::Operands("add/1".into()), RuleName::DeletableStates("count/1".into())];
        for (rule, ttl) in
            rules.into_iter().flat_map(|rule| [(rule.clone(), None), (rule, Some(Duration::MAX))])
        {
            let mut options = TableOptions::new(Layout::wb_tree_ordered(), 1 << 20);
            options.time_to_live = ttl;
            options.prefix_filter = Some(PrefixFilter::Until(b'/'));
            let bytes = options.encode(&rule);
            assert_eq!(bytes[0], VERSION_PREFIXES);
            assert_eq!(TableOptions::decode(&bytes, options.tree), Some((options, rule)));
            assert_eq!(TableOptions::decode(&bytes[..bytes.len() - 1], options.tree), None, "cut off");
        }
        let unfit = [(Layout::wb_tree(), 12), (Layout::wb_tree_ordered(), 0)];
        for (layout, filter_bits_per_key) in unfit {
            let usual = TableOptions::new(layout, 1 << 20);
            let prefix_filter = Some(PrefixFilter::Bytes(4));
            let error = TableOptions { filter_bits_per_key, prefix_filter, ..usual }.validate().unwrap_err();
            assert!(error.to_string().contains("prefix_filter"), "{error}");
        }
    }
}
