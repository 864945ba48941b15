#!/usr/bin/env bash
# Builds libsegstream and installs it: shared and static library, header, pkg-config file. What `cargo cinstall -p segstream-c` does,
# with cargo alone. PROFILE chooses how it is built: `dev` is quick, `dist` is what releases use.
#
#   bindings/c/install.sh [--prefix DIR] [--libdir DIR] [--destdir DIR] [--profile release]
#
# With --built DIR it builds nothing and takes the libraries that cargo has left in DIR.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=/usr/local libdir='' destdir='' profile=release built=''

while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        --destdir) destdir=$2 ;;
        --profile) profile=$2 ;;
        --built) built=$2 ;;
        *)
            echo "install.sh: '$1' is not known; see the head of this file" >&2
            exit 2
            ;;
    esac
    shift 2
done
libdir=${libdir:-$prefix/lib}

if [ -z "$built" ]; then
    (cd "$root" && cargo build --locked -p segstream-c --lib --profile "$profile")
    built=${CARGO_TARGET_DIR:-$root/target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
# While the version begins with 0, a new second number is a new interface: as in build.rs.
soname=libsegstream.so.${version%.*}
# What a program has to link that links the static library: what the standard library of Rust uses.
private='-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc'

install -d "$destdir$libdir/pkgconfig" "$destdir$prefix/include"
install -m 644 "$here/include/segstream.h" "$destdir$prefix/include/segstream.h"
install -m 644 "$built/libsegstream_c.a" "$destdir$libdir/libsegstream.a"
install -m 755 "$built/libsegstream_c.so" "$destdir$libdir/libsegstream.so.$version"
ln -sf "libsegstream.so.$version" "$destdir$libdir/$soname"
ln -sf "$soname" "$destdir$libdir/libsegstream.so"
sed -e "s|@prefix@|$prefix|" -e "s|@libdir@|$libdir|" -e "s|@version@|$version|" -e "s|@private@|$private|" \
    "$here/segstream.pc.in" > "$destdir$libdir/pkgconfig/segstream.pc"
echo "installed libsegstream $version in $destdir$prefix" >&2
