# shellcheck shell=bash
# System packages, by apt. scripts/setup.sh sources this.

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
    test | memcheck | board | kombu | clients | frameworks | guides | lint | site | dist | test-dist)
      [[ $purpose =~ ^(lint|site|dist)$ || -x /usr/bin/redis-server ]] || missing+=(redis-server)
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

# A package that only some tests need: they are skipped without it.
install_if_possible() { (apt_install "$@") || say "no $*: what needs that is left out"; }
