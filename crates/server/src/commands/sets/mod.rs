//! Sets: members, each once, in one key.

mod algebra;
mod members;

use super::{COUNTED, Command, Use};
use algebra::{sinter, sintercard, sstore};
use members::{sadd, scard, sismember, smembers, smismember, smove, spop, srandmember, srem, sscan};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "SADD", arity: -3, keys: (1, 1, 1), uses: Use::ChangesNamed(1), run: sadd },
    Command { name: "SREM", arity: -3, keys: (1, 1, 1), uses: Use::ChangesNamed(1), run: srem },
    Command { name: "SISMEMBER", arity: 3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: sismember },
    Command { name: "SMISMEMBER", arity: -3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: smismember },
    Command { name: "SMEMBERS", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: smembers },
    Command { name: "SCARD", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: scard },
    Command { name: "SPOP", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: spop },
    Command { name: "SRANDMEMBER", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: srandmember },
    Command { name: "SMOVE", arity: 4, keys: (1, 2, 1), uses: Use::Changes, run: smove },
    Command { name: "SINTER", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: sinter },
    Command { name: "SUNION", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: sinter },
    Command { name: "SDIFF", arity: -2, keys: (1, -1, 1), uses: Use::Reads, run: sinter },
    Command { name: "SINTERSTORE", arity: -3, keys: (1, -1, 1), uses: Use::Changes, run: sstore },
    Command { name: "SUNIONSTORE", arity: -3, keys: (1, -1, 1), uses: Use::Changes, run: sstore },
    Command { name: "SDIFFSTORE", arity: -3, keys: (1, -1, 1), uses: Use::Changes, run: sstore },
    Command { name: "SINTERCARD", arity: -3, keys: (2, COUNTED, 1), uses: Use::Reads, run: sintercard },
    Command { name: "SSCAN", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: sscan },
];
