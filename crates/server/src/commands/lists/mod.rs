//! Lists: elements in a row. They stand at places without a gap, so that one in the middle is found as fast as one at
//! an end; what is put or taken in the middle moves all that is on its nearer side.

mod ends;
mod inside;
mod middle;
mod moves;

use super::{COUNTED, Command, Use};
pub(super) use ends::pop;
use ends::{llen, push};
use inside::{lindex, lpos, lrange, lset, ltrim};
use middle::{linsert, lrem};
pub(super) use moves::{check_ends, lmove, lmpop, rpoplpush};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "LPUSH", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: push },
    Command { name: "RPUSH", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: push },
    Command { name: "LPUSHX", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: push },
    Command { name: "RPUSHX", arity: -3, keys: (1, 1, 1), uses: Use::Changes, run: push },
    Command { name: "LPOP", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: pop },
    Command { name: "RPOP", arity: -2, keys: (1, 1, 1), uses: Use::Changes, run: pop },
    Command { name: "LLEN", arity: 2, keys: (1, 1, 1), uses: Use::Reads, run: llen },
    Command { name: "LRANGE", arity: 4, keys: (1, 1, 1), uses: Use::Reads, run: lrange },
    Command { name: "LINDEX", arity: 3, keys: (1, 1, 1), uses: Use::Reads, run: lindex },
    Command { name: "LSET", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: lset },
    Command { name: "LTRIM", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: ltrim },
    Command { name: "LPOS", arity: -3, keys: (1, 1, 1), uses: Use::Reads, run: lpos },
    Command { name: "LREM", arity: 4, keys: (1, 1, 1), uses: Use::Changes, run: lrem },
    Command { name: "LINSERT", arity: 5, keys: (1, 1, 1), uses: Use::Changes, run: linsert },
    Command { name: "LMOVE", arity: 5, keys: (1, 2, 1), uses: Use::Changes, run: lmove },
    Command { name: "RPOPLPUSH", arity: 3, keys: (1, 2, 1), uses: Use::Changes, run: rpoplpush },
    Command { name: "LMPOP", arity: -4, keys: (2, COUNTED, 1), uses: Use::Changes, run: lmpop },
];
