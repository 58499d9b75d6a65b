"""Random commands of each kind, with keys, names and numbers that meet often, and some that are refused."""

from __future__ import annotations

import random
from typing import Any

KEYS = [b"a", b"b", b"c", b"key:1", b"key:2", b"", b"h:1", b"s:1", b"z:1", b"l:1"]
VALUES = [b"", b"0", b"1", b"-5", b"17", b"3.5", b"text", b"9223372036854775807", b"\x00\xff\r\n", b"x" * 100]
NUMBERS = [b"0", b"1", b"-1", b"3", b"-7", b"100", b"9223372036854775807", b"nothing"]
# None ends while a round runs, in which commands wait.
TIMES = [b"100000", b"1000000", b"0", b"-1", b"x", b"9223372036854775807"]


FIELDS = [b"f", b"g", b"field:1", b"field:2", b"", b"\x00\xff", b"1", b"2", b"m" * 70]
SCORES = [b"0", b"1", b"-1.5", b"2.25", b"1e3", b"inf", b"-inf", b"x", b"3", b"7"]
# One kind's keys, mostly, so that commands find what they are for.
HASHES, SETS, SORTED, LISTS = ([kind + b":1", kind + b":2", kind + b":3", b"a"] for kind in (b"h", b"s", b"z", b"l"))


def hash_command(rng: random.Random) -> list[bytes]:
    key, field, value = (lambda some=some: rng.choice(some) for some in (HASHES, FIELDS, VALUES))
    fields = lambda: [field() for _ in range(rng.randint(1, 4))]  # noqa: E731
    pairs = lambda: sum(([field(), value()] for _ in range(rng.randint(1, 4))), [])  # noqa: E731
    choices: list[Any] = [
        lambda: [rng.choice([b"HSET", b"HSET", b"HMSET"]), key(), *pairs(), *rng.choice([[], [], [], [b"odd"]])],
        lambda: [b"HSETNX", key(), field(), value()],
        lambda: [b"HGET", key(), field()],
        lambda: [b"HMGET", key(), *fields()],
        lambda: [rng.choice([b"HGETALL", b"HKEYS", b"HVALS", b"HLEN", b"TYPE", b"TTL"]), key()],
        lambda: [rng.choice([b"HEXISTS", b"HSTRLEN"]), key(), field()],
        lambda: [b"HDEL", key(), *fields()],
        lambda: [b"HINCRBY", key(), field(), rng.choice(NUMBERS)],
        lambda: [b"HINCRBYFLOAT", key(), rng.choice([b"x", b"y"]), rng.choice([b"1", b"0.5", b"-2.25", b"text", b"inf"])],
        lambda: [b"HRANDFIELD", key(), *rng.choice([[], [b"100"], [b"0"], [b"100", b"WITHVALUES"], [b"x"], [b"1", b"no"]])],
        lambda: [b"HSCAN", key(), rng.choice([b"0", b"x"]), b"COUNT", b"1000", *rng.choice([[], [b"MATCH", b"f*"]])],
        lambda: [b"HSCAN", key(), b"0", *rng.choice([[b"COUNT"], [b"COUNT", b"0"], [b"no", b"1"]])],
    ]
    return rng.choice(choices)()


