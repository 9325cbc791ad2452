#!/usr/bin/env bash
# Checks and tests the client for Rust, and builds the program that carries out the contract:
# clippy, its documentation, its own tests on a real server.
#   test_rust_client.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly target=$PWD/target
export CARGO_TARGET_DIR=$target/clients/rust DQ_MODULE=$target/release/libdq.so
export DQ_SERVER=${DQ_SERVER:-$target/servers/redis-8.2/redis-server}

cd clients/rust
cargo clippy --quiet --locked --all-targets --all-features -- -D warnings
cargo clippy --quiet --locked --lib --no-default-features -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --no-deps --all-features
cargo test --quiet --locked --all-features
cargo build --quiet --locked --all-features --example contract
