# shellcheck shell=bash
# The clients, the packages for Celery and other frameworks, and axe-core, each in an environment of its own.
# scripts/setup.sh sources this.

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

# ---- tests of dq-board -----------------------------------------------------------------------------

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