def set_command(rng: random.Random) -> list[bytes]:
    key, member = (lambda some=some: rng.choice(some) for some in (SETS, FIELDS))
    members = lambda: [member() for _ in range(rng.randint(1, 4))]  # noqa: E731
    keys = lambda: [key() for _ in range(rng.randint(1, 3))]  # noqa: E731
    choices: list[Any] = [
        lambda: [b"SADD", key(), *members()],
        lambda: [b"SADD", key(), *members()],
        lambda: [rng.choice([b"SREM", b"SMISMEMBER"]), key(), *members()],
        lambda: [b"SISMEMBER", key(), member()],
        lambda: [rng.choice([b"SMEMBERS", b"SCARD", b"TYPE"]), key()],
        lambda: [b"SPOP", key(), *rng.choice([[b"100"], [b"0"], [b"-1"], [b"x"], [b"1", b"2"]])],
        lambda: [b"SRANDMEMBER", key(), *rng.choice([[], [b"100"], [b"0"], [b"x"], [b"1", b"2"]])],
        lambda: [b"SMOVE", key(), key(), member()],
        lambda: [rng.choice([b"SINTER", b"SUNION", b"SDIFF"]), *keys()],
        lambda: [rng.choice([b"SINTERSTORE", b"SUNIONSTORE", b"SDIFFSTORE"]), key(), *keys()],
        lambda: [b"SINTERCARD", rng.choice([b"1", b"2", b"0", b"x", b"9"]), *keys(), *rng.choice([[], [b"LIMIT", b"1"], [b"LIMIT", b"-1"]])],
        lambda: [b"SSCAN", key(), b"0", b"COUNT", b"1000", *rng.choice([[], [b"MATCH", b"f*"]])],
    ]
    return rng.choice(choices)()


