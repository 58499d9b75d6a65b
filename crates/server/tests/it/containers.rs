//! Hashes, sets, sorted sets and lists, as Redis answers them; and what concerns keys, of all of them.

use forebay_server::Config;

use crate::client::{Got, Running};
use crate::commands::check;

#[test]
fn hashes() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("HSET h a 1 b 2", "2"),
            ("HSET h a 3 c 4", "1"),
            ("HSET h a", "!ERR"),
            ("HSET h a 1 b", "!ERR"),
            ("HMSET h d 5", "OK"),
            ("HGET h a", "\"3\""),
            ("HGET h x", "nil"),
            ("HGET none a", "nil"),
            ("HMGET h a x d", "[\"3\" nil \"5\"]"),
            ("HSETNX h a 9", "0"),
            ("HSETNX h e 6", "1"),
            ("HLEN h", "5"),
            ("HEXISTS h e", "1"),
            ("HSTRLEN h e", "1"),
            ("HDEL h a a x", "1"),
            ("HGETALL none", "[]"),
            ("HINCRBY h n 5", "5"),
            ("HINCRBY h n x", "!ERR"),
            ("HSET h text word", "1"),
            ("HINCRBY h text 1", "!ERR"),
            ("HINCRBYFLOAT h f 1.5", "\"1.5\""),
            ("HINCRBYFLOAT h text 1", "!ERR"),
            ("HDEL h b c d e n text f", "7"),
            ("EXISTS h", "0"),
            ("HRANDFIELD h", "nil"),
            ("HRANDFIELD h 3", "[]"),
            ("HSET one f v", "1"),
            ("HRANDFIELD one", "\"f\""),
            ("HRANDFIELD one -3 WITHVALUES", "[\"f\" \"v\" \"f\" \"v\" \"f\" \"v\"]"),
            ("HSCAN one 0", "[\"0\" [\"f\" \"v\"]]"),
            ("HSCAN one 0 MATCH x*", "[\"0\" []]"),
            ("HGETALL one", "[\"f\" \"v\"]"),
        ],
    );
}

#[test]
fn sets() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("SADD s a b a", "2"),
            ("SADD s b", "0"),
            ("SCARD s", "2"),
            ("SISMEMBER s a", "1"),
            ("SMISMEMBER s a x b", "[1 0 1]"),
            ("SREM s x a", "1"),
            ("SMEMBERS s", "[\"b\"]"),
            ("SRANDMEMBER s -2", "[\"b\" \"b\"]"),
            ("SMOVE s t b", "1"),
            ("EXISTS s", "0"),
            ("SMOVE s t b", "0"),
            ("SPOP t 0", "[]"),
            ("SPOP t -1", "!ERR"),
            ("SPOP t", "\"b\""),
            ("SPOP t", "nil"),
            ("SADD x 1 2 3", "3"),
            ("SADD y 3", "1"),
            ("SINTER x y", "[\"3\"]"),
            ("SINTER x none", "[]"),
            ("SINTERCARD 2 x y", "1"),
            ("SINTERCARD 1 x LIMIT 2", "2"),
            ("SINTERCARD 0 x", "!ERR"),
            ("SINTERCARD 3 x y", "!ERR"),
            ("SDIFFSTORE d x y", "2"),
            ("SISMEMBER d 3", "0"),
            ("SUNIONSTORE x x y", "3"),
            ("SINTERSTORE x x none", "0"),
            ("EXISTS x", "0"),
            ("SSCAN y 0", "[\"0\" [\"3\"]]"),
        ],
    );
}

