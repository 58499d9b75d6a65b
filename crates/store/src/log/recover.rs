//! Reading the log back after a crash.
//!
//! 1. Read segments by ascending id, and in each the frames from the front, as long as every frame is sound
//!    and numbers on from the one before.
//! 2. Where that ends, go on in the next segment if its first frame numbers on.
//! 3. Otherwise the log's end is here. Everything behind it is a legal torn tail only if none of it was
//!    known durable: look at every frame that still stands behind the end, and if one carries a watermark
//!    at or above the first missing sequence, this is damage and the error names the place.

use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::{Access, FileSystem};

use super::batch::Records;
use super::frame::{self, Header};
use crate::buffer::Cut;
use crate::names;

/// A segment's sound part.
#[derive(Debug)]
pub struct Segment {
    /// Its id.
    pub id: u64,
    /// Its bytes, up to the end of the last sound frame.
    pub bytes: Vec<u8>,
    /// The ranges that it deletes.
    pub cuts: Vec<Cut>,
}

/// What recovery found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Segments with sound frames, oldest first.
    pub segments: Vec<Segment>,
    /// The number of the last sound record.
    pub last_sequence: u64,
    /// The segment that ends in a torn tail, and where to cut it.
    pub cut: Option<(u64, u64)>,
    /// Segments that hold nothing of the log.
    pub unused: Vec<u64>,
}

struct Scan {
    id: u64,
    bytes: Vec<u8>,
    /// End of the sound, consecutive frames.
    end: usize,
}

/// Reads segments `ids` (ascending), the first of which begins behind sequence `absorbed`. Sequences up to
/// `known_durable` must be there.
pub fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    ids: &[u64],
    absorbed: u64,
    known_durable: u64,
) -> Result<Recovered> {
    let mut found = Recovered { last_sequence: absorbed, ..Recovered::default() };
    let mut ids = ids.iter().copied().peekable();
    let mut last: Option<Scan> = None;
    while let Some(&id) = ids.peek() {
        let bytes = read_whole(fs, &names::log(dir, id))?;
        let mut cuts = Vec::new();
        let (end, sequence) = sound_frames(&bytes, id, found.last_sequence, &names::log(dir, id), &mut cuts)?;
        if end == 0 && highest_watermark(&bytes, id, 0).is_some() {
            // Frames stand here, but they do not number on: the log ended before this segment.
            break;
        }
        ids.next();
        if end == 0 {
            found.unused.push(id);
            continue;
        }
        found.last_sequence = sequence;
        found.segments.push(Segment { id, bytes: bytes[..end].to_vec(), cuts });
        last = Some(Scan { id, bytes, end });
    }
    let missing = found.last_sequence + 1;
    let mut known = known_durable;
    if let Some(tail) = &last {
        known = known.max(highest_watermark(&tail.bytes, tail.id, tail.end).unwrap_or(0));
        if tail.end < tail.bytes.len() {
            found.cut = Some((tail.id, tail.end as u64));
        }
    }
    for id in ids {
        let bytes = read_whole(fs, &names::log(dir, id))?;
        known = known.max(highest_watermark(&bytes, id, 0).unwrap_or(0));
        found.unused.push(id);
    }
    if known >= missing {
        let next = found.unused.iter().copied().find(|&id| last.as_ref().is_none_or(|tail| id > tail.id));
        let (id, offset) = match (&last, next) {
            // A segment that is sound to its end: the next one should have begun with what is missing.
            (Some(tail), Some(next)) if tail.bytes[tail.end..].iter().all(|&byte| byte == 0) => (next, 0),
            (Some(tail), _) => (tail.id, tail.end as u64),
            (None, next) => (next.unwrap_or(0), 0),
        };
        return Err(Error::corruption(
            &names::log(dir, id),
            offset,
            format!("records {missing} to {known} were durable and cannot be read"),
        ));
    }
    Ok(found)
}

/// Follows frames from the front. Returns where they end and the last sequence, and gathers cuts.
fn sound_frames(
    bytes: &[u8],
    id: u64,
    mut sequence: u64,
    path: &Path,
    cuts: &mut Vec<Cut>,
) -> Result<(usize, u64)> {
    let mut at = 0;
    while let Some((header, payload)) = frame::read(bytes, id, at) {
        if header.sequence != sequence + 1 {
            break;
        }
        let mut records = Records::new(payload);
        let count = records.by_ref().count();
        let (is_whole, met) = (records.is_at_end(), records.into_cuts());
        if !is_whole || count + met.len() != header.records as usize {
            return Err(Error::corruption(path, at as u64, "a frame's records are malformed"));
        }
        cuts.extend(met.into_iter().map(|cut| Cut { place: at + frame::HEADER_BYTES + cut.place, ..cut }));
        sequence += header.records as u64;
        at = header.end(at);
    }
    Ok((at, sequence))
}

/// The highest watermark of any header that stands behind `from`, wherever it is.
fn highest_watermark(bytes: &[u8], id: u64, from: usize) -> Option<u64> {
    let headers = (from..bytes.len()).step_by(8).filter_map(|at| Header::decode(bytes, id, at));
    headers.map(|header| header.watermark).max()
}

fn read_whole(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open_read(path, Access::Buffered)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}
