#!/bin/sh
# run.sh PYTHON FOREBAY ROUNDS SEED: clients of Redis, one after the other, on a server of their own. Each runs where its
# language's tools are; libraries and programs that are made go to target/server-clients.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
made=$(cd "$(dirname "$1")/.." && pwd)
folder=$(mktemp -d)

# The port at which a server listens that tells so in a file.
port_of() {
    tries=0
    while ! grep -q listening "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { cat "$1" >&2; exit 1; }
        sleep 0.05
    done
    sed -n 's/.*listening at .*:\([0-9]*\)$/\1/p' "$1"
}

"$2" serve "$folder/db" --listen 127.0.0.1:0 --keep-changes 1G 2>"$folder/told" &
server=$!
follower=
trap 'kill $server $follower 2>/dev/null || true; wait $server $follower || true; rm -rf "$folder"' EXIT
port=$(port_of "$folder/told")
"$2" serve "$folder/copy" --listen 127.0.0.1:0 --follow "127.0.0.1:$port" 2>"$folder/followed" &
follower=$!
copy=$(port_of "$folder/followed")

# Whether a tool is there; says so where it is not.
have() {
    command -v "$1" >/dev/null || { echo "skipped: $2, for want of $1" >&2; return 1; }
}

"$1" "$here/redis_py.py" "$port" "$copy"
if have openssl 'redis-py by TLS'; then
    "$1" "$here/tls.py" "$2"
fi
if have npm 'node-redis and ioredis'; then
    mkdir -p "$made/node" && cp "$here"/node/* "$made/node/"
    (cd "$made/node" && npm install --silent --no-audit --no-fund && node node_redis.mjs "$port" && node ioredis.mjs "$port")
fi
if have go go-redis; then
    (cd "$here/go" && go build -o "$made/go-redis" . && "$made/go-redis" "$port")
fi
if have mvn 'Jedis and Lettuce'; then
    mvn --quiet --batch-mode --file "$here/java/pom.xml" compile exec:java -Dmade="$made/java" -Dexec.mainClass=Clients -Dexec.args="$port"
fi
if have redis-benchmark redis-benchmark; then
    redis-benchmark -p "$port" -n 2000 -c 20 -q -t ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset >"$folder/bench"
    ! grep -qi error "$folder/bench" || { cat "$folder/bench" >&2; exit 1; }
    echo 'redis-benchmark ends without errors'
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo 'skipped: the page in a browser, for want of chromium' >&2
elif have npm 'the page in a browser' && have redis-benchmark 'the page in a browser'; then
    mkdir -p "$made/page" && cp "$here"/../page/* "$made/page/"
    pictures=$(cd "$here/../../../../docs/guide/images" && pwd)
    forebay=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
    # With KEEP=keep pictures are kept anew.
    (cd "$made/page" && npm install --silent --no-audit --no-fund && BROWSER=$browser node page.mjs "$forebay" "$pictures" ${KEEP:-})
fi
if have redis-server 'the comparison with redis-server'; then
    "$1" "$here/differential.py" --forebay "$2" --rounds "$3" --seed "$4"
    "$1" "$here/acl_differential.py" --forebay "$2" --rounds "$3" --seed "$4"
fi
kill $server $follower
trap 'rm -rf "$folder"' EXIT
wait $server
wait $follower
