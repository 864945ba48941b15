#!/usr/bin/env bash
# Installs the libraries that some of the ends need, by name and by the version that was measured. For Debian 12. Installs
# nothing that is there already, so it can be run again.
set -euo pipefail

packages=(
    "libsrt-openssl-dev=1.5.1-1+deb12u2"
    "libudt-dev=4.11+dfsg1-1+b1"
    "libenet-dev=1.3.17+ds-2"
    "pkg-config"
    "g++"
)

missing=()
for package in "${packages[@]}"; do
    name="${package%%=*}"
    if ! dpkg-query --show --showformat '${Status}' "$name" 2>/dev/null | grep -q "install ok installed"; then
        missing+=("$package")
    fi
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "all libraries are there" >&2
    exit 0
fi

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update
if ! DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; then
    # An update of the distribution replaces a version; a near one is better than none, and `end --list` tells which it is.
    echo "not all of ${missing[*]} can be had; installing what the distribution has" >&2
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]%%=*}"
fi
