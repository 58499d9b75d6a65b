"""Users beside redis-server: `python acl_differential.py --forebay PATH --rounds N --seed N`. Random rules go to both, then
both are asked what they have made of them, and whether random requests are refused; some are sent as that user."""

import argparse
import random
import subprocess
import sys
import tempfile
import time

from running import Connection, Server

KEYS = ["app", "app:1", "app:22", "b", "bc", "other", "x[y"]
PATTERNS = ["*", "app*", "app:?", "app:[0-9]*", "b", "b?", "x\\[y", "*c"]
CATEGORIES = "keyspace read write set sortedset list hash string bitmap pubsub admin fast slow dangerous connection transaction".split()
COMMANDS = "get set del mget mset exists strlen append incr getdel getex rename copy lpush lrange lmove smove sinterstore zadd zunionstore zinter hset hget hlen bitop expire ttl touch flushall keys dbsize ping acl|list acl|whoami config|get client|setname slowlog|get".split()
REQUESTS = """get K;set K v;set K v get;set K v ex 10 get;del K K;mget K K;mset K v K v;msetnx K v K v;exists K K;strlen K;append K v;incr K;getdel K;getex K;
rename K K;renamenx K K;copy K K;lpush K a;rpop K;lrange K 0 1;llen K;lmove K K left left;rpoplpush K K;lmpop 2 K K left;smove K K a;sadd K a;scard K;
sismember K a;smismember K a;sinterstore K K K;sunion K K;sintercard 2 K K;zadd K 1 a;zcard K;zscore K a;zrank K a;zunionstore K 2 K K;zinter 2 K K;
zrangestore K K 0 1;zmpop 1 K min;hset K a b;hget K a;hlen K;hstrlen K a;hexists K a;hmset K a b;hgetall K;bitop and K K K;setbit K 1 1;getbit K 1;bitcount K;
expire K 10;persist K;ttl K;type K;touch K;unlink K;getset K v;setnx K v;setrange K 1 v;getrange K 0 1;watch K;unwatch;flushall;keys *;dbsize;randomkey;scan 0;
ping;echo a;select 0;time;acl list;acl whoami;acl genpass;config get maxclients;client setname a;client id;slowlog len;multi;discard;command count;info""".replace("\n", "").split(";")


def rules(draw):
    made = []
    for _ in range(draw.randint(1, 6)):
        sign = draw.choice("+-")
        made.append(draw.choice([
            lambda: sign + draw.choice(COMMANDS),
            lambda: sign + "@" + draw.choice([*CATEGORIES, "all"]),
            lambda: sign + "@" + draw.choice(CATEGORIES),
            lambda: "~" + draw.choice(PATTERNS),
            lambda: draw.choice(["%R~", "%W~", "%r~"]) + draw.choice(PATTERNS),
            lambda: "&" + draw.choice(PATTERNS),
            lambda: draw.choice([">", "<"]) + draw.choice("abc"),
            lambda: draw.choice(["on", "off", "nopass", "resetpass", "allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands", "nocommands", "reset"]),
            lambda: draw.choice(["foo", "+nope", "+@nope", "#12", "!" + "0" * 64, "#" + "a1" * 32, "#" + "A1" * 32, "~a b", "ON", "+GET", "+config|nope"]),
        ])())
    return made


def code(reply):
    return str(reply).split(" ", maxsplit=1)[0] if isinstance(reply, Exception) else reply


def user(connection, name):
    """What is told of a user, but for how its commands are said."""
    told = connection.ask("ACL", "GETUSER", name)
    if told is None:
        return None
    fields = dict(zip(told[::2], told[1::2]))
    flags = [flag for flag in fields[b"flags"] if flag in (b"on", b"off", b"nopass")]
    return flags, fields[b"passwords"], fields[b"keys"], fields[b"channels"]


def differs(what, *replies):
    raise SystemExit(f"{what}\n  redis-server: {replies[0]!r}\n  forebay:      {replies[1]!r}")


def one_round(draw, both, ports):
    name = f"user{draw.randint(0, 5)}"
    for _ in range(draw.randint(1, 4)):
        asked = ["ACL", "SETUSER", name, *rules(draw)]
        replies = [connection.ask(*asked) for connection in both]
        if [str(reply) for reply in replies][0] != str(replies[1]):
            differs(asked, *replies)
    told = [user(connection, name) for connection in both]
    if told[0] != told[1]:
        differs(f"ACL GETUSER {name}", *told)
    for _ in range(30):
        words = [draw.choice(KEYS) if word == "K" else word for word in draw.choice(REQUESTS).split(" ")]
        replies = [connection.ask("ACL", "DRYRUN", name, *words) for connection in both]
        if replies[0] != replies[1] and str(replies[0]) != str(replies[1]):
            differs((name, words, both[0].ask("ACL", "LIST")), *replies)
    for connection in both:
        connection.ask("ACL", "SETUSER", name, "on", "nopass")
    theirs = [Connection(port) for port in ports]
    logged_in = [code(one.ask("AUTH", name, "any")) for one in theirs]
    if logged_in[0] != logged_in[1]:
        differs(f"AUTH {name}", *logged_in)
    for _ in range(10):
        words = [draw.choice(KEYS) if word == "K" else word for word in draw.choice(REQUESTS).split(" ")]
        replies = [one.ask(*words) for one in theirs]
        refused = [str(reply) if code(reply) == "NOPERM" else "done" for reply in replies]
        if refused[0] != refused[1]:
            differs((name, words, both[0].ask("ACL", "LIST")), *refused)
    for one in theirs:
        one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forebay", required=True)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(asked.forebay, folder)
        path = f"{folder}/redis.sock"
        redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""], stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                try:
                    theirs = Connection(path)
                    break
                except OSError:
                    time.sleep(0.05)
            both = [theirs, Connection(server.port)]
            draw = random.Random(asked.seed)
            for _ in range(asked.rounds):
                one_round(draw, both, [path, server.port])
        except BaseException:
            server.kill()
            raise
        finally:
            redis.kill()
            redis.wait()
        server.end()
    print(f"{asked.rounds} rounds of rules and refusals as redis-server's, seed {asked.seed}")


sys.exit(main())
