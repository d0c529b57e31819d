#!/bin/sh
# Builds the consumers against an installed tree and runs them, with the libraries and the tilus-llc of
# that tree: consumers.sh PREFIX LIBDIR CC CXX PYTHON OUT. OUT/pack.tilusk is what the C one compiles.
set -eu
prefix=$1 libdir=$1/$2 cc=$3 cxx=$4 python=$5 out=$6
here=$(dirname "$0") plugin=$(dirname "$0")/../../examples/plugin
export PKG_CONFIG_PATH="$libdir/pkgconfig"
flags() { pkg-config --cflags --libs "$@"; }
mkdir -p "$out"
$cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/child/main.c" -o "$out/c99" $(flags tilus-rt)
$cxx -std=c++20 -Wall -Wpedantic -Werror "$here/cxx/main.cpp" -o "$out/cxx" $(flags tilus tilus-matmul)
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -shared -fPIC "$plugin/plugin.c" -o "$out/plugin.so" \
    $(flags tilus)

unset TILUS_LLC
export LD_LIBRARY_PATH="$libdir"
"$out/c99" "$out/pack.tilusk"
"$out/cxx"
"$python" "$here/ctypes/client.py" "$libdir"
sh "$plugin/test/run" "$prefix/bin/tilus-opt" "$out/plugin.so" FileCheck "$plugin/test/abs.tilus"
