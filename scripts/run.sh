#!/usr/bin/env bash
# make run: builds the module, starts a server with it, takes the tour, and stays until Ctrl-C.
#   PORT   the server's port, 6379 by default
#   TOUR   `only` stops the server after the tour
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly port=${PORT:-6379} tour=${TOUR:-}

fail() {
  printf 'run: %s\n' "$*" >&2
  exit 1
}

if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || ((port > 65535)); then
  fail "PORT=$port is no port number"
fi
[[ -z $tour || $tour == only ]] || fail "TOUR=$tour: TOUR can only be 'only'"
! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null ||
  fail "port $port is taken; choose another: make run PORT=6380"

scripts/setup.sh run
cargo build --release

dir=$(mktemp -d)
children=()

stop() {
  kill "${children[@]}" 2>/dev/null || true
  wait
  rm -rf "$dir"
}

fail_with_log() {
  tail -n 20 "$dir/log" >&2
  fail "$*, see above"
}

trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Should this script be killed outright, the kernel still ends the server.
setpriv --pdeathsig TERM \
  target/servers/run/redis-server --port "$port" --bind 127.0.0.1 \
  --dir "$dir" --save '' --appendonly no \
  --loadmodule "$PWD/target/release/libdq.so" </dev/null &>"$dir/log" &
server=$!
children=("$server")

until grep -q 'Ready to accept connections' "$dir/log"; do
  kill -0 $server 2>/dev/null || fail_with_log "the server did not start"
  sleep 0.05
done

# Both in the background, because a signal is only heeded while the shell waits.
python3 scripts/tour.py "$port" &
guide=$!
children+=("$guide")
wait $guide || fail_with_log "the tour went wrong"
children=("$server")

[[ $tour != only ]] || exit 0
cat <<END

The server stays on 127.0.0.1:$port until Ctrl-C; its jobs go with it. In another terminal:
  redis-cli -p $port
END
wait $server || fail_with_log "the server ended"
