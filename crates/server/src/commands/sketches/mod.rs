//! Sketches: answers about many things, within a stated error, from a value of bounded size. Each stands in its key, as a
//! text does, behind a byte of its own; what writes it writes all of it.

mod bloom;
mod count_min;
mod digest;
mod distinct;
mod top;
mod wire;

use super::{Answer, COUNTED, Call, Command, Refusal, Use, WRONG_TYPE, strings};
use crate::turn::Stored;
use crate::value::{self, Type};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "PFADD", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: distinct::add },
    Command { name: "PFCOUNT", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: distinct::count },
    Command { name: "PFMERGE", arity: -2, keys: (1, -1, 1), uses: Use::Changes, run: distinct::merge },
    Command { name: "BF.RESERVE", arity: -4, keys: (1, 1, 1), uses: Use::Changes, run: bloom::reserve },
    Command { name: "BF.ADD", arity: 3, keys: (1, 1, 1), uses: Use::Changes, run: bloom::add },
    Command { name: "BF.MADD", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: bloom::add },
    Command { name: "BF.EXISTS", arity: 3, keys: (1, 1, 1), uses: Use::Reads, run: bloom::exists },
    Command { name: "BF.MEXISTS", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: bloom::exists },
    Command { name: "BF.CARD", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: bloom::card },
    Command { name: "BF.INFO", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: bloom::info },
    Command { name: "CMS.INITBYDIM", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: count_min::by_size },
    Command {
        name: "CMS.INITBYPROB",
        arity: 4,
        keys: (1, 1, 1),
        uses: Use::Changes,
        run: count_min::by_error,
    },
    Command { name: "CMS.INCRBY", arity: -4, keys: (1, 1, 1), uses: Use::Changes, run: count_min::add },
    Command { name: "CMS.QUERY", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: count_min::query },
    Command {
        name: "CMS.MERGE",
        arity: -4,
        keys: (3, COUNTED, 1),
        uses: Use::Changes,
        run: count_min::merge,
    },
    Command { name: "CMS.INFO", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: count_min::info },
    Command { name: "TOPK.RESERVE", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: top::reserve },
    Command { name: "TOPK.ADD", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: top::add },
    Command { name: "TOPK.INCRBY", arity: -4, keys: (1, 1, 1), uses: Use::Changes, run: top::add },
    Command { name: "TOPK.QUERY", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: top::query },
    Command { name: "TOPK.COUNT", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: top::count },
    Command { name: "TOPK.LIST", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: top::list },
    Command { name: "TOPK.INFO", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: top::info },
    Command { name: "TDIGEST.CREATE", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: digest::create },
    Command { name: "TDIGEST.RESET", arity: 2, keys: (1, 1, 1), uses: Use::Changes, run: digest::reset },
    Command { name: "TDIGEST.ADD", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: digest::add },
    Command { name: "TDIGEST.QUANTILE", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: digest::quantile },
    Command { name: "TDIGEST.CDF", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: digest::cdf },
    Command { name: "TDIGEST.RANK", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: digest::rank },
    Command {
        name: "TDIGEST.REVRANK",
        arity: -3,
        keys: (1, 1, 1),
        uses: Use::Reads,
        run: digest::reverse_rank,
    },
    Command { name: "TDIGEST.BYRANK", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: digest::by_rank },
    Command {
        name: "TDIGEST.BYREVRANK",
        arity: -3,
        keys: (1, 1, 1),
        uses: Use::Reads,
        run: digest::by_reverse_rank,
    },
    Command { name: "TDIGEST.MIN", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: digest::min },
    Command { name: "TDIGEST.MAX", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: digest::max },
    Command {
        name: "TDIGEST.TRIMMED_MEAN",
        arity: 4,
        keys: (1, 1, 1),
        uses: Use::Reads,
        run: digest::trimmed_mean,
    },
    Command { name: "TDIGEST.INFO", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: digest::info },
    Command {
        name: "TDIGEST.MERGE",
        arity: -4,
        keys: (3, COUNTED, 1),
        uses: Use::Changes,
        run: digest::merge,
    },
];

/// The largest sketch: each write of one writes all of it.
const BYTES_MAX: usize = 4 << 20;

/// Items that one command may name.
const ITEMS_MAX: usize = 100_000;

fn check_count(items: &[&[u8]]) -> Answer {
    match items.len() > ITEMS_MAX {
        true => Err(format!("ERR a command on sketches takes at most {ITEMS_MAX} items").into()),
        false => Ok(()),
    }
}

/// The error of bytes that this version did not write.
fn damaged() -> Refusal {
    "ERR the sketch is not one of this version's, or is damaged; run `forebay verify`".into()
}

fn too_large() -> Refusal {
    format!("ERR a sketch takes at most {BYTES_MAX} bytes").into()
}

impl Call<'_, '_> {
    /// The sketch of a key, behind its byte.
    fn sketch(&mut self, key: &[u8], kind: Type) -> Result<Option<&[u8]>, Refusal> {
        match self.turn.get(self.client.database, key)? {
            None => Ok(None),
            Some(stored) if Type::of(&stored.bytes) == Some(kind) => Ok(Some(&stored.bytes[1..])),
            Some(_) => Err(WRONG_TYPE.into()),
        }
    }

    /// The same where it has to be there.
    fn sketch_there(&mut self, key: &[u8], kind: Type, missing: &'static str) -> Result<&[u8], Refusal> {
        self.sketch(key, kind)?.ok_or(missing.into())
    }

    /// Has a sketch that is there be changed where it stands, behind its byte: see `Turn::edit`. It gets no longer than a sketch
    /// may be.
    fn edit_sketch(
        &mut self,
        key: &[u8],
        kind: Type,
        check: impl FnOnce(&[u8]) -> Answer,
        change: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<Option<bool>, Refusal> {
        let is_right = |stored: &[u8]| match Type::of(stored) == Some(kind) {
            true => Ok(()),
            false => Err(WRONG_TYPE.into()),
        };
        let check = |stored: &[u8]| check(&stored[1..]);
        self.turn.edit(self.client.database, key, is_right, check, change)
    }

    /// Has a key hold a sketch. When it expires stays.
    fn put_sketch(&mut self, key: &[u8], kind: Type, sketch: &[u8]) -> Answer {
        strings::checked_key(self, key)?;
        if sketch.len() > BYTES_MAX {
            return Err(too_large());
        }
        let expiry = self.expiry(key)?;
        let stored = Stored { bytes: value::marked(kind, sketch), expiry };
        self.turn.set(self.client.database, key, Some(stored));
        Ok(())
    }
}
