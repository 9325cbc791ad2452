#!/usr/bin/env bash
# Checks licences, origins and known vulnerabilities of all Rust dependencies, by deny.toml. What is known comes from
# https://github.com/RustSec/advisory-db.
#   deny.sh [CHECK...]     advisories bans licenses sources; all of them without a name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly tools=target/deny version=0.20.2

[[ $($tools/bin/cargo-deny --version 2>/dev/null) == "cargo-deny $version" ]] ||
  cargo install --locked --version $version --root $tools cargo-deny

failed=0
for package in . bench board clients/rust examples/rust fuzz; do
  printf '%s: ' "$package"
  $tools/bin/cargo-deny --log-level error --locked --config "$PWD/deny.toml" --manifest-path "$package/Cargo.toml" check "$@" || failed=1
done
exit $failed
