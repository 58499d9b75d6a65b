"""What a program does that uses redis-py, unchanged: `python redis_py.py PORT FOLLOWERS_PORT`."""

from __future__ import annotations

import sys
import threading
import time

import redis


def what_is_pushed(client: redis.Redis, port: int, protocol: int) -> None:
    """Channels, events of keys, and a queue of which another one takes."""
    client.config_set("notify-keyspace-events", "E$")
    with client.pubsub() as listener:
        listener.subscribe("news")
        listener.psubscribe("__keyevent@0__:*")
        assert [listener.get_message(timeout=5)["data"] for _ in range(2)] == [1, 2]
        assert client.publish("news", "hello") == 1 and client.set("told", 1)
        heard = [listener.get_message(timeout=5) for _ in range(2)]
        assert [(one["type"], one["data"]) for one in heard] == [("message", "hello"), ("pmessage", "told")]
    client.config_set("notify-keyspace-events", "")
    taken: list[list[str]] = []

    def take() -> None:
        with redis.Redis(port=port, protocol=protocol, decode_responses=True) as taker:
            taken.extend(list(taker.blpop(["empty", "queue"], timeout=20)) for _ in range(50))

    taker = threading.Thread(target=take)
    taker.start()
    for number in range(50):
        client.rpush("queue", number)
    taker.join()
    assert taken == [["queue", str(number)] for number in range(50)]
    assert client.blpop("queue", timeout=0.01) is None and client.delete("told") == 1


def sketches(client: redis.Redis) -> None:
    assert client.pfadd("distinct", *range(1000)) == 1 and abs(client.pfcount("distinct") - 1000) < 50
    assert client.bf().add("seen", "a") and client.bf().exists("seen", "a") and not client.bf().exists("seen", "b")
    assert client.cms().initbydim("counts", 100, 5) and client.cms().incrby("counts", ["a", "b"], [3, 4]) == [3, 4]
    assert client.topk().reserve("best", 2, 8, 7, 0.9) and client.topk().add("best", "a", "b", "b") == [None] * 3
    assert client.topk().list("best") == ["b", "a"] and client.delete("distinct", "seen", "counts", "best") == 4


def what_is_followed(client: redis.Redis, port: int, copy: int, protocol: int) -> None:
    """A server that follows: it is read as any, and says what it is."""
    client.mset({f"copied:{number}": number for number in range(100)})
    client.hset("copied", mapping={"a": 1, "b": 2})
    position = client.info("replication")["master_repl_offset"]
    with redis.Redis(port=copy, protocol=protocol, decode_responses=True) as reader:
        until = time.monotonic() + 60
        while reader.info("replication")["slave_repl_offset"] < position:
            assert time.monotonic() < until, reader.info("replication")
            time.sleep(0.01)
        assert reader.mget("copied:0", "copied:99") == ["0", "99"] and reader.hgetall("copied") == {"a": "1", "b": "2"}
        told = reader.info("replication")
        assert (told["role"], told["master_port"], told["master_link_status"]) == ("slave", port, "up")
        assert reader.role()[0] == "slave" and client.role()[0] == "master"
        try:
            raise AssertionError(reader.set("copied", 1))
        except redis.exceptions.ReadOnlyError:
            assert client.delete("copied", *(f"copied:{number}" for number in range(100))) == 101


def main() -> None:
    port, copy = int(sys.argv[1]), int(sys.argv[2])
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
            what_is_pushed(client, port, protocol)
            sketches(client)
            what_is_followed(client, port, copy, protocol)
            assert client.acl_setuser("bob", enabled=True, passwords="+secret", keys=["app:*"], commands=["+get", "+acl|whoami"])
            assert client.acl_getuser("bob")["flags"] == ["on"] and client.acl_whoami() == "default" and "bob" in client.acl_users()
            with redis.Redis(port=port, protocol=protocol, username="bob", password="secret", decode_responses=True) as bob:
                assert bob.acl_whoami() == "bob" and bob.get("app:1") is None
                try:
                    raise AssertionError(bob.get("other"))
                except redis.exceptions.NoPermissionError:
                    assert client.acl_log()[0]["username"] == "bob"
            assert client.acl_deluser("bob") == 1
            client.flushdb()
            assert client.dbsize() == 0
    print("redis-py", redis.__version__, "finds what it expects")


if __name__ == "__main__":
    main()