def sorted_command(rng: random.Random) -> list[bytes]:
    key, member, score = (lambda some=some: rng.choice(some) for some in (SORTED, FIELDS, SCORES))
    pairs = lambda: sum(([score(), member()] for _ in range(rng.randint(1, 4))), [])  # noqa: E731
    index = lambda: rng.choice([b"0", b"1", b"-1", b"2", b"-3", b"100", b"-100", b"x"])  # noqa: E731
    bound = lambda: rng.choice([b"-inf", b"+inf", b"0", b"(1", b"2.25", b"(inf", b"x"])  # noqa: E731
    name = lambda: rng.choice([b"-", b"+", b"[f", b"(f", b"[", b"(m", b"x"])  # noqa: E731
    with_scores = lambda: rng.choice([[], [b"WITHSCORES"]])  # noqa: E731
    limit = lambda: rng.choice([[], [b"LIMIT", rng.choice([b"0", b"1", b"-1"]), rng.choice([b"1", b"-1", b"2", b"x"])]])  # noqa: E731
    keys = lambda: [key() for _ in range(rng.randint(1, 3))]  # noqa: E731
    # All of one score: only there names are in order.
    flat = lambda: rng.choice([b"flat:1", b"flat:2"])  # noqa: E731

    def several(name: bytes, *target: bytes) -> list[bytes]:
        sources = [rng.choice([*SORTED, b"s:1"]) for _ in range(rng.randint(1, 3))]
        words: list[bytes] = []
        if not name.startswith(b"ZDIFF"):
            words += rng.choice([[], [b"WEIGHTS", *(rng.choice([b"1", b"2", b"-0.5", b"x", b"0"]) for _ in sources)]])
            words += rng.choice([[], [b"AGGREGATE", rng.choice([b"SUM", b"MIN", b"MAX", b"no"])]])
        if not target:
            words += with_scores()
        return [name, *target, rng.choice([b"%d" % len(sources)] * 8 + [b"0", b"x", b"9"]), *sources, *words]

    choices: list[Any] = [
        lambda: [b"ZADD", key(), *pairs()],
        lambda: [b"ZADD", key(), *pairs()],
        lambda: [b"ZADD", key(), *rng.sample([b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"], rng.randint(1, 2)), *pairs()],
        lambda: [b"ZADD", flat(), b"0", member(), b"0", member()],
        lambda: [b"ZINCRBY", key(), score(), member()],
        lambda: [b"ZREM", key(), member(), member()],
        lambda: [b"ZSCORE", key(), member()],
        lambda: [b"ZMSCORE", key(), member(), member()],
        lambda: [rng.choice([b"ZCARD", b"TYPE"]), key()],
        lambda: [b"ZCOUNT", key(), bound(), bound()],
        lambda: [rng.choice([b"ZRANK", b"ZREVRANK"]), key(), member()],
        lambda: [rng.choice([b"ZRANGE", b"ZREVRANGE"]), key(), index(), index(), *with_scores()],
        lambda: [b"ZRANGE", key(), index(), index(), b"REV", *limit()],
        lambda: [b"ZRANGE", key(), bound(), bound(), b"BYSCORE", *rng.choice([[], [b"REV"]]), *limit(), *with_scores()],
        lambda: [rng.choice([b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE"]), key(), bound(), bound(), *limit(), *with_scores()],
        lambda: [b"ZRANGE", flat(), name(), name(), b"BYLEX", *rng.choice([[], [b"REV"], [b"WITHSCORES"]]), *limit()],
        lambda: [rng.choice([b"ZRANGEBYLEX", b"ZREVRANGEBYLEX"]), flat(), name(), name(), *limit()],
        lambda: [b"ZLEXCOUNT", flat(), name(), name()],
        lambda: [b"ZREMRANGEBYLEX", flat(), name(), name()],
        lambda: [b"ZRANGESTORE", key(), key(), bound(), bound(), b"BYSCORE", *limit()],
        lambda: [b"ZRANGESTORE", key(), key(), index(), index(), *rng.choice([[], [b"REV"], [b"WITHSCORES"]])],
        lambda: [b"ZREMRANGEBYRANK", key(), index(), index()],
        lambda: [b"ZREMRANGEBYSCORE", key(), bound(), bound()],
        lambda: [rng.choice([b"ZPOPMIN", b"ZPOPMAX"]), key(), *rng.choice([[], [b"2"], [b"0"], [b"-1"], [b"x"]])],
        lambda: [rng.choice([b"BZPOPMIN", b"BZPOPMAX"]), *keys(), rng.choice([b"0.001", b"0.001", b"-1", b"x"])],
        lambda: [b"BZMPOP", b"0.001", rng.choice([b"1", b"2", b"0", b"9"]), *keys(), rng.choice([b"MIN", b"MAX", b"no"])],
        lambda: [b"ZMPOP", rng.choice([b"1", b"2", b"0", b"9"]), *keys(), rng.choice([b"MIN", b"MAX", b"no"]), *rng.choice([[], [b"COUNT", b"2"], [b"COUNT", b"0"]])],
        lambda: [b"ZRANDMEMBER", key(), *rng.choice([[], [b"100"], [b"0"], [b"100", b"WITHSCORES"], [b"x"]])],
        lambda: several(rng.choice([b"ZUNION", b"ZINTER", b"ZDIFF"])),
        lambda: several(rng.choice([b"ZUNIONSTORE", b"ZINTERSTORE", b"ZDIFFSTORE"]), key()),
        lambda: [b"ZINTERCARD", rng.choice([b"1", b"2", b"0", b"9"]), *keys(), *rng.choice([[], [b"LIMIT", b"1"], [b"LIMIT", b"-1"]])],
        lambda: [b"ZSCAN", key(), b"0", b"COUNT", b"1000", *rng.choice([[], [b"MATCH", b"f*"]])],
    ]
    return rng.choice(choices)()


def list_command(rng: random.Random) -> list[bytes]:
    key, value = (lambda some=some: rng.choice(some) for some in (LISTS, FIELDS[:5]))
    values = lambda: [value() for _ in range(rng.randint(1, 5))]  # noqa: E731
    index = lambda: rng.choice([b"0", b"1", b"-1", b"2", b"-3", b"100", b"-100", b"x"])  # noqa: E731
    end = lambda: rng.choice([b"LEFT", b"RIGHT", b"left", b"no"])  # noqa: E731
    choices: list[Any] = [
        lambda: [rng.choice([b"LPUSH", b"RPUSH"]), key(), *values()],
        lambda: [rng.choice([b"LPUSH", b"RPUSH"]), key(), *values()],
        lambda: [rng.choice([b"LPUSHX", b"RPUSHX"]), key(), *values()],
        lambda: [rng.choice([b"LPOP", b"RPOP"]), key(), *rng.choice([[], [], [b"2"], [b"0"], [b"-1"], [b"x"], [b"100"]])],
        lambda: [rng.choice([b"LLEN", b"TYPE"]), key()],
        lambda: [b"LRANGE", key(), index(), index()],
        lambda: [b"LRANGE", key(), b"0", b"-1"],
        lambda: [b"LINDEX", key(), index()],
        lambda: [b"LSET", key(), index(), value()],
        lambda: [b"LTRIM", key(), index(), index()],
        lambda: [b"LREM", key(), rng.choice([b"0", b"1", b"-1", b"2", b"-2", b"x"]), value()],
        lambda: [b"LINSERT", key(), rng.choice([b"BEFORE", b"AFTER", b"no"]), value(), value()],
        lambda: [b"LPOS", key(), value(), *rng.choice([[], [b"RANK", b"-1"], [b"RANK", b"2"], [b"RANK", b"0"], [b"COUNT", b"0"], [b"COUNT", b"2", b"MAXLEN", b"3"], [b"COUNT"]])],
        lambda: [b"LMOVE", key(), key(), end(), end()],
        lambda: [b"RPOPLPUSH", key(), key()],
        # Where nothing is there they wait a moment.
        lambda: [rng.choice([b"BLPOP", b"BRPOP"]), *[key() for _ in range(rng.randint(1, 3))], rng.choice([b"0.001", b"0.001", b"-1", b"x"])],
        lambda: [b"BLMOVE", key(), key(), end(), end(), b"0.001"],
        lambda: [b"BRPOPLPUSH", key(), key(), b"0.001"],
        lambda: [b"BLMPOP", b"0.001", rng.choice([b"1", b"2", b"0", b"9"]), *[key() for _ in range(rng.randint(1, 2))], end(), *rng.choice([[], [b"COUNT", b"2"], [b"COUNT", b"0"]])],
        lambda: [b"LMPOP", rng.choice([b"1", b"2", b"0", b"9"]), *[key() for _ in range(rng.randint(1, 2))], end(), *rng.choice([[], [b"COUNT", b"2"], [b"COUNT", b"0"]])],
    ]
    return rng.choice(choices)()


def command(rng: random.Random) -> list[bytes]:
    kinds: list[Any] = [plain_command] * 3 + [hash_command, set_command, sorted_command, sorted_command, list_command]
    return rng.choice(kinds)(rng)


def plain_command(rng: random.Random) -> list[bytes]:
    key, value, number, when = (lambda some=some: rng.choice(some) for some in (KEYS, VALUES, NUMBERS, TIMES))
    some_keys = lambda: [key() for _ in range(rng.randint(1, 3))]  # noqa: E731
    choices: list[Any] = [
        lambda: [b"SET", key(), value()],
        lambda: [b"SET", key(), value(), rng.choice([b"NX", b"XX", b"GET", b"KEEPTTL", b"nonsense"])],
        lambda: [b"SET", key(), value(), rng.choice([b"EX", b"PX"]), when(), *rng.choice([[], [b"NX"], [b"GET"], [b"XX", b"GET"]])],
        lambda: [b"GET", key()],
        lambda: [b"GETSET", key(), value()],
        lambda: [b"GETDEL", key()],
        lambda: [b"GETEX", key(), *rng.choice([[], [b"PERSIST"], [b"EX", when()], [b"EX"]])],
        lambda: [b"SETNX", key(), value()],
        lambda: [b"SETEX", key(), when(), value()],
        lambda: [b"MGET", *some_keys()],
        lambda: [b"MSET", *sum(([key(), value()] for _ in range(2)), [])],
        lambda: [b"MSETNX", key(), value(), key(), value()],
        lambda: [b"STRLEN", key()],
        lambda: [b"APPEND", key(), value()],
        lambda: [b"GETRANGE", key(), number(), number()],
        lambda: [b"SETRANGE", key(), rng.choice([b"0", b"3", b"-1", b"20", b"x"]), value()],
        lambda: [rng.choice([b"INCR", b"DECR"]), key()],
        lambda: [rng.choice([b"INCRBY", b"DECRBY"]), key(), number()],
        lambda: [b"INCRBYFLOAT", rng.choice([b"f", b"g"]), rng.choice([b"1", b"0.5", b"-2.25", b"1e3", b"text"])],
        lambda: [rng.choice([b"DEL", b"UNLINK", b"EXISTS", b"TOUCH"]), *some_keys()],
        lambda: [b"TYPE", key()],
        lambda: [rng.choice([b"RENAME", b"RENAMENX"]), key(), key()],
        lambda: [b"COPY", key(), key(), *rng.choice([[], [b"REPLACE"]])],
        lambda: [rng.choice([b"EXPIRE", b"PEXPIREAT"]), key(), rng.choice([b"100", b"4000000000000", b"-1", b"x"]), *rng.choice([[], [b"NX"], [b"XX"], [b"GT"], [b"LT"], [b"NX", b"GT"], [b"no"]])],
        lambda: [rng.choice([b"TTL", b"EXPIRETIME"]), key()],
        lambda: [b"PERSIST", key()],
        lambda: [b"SETBIT", key(), rng.choice([b"0", b"7", b"100", b"-1", b"x"]), rng.choice([b"0", b"1", b"2"])],
        lambda: [b"GETBIT", key(), rng.choice([b"0", b"7", b"100", b"-1"])],
        lambda: [b"BITCOUNT", key(), *rng.choice([[], [b"0", b"-1"], [b"1", b"2"], [b"-5", b"3", b"BIT"]])],
        lambda: [b"BITPOS", key(), rng.choice([b"0", b"1", b"2"]), *rng.choice([[], [b"1"], [b"0", b"-1"], [b"2", b"9", b"BIT"]])],
        lambda: [b"BITOP", rng.choice([b"AND", b"OR", b"XOR", b"NOT"]), key(), *some_keys()],
        lambda: [b"DBSIZE"],
        lambda: [b"LCS", key(), key(), *rng.choice([[], [b"LEN"], [b"IDX"], [b"IDX", b"WITHMATCHLEN"], [b"IDX", b"MINMATCHLEN", b"2"], [b"no"]])],
        lambda: [rng.choice([b"SORT", b"SORT_RO"]), rng.choice([*LISTS, *SORTED, *SETS, b"h:1"]), *rng.choice([[], [b"ALPHA"], [b"DESC"], [b"ALPHA", b"DESC"], [b"LIMIT", b"1", b"2"], [b"GET", b"#"], [b"no"]])],
        # Of sets nobody knows the order: these keys never are.
        lambda: [b"SORT", rng.choice([b"l:2", b"l:3", b"z:2", b"z:3"]), *rng.choice([[], [b"DESC"]]), b"BY", b"nosort"],
        lambda: [b"SORT", rng.choice([*LISTS, *SORTED, *SETS]), b"ALPHA", b"STORE", rng.choice([*LISTS, b"a"])],
        lambda: [b"COMMAND", b"GETKEYS", *rng.choice([[b"GET", b"a"], [b"SORT", b"l", b"STORE", b"d"], [b"ZUNION", b"2", b"a", b"b"]])],
        lambda: [b"SELECT", rng.choice([b"0", b"1", b"16", b"x"])],
        lambda: [rng.choice([b"MULTI", b"EXEC", b"DISCARD", b"UNWATCH"])],
        lambda: [b"WATCH", key()],
        lambda: [rng.choice([b"FLUSHDB", b"PING", b"RANDOMKEY"])],
        lambda: [b"ECHO", value()],
        lambda: [rng.choice([b"GET", b"SET", b"INCR", b"MSET", b"NOSUCH"])],
        lambda: [b"SCAN", b"0", b"COUNT", b"1000", b"MATCH", rng.choice([b"*", b"key:*", b"[ab]"])],
    ]
    return rng.choice(choices)()
