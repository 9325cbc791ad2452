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
#   setup.sh site    what builds the pages as a site, in target/venv
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
    site)
      install_packages
      make_venv
      add_requirements docs/requirements.txt
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
      make_typescript
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
        # lintian brings man, too, which reads the pages.
        has lintian || install_if_possible lintian
        # systemd-analyze is part of it.
        has systemd-analyze || install_if_possible systemd
        ! is_for_arm || install_arm
        build_server_for_musl
      }
      ;;
    *) fail "usage: setup.sh build|run|test|memcheck|fuzz|board|kombu|clients|frameworks|guides|dist|test-dist|lint|site|count|bench|bench-clients" ;;
  esac
}

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

has() { command -v "$1" >/dev/null; }

# Functions alone, by what they install.
source scripts/setup/packages.sh
source scripts/setup/python.sh
source scripts/setup/servers.sh
source scripts/setup/clients.sh
source scripts/setup/beside.sh
source scripts/setup/dist.sh

main
