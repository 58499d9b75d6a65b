//! The bytes of edits and of whole run sets, whose fragments are named by id.
//!
//! **Contract:** decoding never panics, and never allocates more than its input justifies.

use std::sync::Arc;

use forebay_base::Range;
use forebay_base::wire::{Reader, put_varint};
use forebay_buffer_tree::NodeId;
use forebay_buffer_tree::wire::{
    all, bound, flag, option, portion, put_all, put_bound, put_option, put_portion,
};

use super::breaks::Breaks;
use super::marks::Marks;
use super::policy::Policy;
use super::set::{Edit, Part, RangeDrop, Replace, Reside, Run, RunSet, Taken, Underway};

const REPLACE: u8 = 1;
const RELABEL: u8 = 2;
const CUT: u8 = 3;
const RESIDE: u8 = 4;

impl<F> Edit<F> {
    /// The fragments that it brings.
    pub fn fragments(&self) -> impl Iterator<Item = &F> {
        let parts = match self {
            Self::Replace(replace) => &replace.parts[..],
            Self::Reside(reside) => &reside.parts[..],
            Self::RangeDrop(_) | Self::Relabel { .. } => &[],
        };
        parts.iter().map(|part| &part.fragment)
    }

    /// The same edit with other handles to its fragments.
    pub fn map<G>(&self, mut change: impl FnMut(&F) -> G) -> Edit<G> {
        let mut parts = |parts: &[Part<F>]| {
            let part = |part: &Part<F>| Part {
                range: part.range.clone(),
                fragment: change(&part.fragment),
                portion: part.portion,
                is_bottom: part.is_bottom,
            };
            parts.iter().map(part).collect()
        };
        match self {
            Self::RangeDrop(dropped) => Edit::RangeDrop(dropped.clone()),
            Self::Relabel { run, level } => Edit::Relabel { run: *run, level: *level },
            Self::Reside(reside) => Edit::Reside(Reside { below: reside.below, parts: parts(&reside.parts) }),
            Self::Replace(replace) => Edit::Replace(Replace {
                flushed_bytes: replace.flushed_bytes,
                is_ingest: replace.is_ingest,
                below: replace.below,
                range: replace.range.clone(),
                taken: replace.taken.clone(),
                into: replace.into,
                level: replace.level,
                parts: parts(&replace.parts),
                goes_on: replace.goes_on,
            }),
        }
    }
}

impl Edit<u64> {
    /// Appends the edit's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Replace(replace) => {
                out.push(REPLACE);
                put_varint(out, replace.flushed_bytes);
                out.push(replace.is_ingest.into());
                put_varint(out, replace.below);
                put_range(out, &replace.range);
                put_all(out, &replace.taken, put_taken);
                put_varint(out, replace.into.0);
                put_varint(out, replace.level.into());
                put_all(out, &replace.parts, put_part);
                out.push(replace.goes_on.into());
            }
            Self::Reside(Reside { below, parts }) => {
                out.push(RESIDE);
                put_varint(out, *below);
                put_all(out, parts, put_part);
            }
            Self::RangeDrop(RangeDrop { range, below, taken }) => {
                out.push(CUT);
                put_range(out, range);
                put_varint(out, *below);
                put_all(out, taken, put_taken);
            }
            Self::Relabel { run, level } => {
                out.push(RELABEL);
                put_varint(out, run.0);
                put_varint(out, (*level).into());
            }
        }
        debug_assert_eq!(
            Self::decode(&mut Reader::new(&out[start..])).as_ref(),
            Some(self),
            "what is put is read"
        );
    }

    /// Reads an edit.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        match from.u8()? {
            REPLACE => Some(Self::Replace(Replace {
                flushed_bytes: from.varint()?,
                is_ingest: flag(from)?,
                below: from.varint()?,
                range: range(from)?,
                taken: all(from, taken)?,
                into: NodeId(from.varint()?),
                level: level(from)?,
                parts: all(from, part)?,
                goes_on: flag(from)?,
            })),
            RESIDE => Some(Self::Reside(Reside { below: from.varint()?, parts: all(from, part)? })),
            CUT => Some(Self::RangeDrop(RangeDrop {
                range: range(from)?,
                below: from.varint()?,
                taken: all(from, taken)?,
            })),
            RELABEL => Some(Self::Relabel { run: NodeId(from.varint()?), level: level(from)? }),
            _ => None,
        }
    }
}

