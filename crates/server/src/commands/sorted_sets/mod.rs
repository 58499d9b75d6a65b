//! Sorted sets: members with scores, and in the order of those. Each stands twice among the elements, by its name and
//! behind its score.

mod algebra;
mod bounds;
mod members;
mod pops;
mod ranges;
mod ranks;
mod walks;

use super::{COUNTED, Command, Use};
use algebra::{zinter, zintercard, zstore};
use members::{zadd, zcard, zincrby, zmscore, zrandmember, zrem, zscan, zscore};
pub(super) use pops::{zmpop, zpop};
use ranges::{zcount, zrange, zrangestore, zremrange};
use ranks::zrank;

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "ZADD", arity: -4, keys: (1, 1, 1), uses: Use::Changes, run: zadd },
    Command { name: "ZINCRBY", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: zincrby },
    Command { name: "ZREM", arity: -3, keys: (1, 1, 1), uses: Use::ChangesNamed(1), run: zrem },
    Command { name: "ZSCORE", arity: 3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: zscore },
    Command { name: "ZMSCORE", arity: -3, keys: (1, 1, 1), uses: Use::ReadsNamed(1), run: zmscore },
    Command { name: "ZCARD", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: zcard },
    Command { name: "ZRANDMEMBER", arity: -2, keys: (1, 1, 1), uses: Use::Reads, run: zrandmember },
    Command { name: "ZSCAN", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: zscan },
    Command { name: "ZCOUNT", arity: 4, keys: (1, 1, 1), uses: Use::Reads, run: zcount },
    Command { name: "ZLEXCOUNT", arity: 4, keys: (1, 1, 1), uses: Use::Reads, run: zcount },
    Command { name: "ZRANK", arity: -3, keys: (1, 1, 1), uses: Use::ReadsNamed(2), run: zrank },
    Command { name: "ZREVRANK", arity: -3, keys: (1, 1, 1), uses: Use::ReadsNamed(2), run: zrank },
    Command { name: "ZRANGE", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZREVRANGE", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZRANGEBYSCORE", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZREVRANGEBYSCORE", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZRANGEBYLEX", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZREVRANGEBYLEX", arity: -4, keys: (1, 1, 1), uses: Use::Reads, run: zrange },
    Command { name: "ZRANGESTORE", arity: -5, keys: (1, 2, 1), uses: Use::Changes, run: zrangestore },
    Command { name: "ZREMRANGEBYRANK", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: zremrange },
    Command { name: "ZREMRANGEBYSCORE", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: zremrange },
    Command { name: "ZREMRANGEBYLEX", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: zremrange },
    Command { name: "ZPOPMIN", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: zpop },
    Command { name: "ZPOPMAX", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: zpop },
    Command { name: "ZMPOP", arity: -4, keys: (2, COUNTED, 1), uses: Use::Changes, run: zmpop },
    Command { name: "ZUNION", arity: -3, keys: (2, COUNTED, 1), uses: Use::Reads, run: zinter },
    Command { name: "ZINTER", arity: -3, keys: (2, COUNTED, 1), uses: Use::Reads, run: zinter },
    Command { name: "ZDIFF", arity: -3, keys: (2, COUNTED, 1), uses: Use::Reads, run: zinter },
    Command { name: "ZINTERCARD", arity: -3, keys: (2, COUNTED, 1), uses: Use::Reads, run: zintercard },
    Command { name: "ZUNIONSTORE", arity: -4, keys: (3, COUNTED, 1), uses: Use::Changes, run: zstore },
    Command { name: "ZINTERSTORE", arity: -4, keys: (3, COUNTED, 1), uses: Use::Changes, run: zstore },
    Command { name: "ZDIFFSTORE", arity: -4, keys: (3, COUNTED, 1), uses: Use::Changes, run: zstore },
];
