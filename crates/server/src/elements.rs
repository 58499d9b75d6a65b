//! The keys by which the elements of containers stand in the table of elements: the container's number, a byte that
//! says which part of it this is, and the place there. `docs/format/server.md` shows them.
//!
//! **Invariant:** keys of one part sort as its places do: names by the hash that also is the cursor of `HSCAN` and its
//! like, members behind their scores, elements of a list by their place.

use std::ops::Range;

use forebay::limits::KEY_BYTES_MAX;

/// Which part of a container a key is of.
const OWNER: u8 = 0;
const NAMES: u8 = 1;
const SCORES: u8 = 2;
const PLACES: u8 = 3;

/// The number that no container has: under it the numbers of those wait that were dropped.
pub(crate) const DROPPED: u64 = 0;

/// Container, part and score are so many bytes.
const HEAD_BYTES: usize = 8 + 1 + 8;
/// The longest name of a field or member, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = KEY_BYTES_MAX - HEAD_BYTES;

fn key(id: u64, part: u8, place: &[u8], name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + place.len() + name.len());
    key.extend_from_slice(&id.to_be_bytes());
    key.push(part);
    key.extend_from_slice(place);
    key.extend_from_slice(name);
    key
}

/// All keys of a part.
fn part(id: u64, part: u8) -> Range<Vec<u8>> {
    key(id, part, &[], &[])..key(id, part + 1, &[], &[])
}

/// The container that a key is of.
pub(crate) fn id_of(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|id| u64::from_be_bytes(*id))
}

/// All keys of a container.
pub(crate) fn all(id: u64) -> Range<Vec<u8>> {
    id.to_be_bytes().to_vec()..(id + 1).to_be_bytes().to_vec()
}

/// Where it stands which key holds a container.
pub(crate) fn owner(id: u64) -> Vec<u8> {
    key(id, OWNER, &[], &[])
}

/// Where it stands that a container was dropped.
pub(crate) fn dropped(id: u64) -> Vec<u8> {
    key(DROPPED, OWNER, &id.to_be_bytes(), &[])
}

/// The container that is said to be dropped.
pub(crate) fn dropped_id(key: &[u8]) -> Option<u64> {
    key.get(9..).and_then(id_of)
}

/// Where names stand among their like, and cursors.
pub(crate) fn hash(name: &[u8]) -> u32 {
    (rapidhash::v3::rapidhash_v3(name) >> 32) as u32
}

/// A field of a hash, or a member.
pub(crate) fn named(id: u64, name: &[u8]) -> Vec<u8> {
    key(id, NAMES, &hash(name).to_be_bytes(), name)
}

/// All fields, or members, from a hash on.
pub(crate) fn names_from(id: u64, hash: u32) -> Range<Vec<u8>> {
    key(id, NAMES, &hash.to_be_bytes(), &[])..key(id, NAMES + 1, &[], &[])
}

/// The hash and the name in the key of a field or member.
pub(crate) fn name_of(key: &[u8]) -> (u32, &[u8]) {
    let place = key.get(9..).and_then(<[u8]>::first_chunk).map_or(0, |hash| u32::from_be_bytes(*hash));
    (place, key.get(13..).unwrap_or_default())
}

/// Bytes that sort as numbers do.
fn sortable(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    (if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes()
}

/// A member behind its score.
pub(crate) fn scored(id: u64, score: f64, member: &[u8]) -> Vec<u8> {
    key(id, SCORES, &sortable(score), member)
}

/// All members behind their scores.
pub(crate) fn scores(id: u64) -> Range<Vec<u8>> {
    part(id, SCORES)
}

/// Behind all members of a score.
pub(crate) fn behind_score(id: u64, score: f64) -> Vec<u8> {
    let next = u64::from_be_bytes(sortable(score)) + 1;
    key(id, SCORES, &next.to_be_bytes(), &[])
}

/// The score and the member in a key.
pub(crate) fn score_of(key: &[u8]) -> (f64, &[u8]) {
    let bits = key.get(9..).and_then(<[u8]>::first_chunk).map_or(0, |bits| u64::from_be_bytes(*bits));
    let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
    (f64::from_bits(bits), key.get(17..).unwrap_or_default())
}

/// An element of a list.
pub(crate) fn placed(id: u64, place: i64) -> Vec<u8> {
    key(id, PLACES, &(place as u64 ^ 1 << 63).to_be_bytes(), &[])
}

/// Some elements of a list.
pub(crate) fn places(id: u64, places: Range<i64>) -> Range<Vec<u8>> {
    placed(id, places.start)..placed(id, places.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_places_do() {
        let scores =
            [f64::NEG_INFINITY, -1e300, -1.5, -1.0, 0.0, f64::MIN_POSITIVE, 1.0, 1e300, f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(scored(1, pair[0], b"z") < scored(1, pair[1], b"a"), "{pair:?}");
            assert!(scored(1, pair[0], b"\xff") < behind_score(1, pair[0]));
            assert!(behind_score(1, pair[0]) <= scored(1, pair[1], b""));
        }
        for score in scores {
            assert_eq!(score_of(&scored(1, score, b"member")), (score, &b"member"[..]));
        }
        for pair in [i64::MIN, -300, -1, 0, 1, 300, i64::MAX].windows(2) {
            assert!(placed(1, pair[0]) < placed(1, pair[1]), "{pair:?}");
        }
        assert_eq!(name_of(&named(1, b"field")), (hash(b"field"), &b"field"[..]));
        assert_eq!(dropped_id(&dropped(77)), Some(77));
        assert!(all(77).contains(&named(77, b"x")) && !all(76).contains(&owner(77)));
    }
}
