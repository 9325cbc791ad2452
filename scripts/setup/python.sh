# shellcheck shell=bash
# Python: which one, and target/venv with what the tests need. scripts/setup.sh sources this.

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