#[test]
fn sorted_sets() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("ZADD z 1 a 2 b 3 c", "3"),
            ("ZADD z CH 5 a 2 b", "1"),
            ("ZADD z GT 1 a", "0"),
            ("ZADD z NX XX 1 a", "!ERR"),
            ("ZADD z INCR 1.5 a", "\"6.5\""),
            ("ZADD z NX INCR 1 a", "nil"),
            ("ZADD z x a", "!ERR"),
            ("ZADD none XX 1 a", "0"),
            ("EXISTS none", "0"),
            ("ZSCORE z a", "\"6.5\""),
            ("ZMSCORE z a x", "[\"6.5\" nil]"),
            ("ZRANGE z 0 -1 WITHSCORES", "[\"b\" \"2\" \"c\" \"3\" \"a\" \"6.5\"]"),
            ("ZRANGE z 0 0 REV", "[\"a\"]"),
            ("ZREVRANGE z -1 -1", "[\"b\"]"),
            ("ZRANGE z (2 +inf BYSCORE LIMIT 0 1", "[\"c\"]"),
            ("ZREVRANGEBYSCORE z +inf -inf LIMIT 1 -1", "[\"c\" \"b\"]"),
            ("ZRANK z a", "2"),
            ("ZREVRANK z a", "0"),
            ("ZRANK z a WITHSCORE", "[2 \"6.5\"]"),
            ("ZRANK z x", "nil"),
            ("ZCOUNT z 2 (6.5", "2"),
            ("ZINCRBY z -inf a", "\"-inf\""),
            ("ZINCRBY z inf a", "!ERR"),
            ("ZPOPMIN z", "[\"a\" \"-inf\"]"),
            ("ZPOPMAX z 5", "[\"c\" \"3\" \"b\" \"2\"]"),
            ("EXISTS z", "0"),
            ("ZADD l 0 a 0 b 0 ba 0 c", "4"),
            ("ZRANGEBYLEX l [b (c", "[\"b\" \"ba\"]"),
            ("ZLEXCOUNT l - (ba", "2"),
            ("ZREVRANGEBYLEX l + - LIMIT 0 2", "[\"c\" \"ba\"]"),
            ("ZREMRANGEBYLEX l (a [b", "1"),
            ("ZREMRANGEBYRANK l 0 0", "1"),
            ("ZRANGESTORE copy l 0 -1", "2"),
            ("ZADD other 10 c 20 d", "2"),
            ("ZUNION 2 l other WITHSCORES", "[\"ba\" \"0\" \"c\" \"10\" \"d\" \"20\"]"),
            ("ZINTER 2 l other WEIGHTS 1 0.5 WITHSCORES", "[\"c\" \"5\"]"),
            ("ZDIFF 2 other l", "[\"d\"]"),
            ("ZUNIONSTORE l 2 l other AGGREGATE MAX", "3"),
            ("ZINTERCARD 2 l other", "2"),
            ("ZREMRANGEBYSCORE l -inf +inf", "3"),
            ("EXISTS l", "0"),
            ("ZMPOP 2 l other MIN", "[\"other\" [[\"c\" \"10\"]]]"),
            ("ZRANDMEMBER other 5 WITHSCORES", "[\"d\" \"20\"]"),
            ("ZSCAN other 0", "[\"0\" [\"d\" \"20\"]]"),
        ],
    );
}

#[test]
fn lists() {
    let server = Running::new(Config::default());
    check(
        &mut server.client(),
        &[
            ("RPUSH l b c", "2"),
            ("LPUSH l a z", "4"),
            ("LPUSHX none a", "0"),
            ("LRANGE l 0 -1", "[\"z\" \"a\" \"b\" \"c\"]"),
            ("LINDEX l -1", "\"c\""),
            ("LINDEX l 4", "nil"),
            ("LSET l 0 y", "OK"),
            ("LSET l 9 y", "!ERR"),
            ("LSET none 0 y", "!ERR"),
            ("LINSERT l BEFORE b x", "5"),
            ("LINSERT l AFTER a w", "6"),
            ("LINSERT l AFTER none w", "-1"),
            ("LRANGE l 0 -1", "[\"y\" \"a\" \"w\" \"x\" \"b\" \"c\"]"),
            ("LREM l 1 a", "1"),
            ("LREM l -1 b", "1"),
            ("LRANGE l 0 -1", "[\"y\" \"w\" \"x\" \"c\"]"),
            ("LTRIM l 1 -2", "OK"),
            ("LRANGE l 0 -1", "[\"w\" \"x\"]"),
            ("LPOS l x", "1"),
            ("LPOS l x RANK -1 COUNT 0", "[1]"),
            ("LPOS l x RANK 0", "!ERR"),
            ("RPOPLPUSH l l", "\"x\""),
            ("LMOVE l m LEFT RIGHT", "\"x\""),
            ("LPOP l 2", "[\"w\"]"),
            ("LPOP l", "nil"),
            ("LPOP l 2", "nil"),
            ("LMPOP 2 l m RIGHT COUNT 2", "[\"m\" [\"x\"]]"),
            ("EXISTS m", "0"),
            ("RPUSH same a", "1"),
            ("EXPIRE same 100", "1"),
            ("RPOPLPUSH same same", "\"a\""),
            ("TTL same", "100"),
        ],
    );
}

