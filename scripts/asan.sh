#!/usr/bin/env bash
# The fuzzed module under AddressSanitizer and LeakSanitizer: what is read or written outside of what is allocated, or after it
# was freed, and what is lost. Then a planted leak, which has to be found.
#   asan.sh [ARGS...]          ARGS are for the tests: a part of a name
#   DQ_FUZZ_CHANGES=100000     changes of each input of the corpus
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Frames have names only with it, and what is left out on purpose is left out by its name.
command -v llvm-symbolizer > /dev/null || { echo "asan.sh: llvm-symbolizer is missing (package llvm)" >&2; exit 1; }

# The compiler that everybody has brings the runtime, and wants to be told that it may be used. It is for what is tested, not
# for what builds it: hence a target.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address LSAN_OPTIONS=suppressions=$PWD/tests/fuzz/leaks.supp:print_suppressions=0
build=(--locked --test fuzz --target "$host" --target-dir "$PWD/target/asan")

cargo test "${build[@]}" -- "$@"

log=target/asan/planted-leak.log
scripts/faults.sh tree leak
if (cd target/faults/tree && DQ_FUZZ_CHANGES=20 cargo test "${build[@]}") > "$log" 2>&1; then
  echo "asan.sh: a planted leak isn't found, see $log" >&2
  exit 1
fi
grep -q "lose_memory" "$log" || { echo "asan.sh: it fails otherwise than by the planted leak, see $log" >&2; exit 1; }
echo "a planted leak is found"
