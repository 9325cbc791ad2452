#!/usr/bin/env bash
# Mutation tests: changes the sources in one place at a time, and sees whether a test notices.
#   mutants.sh core [ARGS...]       of src/queue, in a crate of its own that has no server in it and builds in seconds
#   mutants.sh services [ARGS...]   of src/services, in a copy of the whole module
# ARGS are for cargo-mutants: --file src/queue/value/rate.rs, --shard 0/4, --list.
#
# With QUICK=1 the longest tests are left out, which takes half a minute less for a mutant that no test notices: what was
# missed is tried again in the next run, without it.
#
# What was caught stays in target/mutants/WHAT/state, and isn't tried again: a run that was ended goes on, and the next one
# tries what is new or was missed. Remove that folder to try all. What has no test on purpose is in .cargo/mutants.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly what=${1:-}
readonly tree=target/mutants/$what/tree state=target/mutants/$what/state
readonly tools=target/mutants/tools
readonly version=27.1.0

main() {
  local -a files
  case $what in
    core) make_core && files=(--file "src/queue/**") ;;
    services) make_services && files=(--file "src/services/**") ;;
    *) fail "usage: mutants.sh core|services [ARGS for cargo-mutants]" ;;
  esac
  # Files that were asked for would only come to these.
  [[ " ${*:2}" != *" --file "* ]] || files=()
  has_cargo_mutants || cargo install --locked --version $version --root $tools cargo-mutants

  # Each mutant is built once and runs for moments: what counts is how long it takes to build. The tests come
  # by a runner, which begins with the short ones and ends with the first that fails.
  local host
  host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
  export "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/mutants_runner.sh $what"
  export CARGO_TARGET_DIR=$PWD/target/mutants/$what/build
  export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_INCREMENTAL=1
  export PATH=$PWD/$tools/bin:$PATH
  local config=$PWD/.cargo/mutants.toml output=$PWD/$state
  mkdir -p "$output"
  cd "$tree"
  # 2 and 3: there are mutants that were missed, or that ran into a limit of time.
  nice -n 19 cargo mutants --in-place --config "$config" --output "$output" --iterate --cargo-arg=--lib \
    "${files[@]}" "${@:2}"
}

fail() {
  printf 'mutants: %s\n' "$*" >&2
  exit 1
}

has_cargo_mutants() {
  [[ $(PATH=$PWD/$tools/bin:$PATH cargo mutants --version 2>/dev/null) == "cargo-mutants $version" ]]
}

# The core and all that judges it in one crate, so that a mutant is compiled and linked once: its unit tests, those of
# the format, and the model, whose main file is this crate's.
make_core() {
  begin_tree
  cp -R src/queue "$tree/src"
  cp tests/model/*.rs "$tree/src"
  rm "$tree/src/main.rs"
  cp -R tests/format "$tree/src"
  mv "$tree/src/format/main.rs" "$tree/src/format/mod.rs"
  {
    sed '/^mod compare;/,$d' tests/model/main.rs
    printf 'extern crate self as dq;\npub mod queue;\nmod format;\n\n'
    sed -n '/^mod compare;/,$p' tests/model/main.rs
  } >"$tree/src/lib.rs"
  {
    printf '[package]\nname = "dq"\nedition = "2021"\npublish = false\n\n[workspace]\n\n'
    printf '[dependencies]\n'
    local name
    for name in ahash fastrand proptest rmp rmp-serde serde serde_bytes smallvec; do
      grep "^$name = " Cargo.toml
    done
  } >"$tree/Cargo.toml"
  cp Cargo.lock "$tree"
  optimize_dependencies
}

make_services() {
  begin_tree
  cp -R src Cargo.toml Cargo.lock README.md "$tree"
  optimize_dependencies
}

# They are built once. The strategies of the model's tests are theirs.
optimize_dependencies() { printf '\n[profile.dev.package."*"]\nopt-level = 3\n' >>"$tree/Cargo.toml"; }

begin_tree() {
  rm -rf "$tree"
  mkdir -p "$tree/src"
}

main "$@"
