#!/bin/sh
# Installs what C programs need below PREFIX: headers, the static library, shared ones, what pkg-config and CMake ask for.
# The shared libraries are linked from the static one, because Rust's own linking leaves no room for versions of symbols.
#
#   install.sh ARCHIVE PREFIX      (DESTDIR is put before PREFIX, and CC, STRIP and LDFLAGS are as usual)
set -eu

archive=$1
prefix=$2
here=$(cd "$(dirname "$0")/.." && pwd)
root=${DESTDIR:-}$prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
# Programs go on with a library of the same ABI: before 1.0 its second number counts.
case $version in
    0.*) abi=${version%.*} ;;
    *) abi=${version%%.*} ;;
esac
system='-lgcc_s -lutil -lrt -lpthread -lm -ldl'

mkdir -p "$root/lib/pkgconfig" "$root/lib/cmake/forebay" "$root/include/forebay-leveldb/leveldb"

# The shared library NAME has the symbols of NAME.map and nothing else.
shared() {
    ${CC:-cc} -shared -o "$root/lib/lib$1.so.$version" -Wl,-soname,"lib$1.so.$abi" \
        -Wl,--version-script="$here/install/$1.map" -Wl,--gc-sections -Wl,--strip-debug -Wl,-z,defs \
        -Wl,--whole-archive "$archive" -Wl,--no-whole-archive ${LDFLAGS:-} $system
    ln -sf "lib$1.so.$version" "$root/lib/lib$1.so.$abi"
    ln -sf "lib$1.so.$version" "$root/lib/lib$1.so"
}

# A file with this build's names in it.
filled() {
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" -e "s|@SYSTEM@|$system|g" \
        "$here/install/$1.in" > "$2/$1"
}

shared forebay
shared forebay-leveldb
# Both faces are in the static library.
cp "$archive" "$root/lib/libforebay.a"
${STRIP:-strip} --strip-debug "$root/lib/libforebay.a"
ln -sf libforebay.a "$root/lib/libforebay-leveldb.a"
cp "$here/include/forebay.h" "$root/include/"
cp "$here/include/leveldb/c.h" "$root/include/forebay-leveldb/leveldb/"
filled forebay.pc "$root/lib/pkgconfig"
filled forebay-leveldb.pc "$root/lib/pkgconfig"
filled forebayConfig.cmake "$root/lib/cmake/forebay"
filled forebayConfigVersion.cmake "$root/lib/cmake/forebay"
