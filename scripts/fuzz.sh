#!/usr/bin/env bash
# Fuzzes the module, guided by what of it an input reaches, for so many seconds a target.
#   fuzz.sh SECONDS [TARGET...]     all targets: commands log restore model records
#   FUZZ_ARGS="-runs=10000000"      more for libFuzzer
# What it found to be new stays in target/fuzz/TARGET, to go on from. What makes a target fail is written to
# target/fuzz/TARGET-crash-…, and named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly seconds=$1
shift
targets=("$@")
((${#targets[@]})) || targets=(commands log restore model records)
host=$(rustc -vV | sed -n 's/^host: //p')

# What libFuzzer looks at; the compiler that everybody has can make it. It is for what is fuzzed, not for what builds it:
# hence a target.
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
passes+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
passes+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg=fuzzing"
RUSTFLAGS="$passes" cargo build --release --locked --manifest-path fuzz/Cargo.toml --target "$host" \
  --target-dir target/fuzz-build

for target in "${targets[@]}"; do
  mkdir -p "target/fuzz/$target"
  inputs=("target/fuzz/$target") len=4096
  if [[ $target == model || $target == records ]]; then
    # Four bytes a turn or a step, of which any will do.
    len=244
    [[ -n $(ls "${inputs[0]}") ]] || for n in {1..9}; do head -c $((n * 27)) /dev/urandom >"${inputs[0]}/begin-$n"; done
  else
    inputs+=("tests/fuzz/corpus/$target")
  fi
  # shellcheck disable=SC2086
  "target/fuzz-build/$host/release/$target" "${inputs[@]}" \
    -max_total_time="$seconds" -max_len=$len -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="target/fuzz/$target-" ${FUZZ_ARGS:-}
done
