#!/bin/sh
# run.sh PYTHON FOREBAY ROUNDS SEED: clients of Redis, one after the other, on a server of their own.
set -eu
here=$(dirname "$0")
folder=$(mktemp -d)
"$2" serve "$folder/db" --listen 127.0.0.1:0 2>"$folder/told" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server || true; rm -rf "$folder"' EXIT
tries=0
while ! grep -q listening "$folder/told"; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { cat "$folder/told" >&2; exit 1; }
    sleep 0.05
done
"$1" "$here/redis_py.py" "$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$folder/told")"
if command -v redis-server >/dev/null; then
    "$1" "$here/differential.py" --forebay "$2" --rounds "$3" --seed "$4"
else
    echo 'skipped: the comparison with redis-server, which is not installed' >&2
fi