#[test]
fn keys_hold_any_of_them() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    check(
        &mut client,
        &[
            ("HSET h f v", "1"),
            ("SADD s m", "1"),
            ("ZADD z 1 m", "1"),
            ("RPUSH l e", "1"),
            ("SET t text", "OK"),
        ],
    );
    for key in ["h", "s", "z", "l", "t"] {
        for (kind, command) in [
            ("h", format!("HGET {key} f")),
            ("s", format!("SADD {key} m")),
            ("z", format!("ZSCORE {key} m")),
            ("l", format!("LLEN {key}")),
            ("t", format!("GET {key}")),
        ] {
            let is_refused =
                matches!(client.ask(&command), Got::Error(text) if text.starts_with("WRONGTYPE"));
            assert_eq!(is_refused, kind != key, "{command}");
        }
    }
}

#[test]
fn keys_are_renamed_copied_and_deleted() {
    let server = Running::new(Config::default());
    let mut client = server.client();
    for line in ["HSET h f v", "SADD s m", "ZADD z 1 m", "RPUSH l e", "SET t text"] {
        client.ask(line);
    }
    check(
        &mut client,
        &[
            ("TYPE h", "hash"),
            ("TYPE s", "set"),
            ("TYPE z", "zset"),
            ("TYPE l", "list"),
            ("SCAN 0 TYPE zset COUNT 100", "[\"0\" [\"z\"]]"),
            ("RENAME h g", "OK"),
            ("HGET g f", "\"v\""),
            ("RENAME g g", "OK"),
            ("COPY g s", "0"),
            ("COPY g s REPLACE", "1"),
            ("HSET s f w", "0"),
            ("HGET g f", "\"v\""),
            ("COPY g g DB 3", "1"),
            ("EXPIRE s 100", "1"),
            ("HSET s other v", "1"),
            ("TTL s", "100"),
            ("PEXPIREAT s 1", "1"),
            ("HLEN s", "0"),
            ("SET z text", "OK"),
            ("ZADD z 1 m", "!WRONGTYPE"),
            ("DEL z", "1"),
            ("ZCARD z", "0"),
            ("ZADD z 2 n", "1"),
            ("ZRANGE z 0 -1", "[\"n\"]"),
            ("WATCH z", "OK"),
            ("ZADD z 3 n", "0"),
            ("MULTI", "OK"),
            ("ZADD z 9 n", "QUEUED"),
            ("EXEC", "nil"),
            ("MULTI", "OK"),
            ("LPUSH l f", "QUEUED"),
            ("LRANGE l 0 -1", "QUEUED"),
            ("UNLINK l", "QUEUED"),
            ("RPUSH l g", "QUEUED"),
            ("LRANGE l 0 -1", "QUEUED"),
            ("EXEC", "[2 [\"f\" \"e\"] 1 1 [\"g\"]]"),
            ("FLUSHDB", "OK"),
            ("LLEN l", "0"),
            ("RPUSH l h", "1"),
            ("LRANGE l 0 -1", "[\"h\"]"),
            ("SELECT 3", "OK"),
            ("HGETALL g", "[\"f\" \"v\"]"),
        ],
    );
}
