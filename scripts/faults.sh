#!/usr/bin/env bash
# The module with a fault on purpose: a copy of the tree, to which a patch of tests/faults is applied.
#   faults.sh module [NAME...]      builds target/faults/NAME.so; without names those of all patches, and `none`
#   faults.sh simulation [NAME...]  the simulated sessions of the services have to find each; without names SIMULATED
#   faults.sh tree NAME             makes the copy in target/faults/tree
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The others are in what a simulated session doesn't have: some commands, limits, crashes of the process.
SIMULATED=(early early-dependent forgotten-consumer forgotten-queue kept-for-ever lease-twice lost-job
  not-given-back overfull-group shared-body short-lease stale-lease uncounted-attempt unfair-turns
  unlogged-entry unreleased-dependent wrong-order)

root=$PWD
tree=$root/target/faults/tree
export CARGO_TARGET_DIR=$root/target/faults/build
# Two dozen builds: they need to be neither small nor quick; a patch may leave code behind that is never reached.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 RUSTFLAGS=-Awarnings

make_tree() {
  local name=$1
  rm -rf "$tree"
  mkdir -p "$tree"
  git ls-files -z -- src tests Cargo.toml Cargo.lock README.md | xargs -0 cp --parents --target-directory "$tree"
  [[ $name == none ]] && return
  # The copy lies in a repository, to which it doesn't belong.
  GIT_CEILING_DIRECTORIES=$root/target/faults git -C "$tree" apply "$root/tests/faults/$name.patch"
}

build_module() {
  make_tree "$1"
  (cd "$tree" && cargo build --locked --release --quiet)
  cp "$CARGO_TARGET_DIR/release/libdq.so" "target/faults/$1.so"
}

# A test that fails is what is wanted; one that doesn't compile, or fails before the first session, is not.
simulate() {
  local log=target/faults/$1.log test=services::tests::simulated_sessions_keep_all_promises
  make_tree "$1"
  if (cd "$tree" && cargo test --locked --lib -- --exact "$test" --nocapture) >"$log" 2>&1; then
    [[ $1 == none ]] || fail "$1 isn't found"
  else
    grep -m 1 '^session [0-9]*:' "$log" | cut -c 1-120 || fail "it fails otherwise than by a session: $log"
    [[ $1 != none ]] || fail "without a fault a session fails, too: $log"
  fi
}

fail() {
  printf 'faults.sh: %s\n' "$*" >&2
  exit 1
}

names() {
  local patch
  for patch in tests/faults/*.patch; do
    basename "$patch" .patch
  done
}

command=${1:-}
shift || true
case $command in
  module)
    [[ $# -gt 0 ]] || mapfile -t all < <(names; echo none)
    for name in "${@:-${all[@]}}"; do
      echo "faults.sh: $name"
      build_module "$name"
    done
    ;;
  simulation)
    [[ $# -gt 0 ]] || set -- none "${SIMULATED[@]}"
    for name in "$@"; do
      echo "faults.sh: $name in simulated sessions"
      simulate "$name"
    done
    ;;
  tree) make_tree "$1" ;;
  *) fail "module, simulation or tree: see its head" ;;
esac
