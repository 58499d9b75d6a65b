// What a program does that uses ioredis, unchanged: `node ioredis.mjs PORT`.
import assert from "node:assert/strict";
import { Redis } from "ioredis";

const client = new Redis({ port: Number(process.argv[2]), host: "127.0.0.1", maxRetriesPerRequest: 1 });
await client.flushall();
assert.equal(await client.set("greeting", "hello", "EX", 100), "OK");
assert.equal(await client.get("greeting"), "hello");
assert.deepEqual(await client.mget("greeting", "none"), ["hello", null]);
assert.deepEqual(await client.pipeline().incr("n").incrby("n", 41).get("n").exec(), [[null, 1], [null, 42], [null, "42"]]);
assert.deepEqual(await client.multi().incr("n").get("n").exec(), [[null, 43], [null, "43"]]);
await client.mset(Object.fromEntries(Array.from({ length: 1000 }, (_, number) => [`key:${number}`, number])));
const seen = new Set();
for await (const keys of client.scanStream({ match: "key:*", count: 100 })) keys.forEach((key) => seen.add(key));
assert.equal(seen.size, 1000);
await client.hset("hash", { one: 1, two: 2 });
assert.deepEqual({ ...(await client.hgetall("hash")) }, { one: "1", two: "2" });
await client.sadd("set", "x", "y", "x");
assert.deepEqual((await client.smembers("set")).sort(), ["x", "y"]);
await client.zadd("scores", 2.5, "b", 1, "a");
assert.deepEqual(await client.zrange("scores", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5"]);
await client.rpush("list", 1, 2, 3);
assert.deepEqual(await client.lrange("list", 0, -1), ["1", "2", "3"]);
const bytes = Buffer.from([0, 255, 13, 10]);
await client.set("bytes", bytes);
assert.ok(bytes.equals(await client.getBuffer("bytes")));
await client.quit();
console.log("ioredis finds what it expects");
