//! A buffer's fragment: records that were sorted and merged at one go, packed [5.4.2] or as they are.
//!
//! Packed by rows: all records as a root's buffer has them, through a compressor. Packed by columns: the differences
//! of hashes as varints, sizes as runs (`varint size | varint how often`), and the rest through a compressor, keys and
//! states together or apart.

use std::borrow::Cow;

use forebay_base::codec::Codec;
use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Error, Result};

use super::meter::{Held, Meter};
use super::options::Packing;
use super::records::{Part, Record, Records};

/// See the module.
pub(super) struct Fragment {
    form: Form,
    packing: Packing,
    state_bytes: Option<usize>,
    records: usize,
    /// What they take unpacked.
    bytes: usize,
    _held: Held,
}

enum Form {
    Plain(Records),
    Packed(Box<[u8]>),
}

impl Fragment {
    pub(super) fn new(part: Part<'_>, state_bytes: Option<usize>, packing: Packing, meter: &Meter) -> Self {
        let form = match packing {
            Packing::Off => Form::Plain(part.to_records()),
            // Copied, and not shortened where it lies: what is behind a shortened one is too small for others.
            _ => Form::Packed(pack(part, packing).as_slice().into()),
        };
        let held = match &form {
            Form::Plain(records) => meter.hold(records.memory_bytes()),
            Form::Packed(bytes) => meter.hold(bytes.len()),
        };
        Self { form, packing, state_bytes, records: part.hashes.len(), bytes: part.bytes(), _held: held }
    }

    pub(super) fn len(&self) -> usize {
        self.records
    }

    /// What its records take unpacked.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn unpack(&self) -> Result<Cow<'_, Records>> {
        let unpacked = match &self.form {
            Form::Plain(records) => return Ok(Cow::Borrowed(records)),
            Form::Packed(bytes) => unpack(bytes, self.records, self.state_bytes, self.packing),
        };
        let records = unpacked.filter(|records| records.len() == self.records);
        records.map(Cow::Owned).ok_or_else(|| Error::bug("a fragment in memory is malformed"))
    }
}

fn pack(part: Part<'_>, packing: Packing) -> Vec<u8> {
    let mut out = Vec::new();
    if let Packing::Rows(codec) = packing {
        put_packed(codec, &rows(part), &mut out);
        return out;
    }
    let mut before = 0;
    part.hashes
        .iter()
        .for_each(|&hash| put_varint(&mut out, u64::from(hash - std::mem::replace(&mut before, hash))));
    put_runs(part.key_sizes, &mut out);
    put_runs(part.state_sizes, &mut out);
    match packing {
        Packing::Apart { keys, states } => {
            let (mut all_keys, mut all_states) = (Vec::new(), Vec::new());
            for record in part.walk() {
                all_keys.extend_from_slice(record.key);
                all_states.extend_from_slice(record.state);
            }
            put_packed(keys, &all_keys, &mut out);
            put_packed(states, &all_states, &mut out);
        }
        Packing::Columns(codec) | Packing::Rows(codec) => put_packed(codec, part.pairs, &mut out),
        Packing::Off => put_packed(Codec::None, part.pairs, &mut out),
    }
    out
}

fn unpack(bytes: &[u8], count: usize, state_bytes: Option<usize>, packing: Packing) -> Option<Records> {
    let mut from = Reader::new(bytes);
    if let Packing::Rows(_) = packing {
        return records_of(&get_packed(&mut from)?, count, state_bytes);
    }
    let mut records = Records::with_capacity(state_bytes, count, 0);
    let mut hash = 0u32;
    for _ in 0..count {
        hash = hash.checked_add(u32::try_from(from.varint()?).ok()?)?;
        records.hashes.push(hash);
    }
    get_runs(&mut from, count, &mut records.key_sizes)?;
    if state_bytes.is_none() {
        get_runs(&mut from, count, &mut records.state_sizes)?;
    }
    records.pairs = get_packed(&mut from)?;
    if let Packing::Apart { .. } = packing {
        let (keys, states) = (std::mem::take(&mut records.pairs), get_packed(&mut from)?);
        let (mut keys, mut states) = (Reader::new(&keys), Reader::new(&states));
        records.pairs.reserve_exact(keys.remaining() + states.remaining());
        for (at, &size) in records.key_sizes.iter().enumerate() {
            records.pairs.extend_from_slice(keys.take(size as usize)?);
            let size = state_bytes.or_else(|| records.state_sizes.get(at).map(|&size| size as usize));
            records.pairs.extend_from_slice(states.take(size?)?);
        }
    }
    Some(records)
}