impl RunSet<u64> {
    /// Appends a snapshot of all runs but resident ones. The policy and the files' size are the table's options.
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert_eq!(self.check(), Ok(()), "what is put is sound");
        let start = out.len();
        self.put(out);
        if cfg!(invariants) {
            let (mut from, mut again) = (Reader::new(&out[start..]), Vec::new());
            let read = Self::decode(&mut from, self.policy, self.file_bytes);
            read.iter().for_each(|read| read.put(&mut again));
            assert!(from.remaining() == 0 && again == out[start..], "what is put is read");
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.unit_bytes);
        put_varint(out, self.next_id);
        let on_disk: Vec<_> = self.runs.iter().filter(|run| !run.is_resident).collect();
        put_varint(out, on_disk.len() as u64);
        for run in on_disk {
            put_varint(out, run.id.0);
            put_varint(out, run.level.into());
            put_varint(out, run.below);
            put_all(out, &run.parts, |out, part| put_part(out, part));
        }
        put_all(out, &self.underway, |out, merge| {
            put_all(out, &merge.inputs, |out, run| put_varint(out, run.0));
            put_varint(out, merge.into.0);
            put_varint(out, merge.level.into());
        });
        put_all(out, &self.marks.0, |out, piece| {
            put_range(out, &piece.0);
            put_varint(out, piece.1);
        });
    }

    /// Reads a snapshot. What comes back passes [`check`](Self::check).
    pub fn decode(from: &mut Reader<'_>, policy: Policy, file_bytes: u64) -> Option<Self> {
        let unit_bytes = from.varint()?;
        let next_id = from.varint()?;
        let run = |from: &mut Reader<'_>| {
            let (id, level, below) = (NodeId(from.varint()?), level(from)?, from.varint()?);
            let parts = all(from, |from| part(from).map(Arc::new))?;
            Some(Arc::new(Run { id, level, is_resident: false, below, parts }))
        };
        let runs = all(from, run)?;
        let underway = all(from, |from| {
            let inputs = all(from, |from| from.varint().map(NodeId))?;
            Some(Underway { inputs, into: NodeId(from.varint()?), level: level(from)? })
        })?;
        let marks = Marks(all(from, |from| Some(Arc::new((range(from)?, from.varint()?))))?);
        let set = Self {
            policy,
            file_bytes,
            unit_bytes,
            runs,
            underway,
            marks,
            next_id,
            breaks: Breaks::default(),
        };
        Some(set).filter(|set| set.check().is_ok())
    }
}

/// No level is as deep: each has several times as much as the one before.
const LEVEL_MAX: u32 = 1 << 16;

fn level(from: &mut Reader<'_>) -> Option<u32> {
    u32::try_from(from.varint()?).ok().filter(|&level| level <= LEVEL_MAX)
}

fn put_range(out: &mut Vec<u8>, range: &Range) {
    put_bound(out, &range.low);
    put_option(out, range.high.as_ref(), put_bound);
}

fn range(from: &mut Reader<'_>) -> Option<Range> {
    Some(Range { low: bound(from)?, high: option(from, bound)? })
}

fn put_taken(out: &mut Vec<u8>, taken: &Taken) {
    put_varint(out, taken.run.0);
    put_range(out, &taken.range);
    put_option(out, taken.below.as_ref(), put_portion);
    put_option(out, taken.above.as_ref(), put_portion);
}

fn taken(from: &mut Reader<'_>) -> Option<Taken> {
    Some(Taken {
        run: NodeId(from.varint()?),
        range: range(from)?,
        below: option(from, portion)?,
        above: option(from, portion)?,
    })
}

fn put_part(out: &mut Vec<u8>, part: &Part<u64>) {
    put_range(out, &part.range);
    put_varint(out, part.fragment);
    put_portion(out, &part.portion);
    out.push(part.is_bottom.into());
}

fn part(from: &mut Reader<'_>) -> Option<Part<u64>> {
    Some(Part {
        range: range(from)?,
        fragment: from.varint()?,
        portion: portion(from)?,
        is_bottom: flag(from)?,
    })
}
