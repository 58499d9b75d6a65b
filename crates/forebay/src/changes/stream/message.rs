//! Messages of a change stream, and their bytes. Each has a head of 16 bytes:
//!
//! `u32 head_sum | u32 body_sum | u32 body_bytes | u8 kind | 3 zeros`
//!
//! Both sums are seeded with the message's place in the stream, so no message is taken for another one. A stream begins
//! with eight bytes that tell that it is one; places count from there.

use forebay_base::checksum::checksum;
use forebay_base::wire::{Reader, put_varint, u32_at};
use forebay_store::manifest::{Lineage, TableEntry};

/// What a stream begins with.
pub(super) const MAGIC: &[u8; 8] = b"FBCHANGE";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Bytes before a message's body.
pub(super) const HEAD_BYTES: usize = 16;

/// No message but a commit is longer than these, whatever a newer version may add.
const ROUND_BYTES_MAX: u32 = 64 << 20;
const GREETING_BYTES_MAX: u32 = 64 << 10;
const OTHER_BYTES_MAX: u32 = 64;
/// No request is longer, with what a stream begins with.
pub(super) const REQUEST_BYTES_MAX: u64 = (MAGIC.len() + HEAD_BYTES) as u64 + OTHER_BYTES_MAX as u64;

/// Seeds the sums.
const SEED: u64 = u64::from_le_bytes(*MAGIC);

const GREETING: u8 = 1;
const ROUND: u8 = 2;
const BATCH: u8 = 3;
const MARK: u8 = 4;
const END: u8 = 5;
const REQUEST: u8 = 6;

/// Whose stream it is: its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) lineage: Lineage,
    /// What was committed after this follows.
    pub(crate) since: u64,
}

/// Begins what was told at one go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// The time, in milliseconds since 1970, by which all of it was committed.
    pub(crate) at_milliseconds: u64,
    /// Table ids below this one are used up.
    pub(crate) next_table: u32,
    /// The tables that there are by then, each as it would be made, if that was not told before.
    pub(crate) tables: Option<Vec<TableEntry>>,
}

/// A commit, as it stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchOf {
    /// The number of its first record.
    pub(crate) sequence: u64,
    pub(crate) records: u32,
    pub(crate) payload: Vec<u8>,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There is no more for now.
    Finished,
    /// Changes are gone that would follow.
    Gone { since: u64, oldest: u64, rolled_back: Option<u64> },
    /// The source has not come as far as was asked: this is its last record.
    Behind(u64),
}

/// What a follower asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The number of its last record.
    pub(crate) position: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Greeting(Greeting),
    Round(Round),
    Batch(BatchOf),
    /// All of a round was told, up to this number.
    Mark(u64),
    End(Ending),
    Request(Request),
}

/// What a message is that was read.
pub(super) enum Decoded {
    Message(Message),
    /// Of a stream of a newer version.
    Newer(u32),
}

/// The head of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    body_sum: u32,
    pub(super) body_bytes: u32,
    pub(super) kind: u8,
}

impl Head {
    /// The head that stands at this place; `None` where none does.
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES], place: u64) -> Option<Self> {
        let is_one = checksum(SEED, place, &bytes[4..]) == u32_at(bytes, 0) && bytes[13..] == [0; 3];
        is_one.then(|| Self { body_sum: u32_at(bytes, 4), body_bytes: u32_at(bytes, 8), kind: bytes[12] })
    }

    /// Whether no message of its kind is so long.
    pub(super) fn is_too_long(&self) -> bool {
        let bytes_max = match self.kind {
            BATCH => u32::MAX,
            ROUND => ROUND_BYTES_MAX,
            GREETING => GREETING_BYTES_MAX,
            _ => OTHER_BYTES_MAX,
        };
        self.body_bytes > bytes_max
    }

    /// Whether this is the body that belongs to it.
    pub(super) fn fits(&self, body: &[u8], place: u64) -> bool {
        body.len() == self.body_bytes as usize && checksum(SEED, place, body) == self.body_sum
    }
}

impl Request {
    /// The stream that has this alone.
    pub(crate) fn stream(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let place = bytes.len() as u64;
        Message::Request(self).encode(place, &mut bytes);
        bytes
    }
}

