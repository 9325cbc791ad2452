#!/usr/bin/env bash
# Makes root folders of bare distributions in target/images, each with apt and what apt needs, for tests/dist/stranger.py.
# What is there stays; remove target/images to make them anew. Each takes a minute, most of it to fetch.
#   bare_images.sh [SUITE…]   bookworm and trixie, of Debian; noble, of Ubuntu
# As root on Debian. A suite that can't be had is named, and left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly images=$PWD/target/images debian=http://deb.debian.org/debian ubuntu=http://archive.ubuntu.com/ubuntu
readonly debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg ubuntu_keys=$images/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg

main() {
  local suite
  ((EUID == 0)) || fail "only root can make root folders"
  command -v mmdebstrap >/dev/null || install_mmdebstrap
  mkdir -p "$images"
  (($#)) || set -- bookworm trixie noble
  for suite; do
    [[ -e $images/$suite/etc/apt ]] || make_image "$suite" || say "no $suite can be had, see target/images/$suite.log: it is left out"
  done
}

say() { printf 'bare_images: %s\n' "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

install_mmdebstrap() {
  say "apt-get install mmdebstrap"
  { apt-get update && apt-get install --yes --no-install-recommends mmdebstrap; } </dev/null &>target/apt.log ||
    fail "no mmdebstrap, see target/apt.log"
}

# In a folder of its own until it is whole.
make_image() {
  local suite=$1 mirror=$debian keys=$debian_keys components="main" made=$images/$1.new
  if [[ $suite == noble ]]; then
    fetch_ubuntu_keys || return 1
    mirror=$ubuntu keys=$ubuntu_keys components="main universe"
  fi
  say "making $suite"
  rm -rf "$made"
  mmdebstrap --variant=apt --keyring="$keys" "$suite" "$made" "deb $mirror $suite $components" </dev/null &>"$images/$suite.log" || {
    rm -rf "$made"
    return 1
  }
  mv "$made" "$images/$suite"
}

# The keys of Ubuntu's archive are a package of Debian's since trixie, which Debian signs.
fetch_ubuntu_keys() {
  [[ ! -r $ubuntu_keys ]] || return 0
  local folder=$images/keys
  rm -rf "$folder"
  mkdir -p "$folder/lists/partial"
  printf 'deb [signed-by=%s] %s trixie main\n' $debian_keys $debian >"$folder/sources.list"
  local -a own=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$folder/lists" -o APT::Sandbox::User=root)
  {
    apt-get "${own[@]}" update && (cd "$folder" && apt-get "${own[@]}" download ubuntu-keyring) &&
      dpkg-deb --extract "$folder"/ubuntu-keyring_*.deb "$folder"
  } </dev/null &>"$images/keys.log"
}

main "$@"
