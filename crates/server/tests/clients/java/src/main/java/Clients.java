import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.RedisClient;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.SetArgs;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;

/** What programs do that use Jedis and Lettuce, unchanged: {@code Clients PORT}. */
public final class Clients {
    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        jedis(port);
        System.out.println("Jedis finds what it expects");
        lettuce(port);
        System.out.println("Lettuce finds what it expects");
    }

    private static void equal(Object found, Object wanted) {
        if (!wanted.equals(found)) {
            throw new AssertionError(found + ", not " + wanted);
        }
    }

    private static void jedis(int port) {
        try (Jedis client = new Jedis("127.0.0.1", port)) {
            client.flushAll();
            equal(client.set("greeting", "hello", SetParams.setParams().ex(100)), "OK");
            equal(client.get("greeting"), "hello");
            equal(client.ttl("greeting") > 0, true);
            var transaction = client.multi();
            transaction.incr("n");
            transaction.incrBy("n", 41);
            equal(transaction.exec(), List.of(1L, 42L));
            var pipe = client.pipelined();
            for (int number = 0; number < 1000; number++) {
                pipe.set("key:" + number, Integer.toString(number));
            }
            pipe.sync();
            Set<String> seen = new HashSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                var page = client.scan(cursor, new ScanParams().match("key:*").count(100));
                seen.addAll(page.getResult());
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            equal(seen.size(), 1000);
            client.hset("hash", Map.of("one", "1", "two", "2"));
            equal(client.hgetAll("hash"), Map.of("one", "1", "two", "2"));
            equal(client.sadd("set", "x", "y", "x"), 2L);
            client.zadd("scores", Map.of("b", 2.5, "a", 1.0));
            equal(client.zrange("scores", 0, -1), List.of("a", "b"));
            equal(client.zscore("scores", "b"), 2.5);
            client.rpush("list", "1", "2", "3");
            equal(client.lrange("list", 0, -1), List.of("1", "2", "3"));
        }
    }

    private static void lettuce(int port) {
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + port);
        try (var connection = client.connect()) {
            var commands = connection.sync();
            commands.flushall();
            equal(commands.set("greeting", "hello", SetArgs.Builder.ex(100)), "OK");
            equal(commands.get("greeting"), "hello");
            commands.multi();
            commands.incr("n");
            commands.incrby("n", 41);
            equal(commands.exec().stream().toList(), List.of(1L, 42L));
            for (int number = 0; number < 1000; number++) {
                commands.set("key:" + number, Integer.toString(number));
            }
            Set<String> seen = new HashSet<>();
            ScanArgs of = ScanArgs.Builder.matches("key:*").limit(100);
            KeyScanCursor<String> page = commands.scan(ScanCursor.INITIAL, of);
            seen.addAll(page.getKeys());
            while (!page.isFinished()) {
                page = commands.scan(page, of);
                seen.addAll(page.getKeys());
            }
            equal(seen.size(), 1000);
            commands.hset("hash", Map.of("one", "1", "two", "2"));
            equal(commands.hgetall("hash"), Map.of("one", "1", "two", "2"));
            equal(commands.sadd("set", "x", "y", "x"), 2L);
            commands.zadd("scores", 2.5, "b");
            equal(commands.zscore("scores", "b"), 2.5);
            commands.rpush("list", "1", "2", "3");
            equal(commands.lrange("list", 0, -1), List.of("1", "2", "3"));
        } finally {
            client.shutdown();
        }
    }
}