impl Message {
    /// Appends its bytes for this place.
    pub(crate) fn encode(&self, place: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        let kind = match self {
            Self::Greeting(Greeting { lineage, since }) => {
                out.extend_from_slice(&VERSION.to_le_bytes());
                lineage.encode(out);
                put_varint(out, *since);
                GREETING
            }
            Self::Round(Round { at_milliseconds, next_table, tables }) => {
                out.extend_from_slice(&at_milliseconds.to_le_bytes());
                put_varint(out, u64::from(*next_table));
                out.push(tables.is_some() as u8);
                if let Some(tables) = tables {
                    put_varint(out, tables.len() as u64);
                    tables.iter().for_each(|table| table.encode(out));
                }
                ROUND
            }
            Self::Batch(BatchOf { sequence, records, payload }) => {
                out.extend_from_slice(&sequence.to_le_bytes());
                out.extend_from_slice(&records.to_le_bytes());
                out.extend_from_slice(payload);
                BATCH
            }
            Self::Mark(position) => {
                out.extend_from_slice(&position.to_le_bytes());
                MARK
            }
            Self::End(Ending::Finished) => {
                out.push(0);
                END
            }
            Self::End(Ending::Gone { since, oldest, rolled_back }) => {
                out.push(1);
                [*since, *oldest, rolled_back.unwrap_or(0)]
                    .into_iter()
                    .for_each(|number| put_varint(out, number));
                END
            }
            Self::End(Ending::Behind(last)) => {
                out.push(2);
                put_varint(out, *last);
                END
            }
            Self::Request(Request { position }) => {
                out.extend_from_slice(&VERSION.to_le_bytes());
                out.extend_from_slice(&position.to_le_bytes());
                REQUEST
            }
        };
        let message = &mut out[begin..];
        let (head, body) = message.split_at_mut(HEAD_BYTES);
        debug_assert!(
            matches!(Self::decode(kind, body), Some(Decoded::Message(read)) if read == *self),
            "what is written is read"
        );
        head[4..8].copy_from_slice(&checksum(SEED, place, body).to_le_bytes());
        head[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
        head[12] = kind;
        let sum = checksum(SEED, place, &head[4..]);
        head[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The message of this kind; `None` where the body is none.
    pub(super) fn decode(kind: u8, body: &[u8]) -> Option<Decoded> {
        let mut from = Reader::new(body);
        if [GREETING, REQUEST].contains(&kind) {
            // A newer one may say more.
            let version = from.u32()?;
            if version > VERSION {
                return Some(Decoded::Newer(version));
            }
        }
        let message = match kind {
            GREETING => {
                Self::Greeting(Greeting { lineage: Lineage::decode(&mut from)?, since: from.varint()? })
            }
            ROUND => {
                let (at_milliseconds, next_table) = (from.u64()?, u32::try_from(from.varint()?).ok()?);
                let tables = match from.u8()? {
                    0 => None,
                    1 => Some(tables(&mut from, next_table)?),
                    _ => return None,
                };
                // There is room for another table.
                Self::Round(
                    Some(Round { at_milliseconds, next_table, tables }).filter(|_| next_table < u32::MAX)?,
                )
            }
            BATCH => {
                let (sequence, records) = (from.u64()?, from.u32()?);
                let is_one =
                    sequence > 0 && records > 0 && sequence.checked_add(u64::from(records)).is_some();
                let payload = from.take(from.remaining())?.to_vec();
                Self::Batch(Some(BatchOf { sequence, records, payload }).filter(|_| is_one)?)
            }
            MARK => Self::Mark(from.u64()?),
            END => Self::End(match from.u8()? {
                0 => Ending::Finished,
                1 => {
                    let (since, oldest, rolled_back) = (from.varint()?, from.varint()?, from.varint()?);
                    Ending::Gone {
                        since,
                        oldest,
                        rolled_back: Some(rolled_back).filter(|&number| number > 0),
                    }
                }
                2 => Ending::Behind(from.varint()?),
                _ => return None,
            }),
            REQUEST => Self::Request(Request { position: from.u64()? }),
            _ => return None,
        };
        (from.remaining() == 0).then_some(Decoded::Message(message))
    }
}

fn tables(from: &mut Reader<'_>, next_table: u32) -> Option<Vec<TableEntry>> {
    let mut tables: Vec<TableEntry> = Vec::new();
    for _ in 0..from.varint()? {
        tables.push(TableEntry::decode(from)?);
    }
    // Each as it would be made: none has files.
    let is_sound = tables.is_sorted_by(|one, next| one.id < next.id)
        && tables.iter().all(|table| table.files.is_empty() && (1..next_table).contains(&table.id));
    is_sound.then_some(tables)
}
