#!/usr/bin/env bash
# mutants_runner.sh core|services TESTS: cargo's runner for a mutant (mutants.sh). The short tests come first, and nothing comes
# behind one that fails. A mutant that runs for ever or takes all memory ends by a limit: on processor time, so that it
# doesn't depend on what else the machine does.
set -euo pipefail
readonly what=$1 tests=$2

ulimit -c 0 -v $((8 << 20))
# The model's strategies nest deeply in a build without optimization.
export RUST_MIN_STACK=$((64 << 20))
# Which change fails a test doesn't matter, nor that it is the same tomorrow.
export PROPTEST_MAX_SHRINK_ITERS=0

# run SECONDS FILTERS...
run() {
  (
    ulimit -t "$1"
    "$tests" --quiet --test-threads=1 "${@:2}"
  )
}

case $what in
  core)
    readonly longer=(buckets:: a_scan_ seats:: defrag:: other_limits)
    run 20 queue:: format:: --skip tests::large:: "${longer[@]/#/--skip=}"
    PROPTEST_CASES=30 run 60 "${longer[@]}" the_queue_does hostile_ --skip memory_comes_back
    PROPTEST_CASES=10 run 120 --skip queue:: --skip format:: --skip divergence::
    [[ -z ${QUICK:-} ]] || exit 0
    run 300 tests::large:: memory_comes_back
    ;;
  services)
    run 30 services:: --skip simulated
    run 120 services::tests::simulated
    ;;
esac
