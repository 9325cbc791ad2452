#!/usr/bin/env bash
# Checks the TypeScript client, builds it and its test program into target/typescript, and runs its own tests.
#   test_typescript.sh [check|build]   these alone
# `scripts/setup.sh clients` installs what it needs; `check` needs no server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../clients/typescript"

readonly built=../../target/typescript
readonly bin=$built/node_modules/.bin

check() {
  $bin/biome check --error-on-warnings .
  $bin/tsc --noEmit
}

# The programs of README find the package by its name: package.json beside them says where it is.
build() {
  rm -rf $built/build $built/dist
  $bin/tsc
  $bin/tsc -p tsconfig.build.json --outDir $built/dist
  cp package.json $built
}

run_tests() {
  DQ_MODULE=$(realpath ../../target/release/libdq.so)
  DQ_SERVER=$(realpath ../../target/servers/redis-8.2/redis-server)
  export DQ_MODULE DQ_SERVER
  node --test $built/build/tests/*.test.js
}

case ${1:-all} in
  check) check ;;
  build) build ;;
  all)
    check
    build
    run_tests
    ;;
  *)
    echo "usage: test_typescript.sh [check|build]" >&2
    exit 2
    ;;
esac
