// What a program does that uses go-redis, unchanged: `go run . PORT`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

func must(what string, holds bool) {
	if !holds {
		panic(what)
	}
}

func equal[T any](what string, found T, err error, wanted T) {
	if err != nil || !reflect.DeepEqual(found, wanted) {
		panic(fmt.Sprintf("%s: %v, %v; not %v", what, found, err, wanted))
	}
}

func main() {
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		must("flush", client.FlushAll(ctx).Err() == nil)
		must("set", client.Set(ctx, "greeting", "hello", 100*time.Second).Err() == nil)
		text, err := client.Get(ctx, "greeting").Result()
		equal("get", text, err, "hello")
		left := client.TTL(ctx, "greeting").Val()
		must("ttl", left > 0 && left <= 100*time.Second)
		must("absent", errors.Is(client.Get(ctx, "none").Err(), redis.Nil))
		values, err := client.MGet(ctx, "greeting", "none").Result()
		equal("mget", values, err, []any{"hello", nil})

		pipe := client.TxPipeline()
		first, second := pipe.Incr(ctx, "n"), pipe.IncrBy(ctx, "n", 41)
		_, err = pipe.Exec(ctx)
		must("exec", err == nil && first.Val() == 1 && second.Val() == 42)
		err = client.Watch(ctx, func(tx *redis.Tx) error {
			client.Set(ctx, "n", 0, 0)
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "n", 1, 0).Err() })
			return err
		}, "n")
		must("watch", errors.Is(err, redis.TxFailedErr))

		for number := range 1000 {
			client.Set(ctx, fmt.Sprintf("key:%d", number), number, 0)
		}
		seen, keys := map[string]bool{}, client.Scan(ctx, 0, "key:*", 100).Iterator()
		for keys.Next(ctx) {
			seen[keys.Val()] = true
		}
		must("scan", keys.Err() == nil && len(seen) == 1000)

		must("hset", client.HSet(ctx, "hash", "one", 1, "two", 2).Err() == nil)
		hash, err := client.HGetAll(ctx, "hash").Result()
		equal("hgetall", hash, err, map[string]string{"one": "1", "two": "2"})
		count, err := client.SAdd(ctx, "set", "x", "y", "x").Result()
		equal("sadd", count, err, 2)
		client.ZAdd(ctx, "scores", redis.Z{Score: 2.5, Member: "b"}, redis.Z{Score: 1, Member: "a"})
		scores, err := client.ZRangeWithScores(ctx, "scores", 0, -1).Result()
		equal("zrange", scores, err, []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
		client.RPush(ctx, "list", 1, 2, 3)
		list, err := client.LRange(ctx, "list", 0, -1).Result()
		equal("lrange", list, err, []string{"1", "2", "3"})
		must("close", client.Close() == nil)
	}
	fmt.Println("go-redis finds what it expects")
}
