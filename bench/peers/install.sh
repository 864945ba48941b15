#!/usr/bin/env bash
# Installs the libraries that some of the ends need, by name and by the version that was measured. For Debian 12. Installs
# nothing that is there already, so it can be run again. With --aeron also what building Aeron needs.
set -euo pipefail

# Aeron's sources ask for 3.30 or later.
cmake_version=3.31.10

packages=(
    "libsrt-openssl-dev=1.5.1-1+deb12u2"
    "libudt-dev=4.11+dfsg1-1+b1"
    "libenet-dev=1.3.17+ds-2"
    "pkg-config"
    "g++"
)
with_aeron=false
case "$*" in
    "") ;;
    --aeron)
        with_aeron=true
        packages+=("libclang-dev" "libbsd-dev" "uuid-dev" "make")
        # Only to have CMake in a folder of its own; another Python that can do that is as good.
        python3 -c "import ensurepip, venv" 2>/dev/null || packages+=("python3-venv")
        ;;
    *)
        echo "usage: $0 [--aeron]" >&2
        exit 2
        ;;
esac

install_missing() {
    local package name as_root=() missing=()
    for package in "${packages[@]}"; do
        name="${package%%=*}"
        if ! dpkg-query --show --showformat '${Status}' "$name" 2>/dev/null | grep -q "install ok installed"; then
            missing+=("$package")
        fi
    done
    if [ ${#missing[@]} -eq 0 ]; then
        echo "all libraries are there" >&2
        return
    fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update
    if ! DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; then
        # An update of the distribution replaces a version; a near one is better than none, and `end --list` tells which it is.
        echo "not all of ${missing[*]} can be had; installing what the distribution has" >&2
        DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]%%=*}"
    fi
}

# Debian 12 has CMake 3.25. The one that Aeron needs goes beside the build and replaces nothing.
install_cmake() {
    local folder
    folder="$(cd "$(dirname "$0")" && pwd)/target/cmake"
    if ! "$folder/bin/cmake" --version 2>/dev/null | grep -q "version $cmake_version"; then
        python3 -m venv "$folder"
        "$folder/bin/pip" install --quiet --disable-pip-version-check "cmake==$cmake_version"
    fi
    echo "build with: CMAKE=$folder/bin/cmake cargo build --release --manifest-path bench/peers/Cargo.toml --features aeron" >&2
}

install_missing
if $with_aeron; then
    install_cmake
fi
