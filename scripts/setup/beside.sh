# shellcheck shell=bash
# What DQ is measured beside, what its guides come from, and the languages of the examples. Each of them may be
# missing. scripts/setup.sh sources this.

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

# ---- what the guides come from -------------------------------------------------------------------

gather_peers() {
  local sources=tests/guides guides=target/guides
  local -a made_from=("$sources/requirements.txt" "$sources/package-lock.json"
    integrations/kombu-dq/pyproject.toml clients/python/pyproject.toml clients/typescript/package.json)
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
  # As it stands here: `scripts/test_typescript.sh build` makes it.
  ln -s ../../typescript $guides/node_modules/dq-client
  cat "${made_from[@]}" >$guides/made-from
}
