"""What a program does that uses redis-py, unchanged: `python redis_py.py PORT`."""

from __future__ import annotations

import sys
import threading

import redis


def main() -> None:
    port = int(sys.argv[1])
    for protocol in (2, 3):
        with redis.Redis(port=port, protocol=protocol, decode_responses=True) as client:
            client.flushall()
            assert client.ping() and client.set("greeting", "hello", ex=100) and client.get("greeting") == "hello"
            assert 0 < client.ttl("greeting") <= 100
            assert client.mset({"a": 1, "b": 2}) and client.mget("a", "b", "c") == ["1", "2", None]
            with client.pipeline() as pipe:
                assert pipe.incr("n").incr("n").get("n").execute() == [1, 2, "2"]

            def add(pipe: redis.client.Pipeline) -> None:
                number = int(pipe.get("watched") or 0)
                pipe.multi()
                pipe.set("watched", number + 1)

            threads = [threading.Thread(target=lambda: [client.transaction(add, "watched") for _ in range(50)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert client.get("watched") == "200"
            client.mset({f"key:{number}": number for number in range(1000)})
            assert len(set(client.scan_iter("key:*", count=100))) == 1000
            client.setbit("bits", 7, 1)
            assert client.bitcount("bits") == 1 and client.type("bits") == "string"
            assert client.hset("hash", mapping={"a": 1, "b": 2}) == 2 and client.hgetall("hash") == {"a": "1", "b": "2"}
            assert client.hincrby("hash", "a", 4) == 5 and dict(client.hscan_iter("hash")) == {"a": "5", "b": "2"}
            assert client.sadd("set", "x", "y") == 2 and client.smembers("set") == {"x", "y"} and client.sismember("set", "x")
            assert client.zadd("scores", {"low": 1, "high": 2.5}) == 2 and client.zscore("scores", "high") == 2.5
            assert [list(pair) for pair in client.zrange("scores", 0, -1, withscores=True)] == [["low", 1.0], ["high", 2.5]]
            assert client.rpush("list", "a", "b", "c") == 3 and client.lrange("list", 0, -1) == ["a", "b", "c"]
            assert client.lpop("list", 2) == ["a", "b"] and client.delete("hash", "set", "scores", "list") == 4
            assert client.info()["redis_version"].startswith("7.") and client.dbsize() == 1006
            client.flushdb()
            assert client.dbsize() == 0
    print("redis-py", redis.__version__, "finds what it expects")


if __name__ == "__main__":
    main()
