#!/usr/bin/env bash
# Runs all tests, part by part, and says in the end what each part came to, how long it took, and what of it
# was left out and why. A part that can't be set up here (no browser to be had, say) is left out, and named; all
# others count. The tests of the module itself are never left out.
#   test_all.sh [part ...]   test, board, clients, kombu, frameworks, guides, dist; all of them without a name
# ETAS, DIST_ARCH and DIST_ONCE (see the Makefile) make kombu and dist shorter.
# Output goes to target/test-all/PART.log, too. The last line is like pytest's, and sums up its.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

readonly logs=target/test-all
# The tests that are marked `long` too.
export LONG=1
# One server more than `make test` runs on; for what stands on clients, the oldest and the newest.
readonly all_servers=${SERVERS:-redis-7.0 redis-8.2 valkey-8.1 valkey-9.1} two_servers=${SERVERS:-redis-7.0 valkey-9.1}
parts=("$@")
((${#parts[@]})) || parts=(test board clients kombu frameworks guides dist)
results=() left_out=() failed=0

main() {
  local part began
  mkdir -p $logs
  began=$SECONDS
  for part in "${parts[@]}"; do run "$part"; done

  printf '\n%s\n' "What all tests came to:"
  printf '  %s\n' "${results[@]}"
  name_servers
  if ((${#left_out[@]})); then
    printf '\n%s\n' "LEFT OUT, so nothing is known of it:"
    printf '  %s\n' "${left_out[@]}"
  fi
  sum_up $((SECONDS - began))
  exit $failed
}

# run PART: its set-up, then its tests.
run() {
  local part=$1 purpose target began log=$logs/$1.log
  export SERVERS=$all_servers
  case $part in clients | kombu | frameworks) SERVERS=$two_servers ;; esac
  case $part in
    test) purpose=test target=test ;;
    dist) purpose=test-dist target=test-dist ;;
    board | clients | kombu | frameworks | guides) purpose=$part target=test-$part ;;
    *)
      printf 'test_all: no such part: %s\n' "$part" >&2
      exit 2
      ;;
  esac
  began=$SECONDS
  printf '\n==== %s ====\n' "$part"
  if ! scripts/setup.sh "$purpose" 2>&1 | tee "$log"; then
    [[ $part != test ]] || failed=1
    results+=("$(printf '%-10s LEFT OUT' "$part")")
    left_out+=("$part: $(tail -n 1 "$log")")
    return
  fi
  # ARGS names the parts here, and is for pytest there.
  if make "$target" ARGS= 2>&1 | tee -a "$log"; then
    results+=("$(printf '%-10s passed in %d s' "$part" $((SECONDS - began)))")
  else
    failed=1
    results+=("$(printf '%-10s FAILED after %d s, see %s' "$part" $((SECONDS - began)) "$log")")
  fi
  [[ $part != kombu || -z ${ETAS:-} ]] || left_out+=("kombu: $ETAS ETAs instead of 100,000")
  # Single tests that were skipped, with pytest's reason; and what a set-up or a build says that it leaves out.
  local line
  while read -r line; do
    left_out+=("$part: $line")
  done < <(grep --text -E '^SKIPPED|left out|^(setup|dist): (no |nothing )' "$log" | sort -u | by_reason)
}

# name_servers: as pytest names them when it begins.
name_servers() {
  local part
  for part in "${parts[@]}"; do grep --text --no-messages '^servers: ' "$logs/$part.log"; done | sort -u | sed 's/^/  /'
}

# by_reason: what many tests were skipped for, once.
by_reason() {
  awk '
    match($0, /^SKIPPED \[[0-9]+\] [^ ]+: /) {
      reason = substr($0, RLENGTH + 1); line[reason] = $0; places[reason]++
      gsub(/[^0-9]/, "", $2); tests[reason] += $2
      next
    }
    { print }
    END {
      for (reason in line)
        if (places[reason] == 1) print line[reason]
        else printf "SKIPPED [%d] in %d places: %s\n", tests[reason], places[reason], reason
    }'
}

# sum_up SECONDS: of all of pytest's last lines.
sum_up() {
  local logged=()
  for part in "${parts[@]}"; do logged+=("$logs/$part.log"); done
  awk -v seconds="$1" '
    /^=* ?[0-9]+ (passed|failed|skipped|error)/ && / in [0-9.]+s/ {
      for (word = 2; word <= NF; word++)
        if ($word ~ /^(passed|failed|skipped|errors?|xfailed),?$/) {
          kind = $word; gsub(/,/, "", kind); sub(/^errors$/, "error", kind); many[kind] += $(word - 1)
        }
    }
    END {
      text = ""
      split("failed passed skipped xfailed error", kinds, " ")
      for (at = 1; at <= 5; at++)
        if (many[kinds[at]]) text = text (text ? ", " : "") many[kinds[at]] " " kinds[at]
      printf "===== %s in %d.00s =====\n", text ? text : "no tests ran", seconds
    }' "${logged[@]}"
}

main
