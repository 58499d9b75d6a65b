//! What a program does that uses redis-rs, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use redis::{Commands, RedisResult};

use crate::client::Running;

#[test]
fn redis_rs_finds_what_it_expects() -> RedisResult<()> {
    let running = Running::new(forebay_server::Config::default());
    for protocol in ["resp2", "resp3"] {
        let client = redis::Client::open(format!("redis://{}/?protocol={protocol}", running.address))?;
        let mut connection = client.get_connection()?;
        redis::cmd("FLUSHALL").exec(&mut connection)?;
        let _: () = connection.set_ex("greeting", "hello", 100)?;
        assert_eq!(connection.get::<_, String>("greeting")?, "hello");
        assert_eq!(
            connection.mget::<_, Vec<Option<String>>>(&["greeting", "none"])?,
            [Some("hello".into()), None]
        );
        let mut pipe = redis::pipe();
        pipe.atomic().cmd("INCR").arg("n").cmd("INCRBY").arg("n").arg(41);
        assert_eq!(pipe.query::<(i64, i64)>(&mut connection)?, (1, 42));
        let added: (i64,) = redis::transaction(&mut connection, &["n"], |connection, pipe| {
            let before: i64 = connection.get("n")?;
            pipe.set("n", before + 1).ignore().get("n").query(connection)
        })?;
        assert_eq!(added, (43,));
        for number in 0..1000 {
            let _: () = connection.set(format!("key:{number}"), number)?;
        }
        let seen: RedisResult<BTreeSet<String>> = connection.scan_match("key:*")?.collect();
        assert_eq!(seen?.len(), 1000);
        let _: () = connection.hset_multiple("hash", &[("one", 1), ("two", 2)])?;
        let hash: BTreeMap<String, i64> = connection.hgetall("hash")?;
        assert_eq!(hash, BTreeMap::from([("one".into(), 1), ("two".into(), 2)]));
        assert_eq!(connection.sadd::<_, _, i64>("set", &["x", "y", "x"])?, 2);
        let _: () = connection.zadd_multiple("scores", &[(2.5, "b"), (1.0, "a")])?;
        let scores: Vec<(String, f64)> = connection.zrange_withscores("scores", 0, -1)?;
        assert_eq!(scores, [("a".into(), 1.0), ("b".into(), 2.5)]);
        let _: () = connection.rpush("list", &[1, 2, 3])?;
        assert_eq!(connection.lrange::<_, Vec<i64>>("list", 0, -1)?, [1, 2, 3]);
    }
    Ok(())
}