/// Records one behind the other, as before columns.
fn rows(part: Part<'_>) -> Vec<u8> {
    let mut rows = Vec::with_capacity(part.bytes());
    let mut sizes = part.state_sizes.iter();
    for record in part.walk() {
        rows.extend_from_slice(&record.hash.to_le_bytes());
        rows.extend_from_slice(&(record.key.len() as u32).to_le_bytes());
        if let Some(size) = sizes.next() {
            rows.extend_from_slice(&size.to_le_bytes());
        }
        rows.extend_from_slice(record.key);
        rows.extend_from_slice(record.state);
    }
    rows
}

fn records_of(rows: &[u8], count: usize, state_bytes: Option<usize>) -> Option<Records> {
    let mut records = Records::with_capacity(state_bytes, count, rows.len().saturating_sub(8 * count));
    let mut from = Reader::new(rows);
    for _ in 0..count {
        let (hash, key_bytes) = (from.u32()?, from.u32()? as usize);
        let size = match state_bytes {
            Some(bytes) => bytes,
            None => from.u32()? as usize,
        };
        records.push(&Record { hash, key: from.take(key_bytes)?, state: from.take(size)? });
    }
    Some(records)
}

fn put_runs(sizes: &[u32], out: &mut Vec<u8>) {
    for run in sizes.chunk_by(|one, other| one == other) {
        put_varint(out, u64::from(run[0]));
        put_varint(out, run.len() as u64);
    }
}

fn get_runs(from: &mut Reader<'_>, count: usize, sizes: &mut Vec<u32>) -> Option<()> {
    while sizes.len() < count {
        let size = u32::try_from(from.varint()?).ok()?;
        let run = usize::try_from(from.varint()?).ok()?.checked_add(sizes.len())?;
        sizes.resize(Some(run).filter(|&run| run <= count)?, size);
    }
    Some(())
}

/// `u8 codec | varint bytes before | bytes behind their length`
fn put_packed(codec: Codec, bytes: &[u8], out: &mut Vec<u8>) {
    let mut packed = Vec::new();
    let codec = codec.compress(bytes, &mut packed);
    out.push(codec as u8);
    put_varint(out, bytes.len() as u64);
    put_bytes(out, &packed);
}

fn get_packed(from: &mut Reader<'_>) -> Option<Vec<u8>> {
    let codec = Codec::from_byte(from.u8()?)?;
    let bytes = usize::try_from(from.varint()?).ok()?;
    codec.decompress(from.bytes()?, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fragments_come_back(mut hashes: Vec<u32>, keys: Vec<Vec<u8>>, state_bytes: Option<u8>) {
            hashes.sort_unstable();
            let state_bytes = state_bytes.map(|bytes| usize::from(bytes % 20));
            let mut records = Records::with_capacity(state_bytes, 0, 0);
            for (&hash, key) in hashes.iter().zip(&keys) {
                let state = vec![hash as u8; state_bytes.unwrap_or(key.len() % 5)];
                records.push(&Record { hash, key, state: &state });
            }
            let (meter, lz4) = (Meter::default(), Codec::Lz4);
            let apart = Packing::Apart { keys: lz4, states: Codec::None };
            for packing in [Packing::Off, Packing::Rows(lz4), Packing::Columns(lz4), apart] {
                let fragment = Fragment::new(records.whole(), state_bytes, packing, &meter);
                prop_assert!(meter.get() > 0 || packing == Packing::Off && records.len() == 0);
                let found = fragment.unpack().unwrap();
                prop_assert_eq!(&found.hashes, &records.hashes);
                prop_assert_eq!(&found.key_sizes, &records.key_sizes);
                prop_assert_eq!(&found.state_sizes, &records.state_sizes);
                prop_assert_eq!(&found.pairs, &records.pairs);
                drop(found);
                drop(fragment);
                prop_assert_eq!(meter.get(), 0);
            }
        }
    }
}
