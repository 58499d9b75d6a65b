//! Hashes: fields with values, in one key.

mod read;
mod write;

use super::{Command, Use};
use read::{hexists, hget, hgetall, hlen, hmget, hrandfield, hscan, hstrlen};
use write::{hdel, hincrby, hincrbyfloat, hset, hsetnx};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "HSET", arity: -4, keys: (1, 1, 1), uses: Use::ChangesNamed(2), run: hset },
    Command { name: "HMSET", arity: -4, keys: (1, 1, 1), uses: Use::ChangesNamed(2), run: hset },
    Command { name: "HSETNX", arity: 4, keys: (1, 1, 1), uses: Use::ChangesNamed(2), run: hsetnx },
    Command { name: "HDEL", arity: -3, keys: (1, 1, 1), uses: Use::ChangesNamed(1), run: hdel },
    Command { name: "HINCRBY", arity: 4, keys: (1, 1, 1), uses: Use::ChangesNamed(2), run: hincrby },
    Command {
        name: "HINCRBYFLOAT",
        arity: 4,
        keys: (1, 1, 1),
        uses: Use::ChangesNamed(2),
        run: hincrbyfloat,
    },
    Command { name: "HGET", arity: 3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: hget },
    Command { name: "HMGET", arity: -3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: hmget },
    Command { name: "HEXISTS", arity: 3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: hexists },
    Command { name: "HSTRLEN", arity: 3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: hstrlen },
    Command { name: "HLEN", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: hlen },
    Command { name: "HGETALL", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: hgetall },
    Command { name: "HKEYS", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: hgetall },
    Command { name: "HVALS", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: hgetall },
    Command { name: "HRANDFIELD", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: hrandfield },
    Command { name: "HSCAN", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: hscan },
];
