#!/bin/sh
# Installs credmgr in a container or on a machine for jobs: unpacks the layer of a release, which needs no other package.
# The environment has the options of devcontainer-feature.json: URL, VERSION and SHA256. DESTINATION is for tests.
set -eu

fail() {
  echo "credmgr: error: $*" >&2
  exit 1
}

fetch() { # name, file
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$URL/$1"
  else
    wget -q -O "$2" "$URL/$1"
  fi || fail "$URL/$1 cannot be fetched"
}

: "${URL:?the address of the release}"
case $(uname -m) in
  x86_64) machine=amd64 ;;
  aarch64) machine=arm64 ;;
  *) fail "no layer for $(uname -m)" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch SHA256SUMS "$work/sums"
# A line is the digest, two spaces and the name.
line=$(grep -E "^[0-9a-f]{64}  credmgr-[^ /]+-layer-${machine}[.]tar[.]gz$" "$work/sums") || fail "$URL has no layer for $machine"
name=${line#*  }
[ -z "${VERSION:-}" ] || [ "$name" = "credmgr-$VERSION-layer-$machine.tar.gz" ] || fail "$URL has $name, not version $VERSION"
[ -z "${SHA256:-}" ] || [ "$SHA256" = "${line%% *}" ] || fail "the checksum of $name is ${line%% *}, not $SHA256"
fetch "$name" "$work/$name"
(cd "$work" && echo "$line" | sha256sum -c - >/dev/null) || fail "$name does not have the checksum of the release"
tar -C "${DESTINATION:-/}" -xzf "$work/$name"
"${DESTINATION:-}/usr/bin/credmgr" --version
