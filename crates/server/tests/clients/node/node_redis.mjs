// What a program does that uses node-redis, unchanged: `node node_redis.mjs PORT`.
import assert from "node:assert/strict";
import { createClient } from "redis";

const url = `redis://127.0.0.1:${process.argv[2]}`;
for (const RESP of [2, 3]) {
  const client = await createClient({ url, RESP }).connect();
  await client.flushAll();
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.set("greeting", "hello", { EX: 100 }), "OK");
  assert.equal(await client.get("greeting"), "hello");
  const left = await client.ttl("greeting");
  assert.ok(left > 0 && left <= 100);
  await client.mSet({ a: "1", b: "2" });
  assert.deepEqual(await client.mGet(["a", "b", "c"]), ["1", "2", null]);
  assert.deepEqual(await client.multi().incr("n").incrBy("n", 41).get("n").exec(), [1, 42, "42"]);

  const other = await client.duplicate().connect();
  await client.watch("n");
  await other.set("n", "0");
  await assert.rejects(client.multi().set("n", "1").exec());
  await other.close();

  await Promise.all(Array.from({ length: 1000 }, (_, number) => client.set(`key:${number}`, `${number}`)));
  const seen = new Set();
  for await (const keys of client.scanIterator({ MATCH: "key:*", COUNT: 100 })) for (const key of keys) seen.add(key);
  assert.equal(seen.size, 1000);
  await client.setBit("bits", 7, 1);
  assert.equal(await client.bitCount("bits"), 1);

  assert.equal(await client.hSet("hash", { one: "1", two: "2" }), 2);
  assert.deepEqual({ ...(await client.hGetAll("hash")) }, { one: "1", two: "2" });
  assert.equal(await client.sAdd("set", ["x", "y", "x"]), 2);
  assert.equal(await client.sIsMember("set", "x"), 1);
  await client.zAdd("scores", [{ score: 2.5, value: "b" }, { score: 1, value: "a" }]);
  assert.deepEqual(await client.zRangeWithScores("scores", 0, -1), [{ value: "a", score: 1 }, { value: "b", score: 2.5 }]);
  await client.rPush("list", ["1", "2", "3"]);
  assert.deepEqual(await client.lRange("list", 0, -1), ["1", "2", "3"]);
  await assert.rejects(client.get("list"), /WRONGTYPE/);
  await client.close();
}
console.log("node-redis finds what it expects");
