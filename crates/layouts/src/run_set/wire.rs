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

use super::policy::Policy;
use super::set::{Edit, Part, Replace, Run, RunSet, Taken, Underway};

const REPLACE: u8 = 1;
const RELABEL: u8 = 2;
const CUT: u8 = 3;

impl<F> Edit<F> {
    /// The fragments that it brings.
    pub fn fragments(&self) -> impl Iterator<Item = &F> {
        let parts = match self {
            Self::Replace(replace) => &replace.parts[..],
            Self::Cut(_) | Self::Relabel { .. } => &[],
        };
        parts.iter().map(|part| &part.fragment)
    }

    /// The same edit with other handles to its fragments.
    pub fn map<G>(&self, mut change: impl FnMut(&F) -> G) -> Edit<G> {
        match self {
            Self::Cut(taken) => Edit::Cut(taken.clone()),
            Self::Relabel { run, level } => Edit::Relabel { run: *run, level: *level },
            Self::Replace(Replace { flushed_bytes, taken, into, level, parts, goes_on }) => {
                let part = |part: &Part<F>| Part {
                    range: part.range.clone(),
                    fragment: change(&part.fragment),
                    portion: part.portion,
                    is_bottom: part.is_bottom,
                };
                Edit::Replace(Replace {
                    flushed_bytes: *flushed_bytes,
                    taken: taken.clone(),
                    into: *into,
                    level: *level,
                    parts: parts.iter().map(part).collect(),
                    goes_on: *goes_on,
                })
            }
        }
    }
}

impl Edit<u64> {
    /// Appends the edit's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Replace(Replace { flushed_bytes, taken, into, level, parts, goes_on }) => {
                out.push(REPLACE);
                put_varint(out, *flushed_bytes);
                put_all(out, taken, put_taken);
                put_varint(out, into.0);
                put_varint(out, (*level).into());
                put_all(out, parts, put_part);
                out.push((*goes_on).into());
            }
            Self::Cut(taken) => {
                out.push(CUT);
                put_all(out, taken, put_taken);
            }
            Self::Relabel { run, level } => {
                out.push(RELABEL);
                put_varint(out, run.0);
                put_varint(out, (*level).into());
            }
        }
    }

    /// Reads an edit.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        match from.u8()? {
            REPLACE => Some(Self::Replace(Replace {
                flushed_bytes: from.varint()?,
                taken: all(from, taken)?,
                into: NodeId(from.varint()?),
                level: level(from)?,
                parts: all(from, part)?,
                goes_on: flag(from)?,
            })),
            CUT => Some(Self::Cut(all(from, taken)?)),
            RELABEL => Some(Self::Relabel { run: NodeId(from.varint()?), level: level(from)? }),
            _ => None,
        }
    }
}

impl RunSet<u64> {
    /// Appends a snapshot of all runs. The policy and the files' size are the table's options.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.unit_bytes);
        put_varint(out, self.next_id);
        put_varint(out, self.runs.len() as u64);
        for run in &self.runs {
            put_varint(out, run.id.0);
            put_varint(out, run.level.into());
            put_all(out, &run.parts, |out, part| put_part(out, part));
        }
        put_all(out, &self.underway, |out, merge| {
            put_all(out, &merge.inputs, |out, run| put_varint(out, run.0));
            put_varint(out, merge.into.0);
            put_varint(out, merge.level.into());
        });
    }

    /// Reads a snapshot. What comes back passes [`check`](Self::check).
    pub fn decode(from: &mut Reader<'_>, policy: Policy, file_bytes: u64) -> Option<Self> {
        let unit_bytes = from.varint()?;
        let next_id = from.varint()?;
        let run = |from: &mut Reader<'_>| {
            let (id, level) = (NodeId(from.varint()?), level(from)?);
            let parts = all(from, |from| part(from).map(Arc::new))?;
            Some(Arc::new(Run { id, level, parts }))
        };
        let runs = all(from, run)?;
        let underway = all(from, |from| {
            let inputs = all(from, |from| from.varint().map(NodeId))?;
            Some(Underway { inputs, into: NodeId(from.varint()?), level: level(from)? })
        })?;
        let set = Self { policy, file_bytes, unit_bytes, runs, underway, next_id, breaks: 0 };
        Some(set).filter(|set| set.check().is_ok())
    }
}

fn level(from: &mut Reader<'_>) -> Option<u32> {
    u32::try_from(from.varint()?).ok()
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
