#!/usr/bin/env bash
# Builds what is released, for each target whose standard library is installed:
#   libdq.so        for glibc 2.28 and later (RHEL 8, Debian 10, Ubuntu 20.04 and whatever came after)
#   libdq-musl.so   for musl (Alpine)
#   dq-board        static: it needs no libc
# and packs them into target/dist (release/pack.py), with the wheels and source distributions of kombu-dq,
# django-dq, dramatiq-dq, taskiq-dq and dq-client, and dq-client's npm package and .crate. zig is the
# C compiler and the linker: it brings the headers and the symbols of old glibcs. `scripts/setup.sh dist` installs it.
#
# The same sources give the same bytes, wherever they lie and whenever they are built, by the same tools:
# no path and no time gets into a file. The date in the archives is that of the last commit
# (SOURCE_DATE_EPOCH where there is no git).
#   dist.sh [ARCH…]   x86_64 aarch64
# DIST_TOOLS is where the tools are, DIST_OUT where the files go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly root=$PWD glibc=2.28
# Exits with this when no standard library is there: the tests of the packages are skipped then.
readonly NOTHING=3
tools=$(realpath "${DIST_TOOLS:-target/dist-tools}")
out=${DIST_OUT:-target/dist}
readonly tools out
readonly work=$PWD/target/dist-build
readonly cargo_home=${CARGO_HOME:-$HOME/.cargo}

main() {
  local arch
  local -a built=()
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  export PATH=$tools/bin:$PATH
  has_tools || fail "the tools are missing: scripts/setup.sh dist"
  rm -rf "$out"
  mkdir -p "$out"
  (($#)) || set -- x86_64 aarch64
  for arch; do
    has_standard_library "$arch-unknown-linux-gnu" "$arch-unknown-linux-musl" || continue
    say "building for $arch"
    build "$arch"
    built+=("$arch")
  done
  ((${#built[@]})) || {
    say "nothing can be built here"
    exit $NOTHING
  }
  "$tools/bin/python" release/pack.py --out "$out" --build "$work" "${built[@]}"
}

say() { printf 'dist: %s\n' "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

has_tools() { [[ -x $tools/bin/cargo-zigbuild && -x $tools/bin/python ]]; }

has_standard_library() {
  local target
  for target; do
    [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]] || {
      say "no standard library for $target, so no ${target%%-*}: rustup target add $target"
      return 1
    }
  done
}

# The board beside the modules: each ends in a step of a minute or more that takes one processor.
build() {
  local board modules=0
  # zig makes a program that is static position-independent only when it is told so in its own way.
  zigbuild "$1-unknown-linux-musl" "" board/Cargo.toml "$work/board" -C target-feature=+crt-static -C relocation-model=pie -C link-arg=-pie &
  board=$!
  build_modules "$1" || modules=$?
  wait $board || fail "the build of dq-board failed"
  return $modules
}

build_modules() {
  zigbuild "$1-unknown-linux-gnu" .$glibc Cargo.toml "$work/module" &&
    zigbuild "$1-unknown-linux-musl" "" Cargo.toml "$work/module" -C target-feature=-crt-static
}

# zigbuild TARGET VERSION MANIFEST DIRECTORY FLAGS…: a release build without debug information.
zigbuild() {
  local target=$1 version=$2 manifest=$3 directory=$4 variable=${1//-/_}
  shift 4
  # Paths that would get into panic messages and symbols.
  local -a flags=("$@"
    --remap-path-prefix "$root=/dq"
    --remap-path-prefix "$cargo_home=/cargo"
    --remap-path-prefix "$directory=/build")
  local c_flags
  c_flags=$(quoted -g0 "-ffile-prefix-map=$root=/dq" "-ffile-prefix-map=$cargo_home=/cargo" \
    "-ffile-prefix-map=$directory=/build")
  # ${flags[*]} by the separator that cargo takes for this. The date of the release is none of the compiler's
  # business: with it, each commit would build all C code anew.
  local IFS=$'\x1f'
  # By the target's name as it is: cargo-zigbuild sets the same with underscores, for headers that it doesn't find.
  env \
    CARGO_ENCODED_RUSTFLAGS="${flags[*]}" \
    CARGO_PROFILE_RELEASE_DEBUG=false \
    CARGO_PROFILE_RELEASE_STRIP=debuginfo \
    CARGO_INCREMENTAL=0 \
    SOURCE_DATE_EPOCH=0 \
    CC_SHELL_ESCAPED_FLAGS=1 "CFLAGS_$variable=$c_flags" \
    "BINDGEN_EXTRA_CLANG_ARGS_$target=$(headers "$target")" \
    cargo zigbuild --release --locked --manifest-path "$manifest" --target "$target$version" --target-dir "$directory"
}

# The C headers of a target as options of clang, for bindgen. They are zig's, as for the C compiler.
headers() {
  local arch=${1%%-*} lib name
  lib=$("$tools/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')/lib
  local -a names
  case $1 in
    *-gnu) names=("${arch/x86_64/x86}-linux-gnu" generic-glibc) ;;
    *-musl) names=("$arch-linux-musl" generic-musl) ;;
  esac
  quoted -isystem "$lib/include"
  for name in "${names[@]}" "${arch/x86_64/x86}-linux-any" any-linux-any; do
    quoted -isystem "$lib/libc/include/$name"
  done
}

# As a shell would read it: a folder may have a space in its name.
quoted() { printf '%q ' "$@"; }

main "$@"
